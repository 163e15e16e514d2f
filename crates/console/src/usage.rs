//! Reading a command line. Help and version are data; clap's other messages are bad usage, in one line.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, Parser};

use crate::{Failure, output};

/// Reads a command line, the program's name first. `None` if it asked for help or the version, which have
/// been printed.
///
/// # Errors
/// Bad usage; or the help could not be printed.
pub fn read<C: Parser>(arguments: &[OsString]) -> Result<Option<C>, Failure> {
    let error = match C::try_parse_from(arguments) {
        Ok(line) => return Ok(Some(line)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(error.to_string().trim_end())?;
            Ok(None)
        }
        _ => Err(Failure::Usage(one_line(
            &error.to_string(),
            &C::command(),
            arguments,
        ))),
    }
}

/// clap's message of several lines in one: the error, its tips, and where to read on.
fn one_line(message: &str, program: &Command, arguments: &[OsString]) -> String {
    let is_what = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = message.lines().map(str::trim);
    let what: Vec<&str> = lines
        .filter(|line| !line.is_empty())
        .take_while(is_what)
        .collect();
    let what = what.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let name = program.get_name();
    let given = arguments.get(1).and_then(|argument| argument.to_str());
    match given.filter(|given| program.find_subcommand(given).is_some()) {
        Some(command) => format!("{what}; see '{name} {command} --help'"),
        None => format!("{what}; see '{name} --help'"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Subcommand};

    use super::*;

    #[derive(Parser)]
    #[command(name = "theatre")]
    struct Line {
        #[command(subcommand)]
        command: Option<Plays>,
    }

    #[derive(Subcommand)]
    enum Plays {
        Rehearse(Rehearsal),
    }

    #[derive(Args)]
    struct Rehearsal {
        #[arg(long, value_parser = ["comedy", "tragedy"])]
        play: Option<String>,
    }

    fn refused(arguments: &[&str]) -> String {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        match read::<Line>(&arguments) {
            Err(Failure::Usage(line)) => line,
            _ => panic!("{arguments:?} is not bad usage"),
        }
    }

    /// Goal: clap's message of many lines becomes one line that names the value, the option, the possible
    /// values, and where to read on. Method: an unknown value, and an unknown command.
    #[test]
    fn bad_usage_is_one_line() {
        let value = refused(&["theatre", "rehearse", "--play", "farce"]);
        for part in ["farce", "--play", "tragedy", "'theatre rehearse --help'"] {
            assert!(value.contains(part), "{value}");
        }
        let command = refused(&["theatre", "reherse"]);
        assert!(command.contains("'rehearse'"), "{command}");
        assert!(
            !command.contains('\n') && command.ends_with("see 'theatre --help'"),
            "{command}"
        );
    }

    /// Goal: a good line is read. Method: a command with an option.
    #[test]
    fn a_good_line_is_read() {
        let arguments = ["theatre", "rehearse", "--play", "comedy"].map(OsString::from);
        let Ok(Some(line)) = read::<Line>(&arguments) else {
            panic!("{arguments:?} is refused");
        };
        let Some(Plays::Rehearse(rehearsal)) = line.command else {
            panic!("there is no command");
        };
        assert_eq!(rehearsal.play.as_deref(), Some("comedy"));
    }
}
