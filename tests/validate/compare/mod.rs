//! The comparison: which experiments, on which machine, judged how. Written to the screen and to the
//! document.

mod calibrate;
mod document;
mod experiments;
mod judge;
mod kernel;
mod quiet;
mod real;
mod session;
mod simulated;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use experiments::ALL;

/// The simulator against the kernel of the machine at hand.
///
/// The same programs run as threads of this machine and of the simulated one, and the observations of both
/// are compared. An experiment is judged only on a quiet machine with the kernel that is simulated; else it
/// is skipped, with the reason.
///
/// Exit codes: 0 no bound was missed; 1 one was, or something failed; 2 bad usage.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask validate", max_term_width = 100)]
pub(crate) struct Options {
    /// Do these experiments and no others
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "ID", value_parser = ids())]
    only: Vec<String>,
    /// Fewer and shorter runs: shows that it works, and judges nothing
    #[arg(long)]
    quick: bool,
    /// Write the document about this run, such as docs/validation.md
    #[arg(long, value_name = "FILE")]
    doc: Option<PathBuf>,
    /// Take a CPU offline for a moment (V13): it disturbs all programs on the machine
    #[arg(long)]
    hotplug: bool,
    /// Measure even if the machine is not quiet; what disturbed it is shown, and nothing is judged
    #[arg(long)]
    anyway: bool,
}

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(ALL.iter().map(|experiment| experiment.id))
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    let options = Options::parse();
    let result = session::run(&options).and_then(|session| {
        if let Some(file) = &options.doc {
            let text = document::markdown(&session);
            let written = std::fs::write(file, text);
            written.map_err(|error| format!("--doc {}: {error}", file.display()))?;
        }
        Ok(session.missed())
    });
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("validate: {missed} bounds were missed");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("validate: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The derive attributes fit together, and an unknown experiment is bad usage.
    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        let wrong = Options::try_parse_from(["validate", "--only", "V99"]).unwrap_err();
        assert_eq!(wrong.exit_code(), 2);
        assert!(wrong.to_string().contains("V16"), "{wrong}");
    }
}
