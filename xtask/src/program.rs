//! Programs of crate `tests` that are part of the product: `cargo xtask validate` and `cargo xtask hostile`.
//!
//! They are built here and given all arguments. Each is described in its own folder: `tests/validate`,
//! `tests/hostile`.

use std::process::{self, ExitStatus};

use clap::Args;

use crate::context::Context;

/// Has xtask build with debug assertions. The program is told, too, and takes no notice.
const DEBUG_ASSERTIONS: &str = "--debug-assertions";

/// The options of such a task: those of the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// `--help` shows what there is
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    arguments: Vec<String>,
}

/// Builds and runs the program; whether it found nothing wrong. Where it says that it was called wrongly, so
/// does this process.
pub(crate) fn run(context: &Context, program: &str, options: &Options) -> Result<bool, String> {
    let mut command = context.command("cargo");
    command.args(["run", "--quiet"]);
    command.args(profile(&options.arguments));
    command.args(["-p", "paceline-tests", "--bin", program, "--"]);
    command.args(&options.arguments);
    let ended = command
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    match code(program, ended)? {
        0 => Ok(true),
        1 => Ok(false),
        other => process::exit(other),
    }
}

/// The options of cargo that choose the profile: with optimizations, if nothing else is asked for.
fn profile(arguments: &[String]) -> &'static [&'static str] {
    if arguments.iter().any(|word| word == DEBUG_ASSERTIONS) {
        &[]
    } else {
        &["--release"]
    }
}

fn code(program: &str, ended: ExitStatus) -> Result<i32, String> {
    ended
        .code()
        .ok_or_else(|| format!("{program} was ended by a signal: {ended}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: programs are built with optimizations, except where debug assertions are asked for. Method:
    /// both, with another option before.
    #[test]
    fn debug_assertions_are_a_matter_of_the_build() {
        let words = |words: &[&str]| words.iter().map(|&word| word.into()).collect::<Vec<_>>();
        assert_eq!(profile(&words(&["--minutes", "5"])), ["--release"]);
        let asked = words(&["--minutes", "5", DEBUG_ASSERTIONS]);
        assert!(profile(&asked).is_empty());
    }
}
