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
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty())
        .take_while(is_what)
        .collect();
    let (tips, what): (Vec<&str>, Vec<&str>) = lines
        .into_iter()
        .partition(|line| line.starts_with("tip: "));
    let what = in_plain_words(&what.join(" "));
    let mut what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    // What stands behind `--` is for commands that take such things, and few do.
    for tip in tips.iter().filter(|tip| !tip.contains("'-- ")) {
        what += "; ";
        what += tip;
    }
    let name = program.get_name();
    let given = arguments.get(1).and_then(|argument| argument.to_str());
    match given.filter(|given| program.find_subcommand(given).is_some()) {
        Some(command) => format!("{what}; see '{name} {command} --help'"),
        None => format!("{what}; see '{name} --help'"),
    }
}

/// A message without the words of the parsers of numbers.
fn in_plain_words(message: &str) -> String {
    let words = [
        ("invalid digit found in string", "give a whole number"),
        (
            "cannot parse integer from empty string",
            "give a whole number",
        ),
        (
            "number too large to fit in target type",
            "this number is too large",
        ),
        (
            "number too small to fit in target type",
            "this number is too small",
        ),
    ];
    let plain = |text: String, (word, plain): (&str, &str)| text.replace(word, plain);
    words.into_iter().fold(message.to_owned(), plain)
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
        #[arg(long)]
        times: Option<u64>,
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

    /// Goal: clap's tips are told apart from what is wrong, and the one that would not help is left out.
    /// Method: an option that nearly exists, and a number that looks like one.
    #[test]
    fn tips_are_parts_of_the_line() {
        let option = refused(&["theatre", "rehearse", "--plaey", "farce"]);
        let tip =
            "unexpected argument '--plaey' found; tip: a similar argument exists: '--play'; see ";
        assert!(option.starts_with(tip), "{option}");
        let times = refused(&["theatre", "rehearse", "--times", "x"]);
        assert!(
            times.contains("'--times <TIMES>': give a whole number"),
            "{times}"
        );
        let number = refused(&["theatre", "rehearse", "-3"]);
        let line = "unexpected argument '-3' found; see 'theatre rehearse --help'";
        assert_eq!(number, line);
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
