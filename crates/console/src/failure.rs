//! The reason why a command failed, and its exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or bad input: exit code 2.
    Usage(String),
    /// The run failed, or a bound was missed: exit code 1.
    Failed(String),
    /// The reader of the output is gone: success.
    ReaderGone,
}

impl Failure {
    /// Bad usage or bad input.
    pub fn usage(what: impl fmt::Display) -> Failure {
        Failure::Usage(what.to_string())
    }

    /// The run failed, or a bound was missed.
    pub fn failed(what: impl fmt::Display) -> Failure {
        Failure::Failed(what.to_string())
    }

    /// The message; empty if its reader is gone.
    pub fn text(self) -> String {
        match self {
            Failure::Usage(text) | Failure::Failed(text) => text,
            Failure::ReaderGone => String::new(),
        }
    }

    /// Prints the message on standard error, in one line that begins with the program's name, and gives the
    /// exit code.
    pub fn report(self, program: &str) -> ExitCode {
        let (text, code) = match self {
            Failure::Usage(text) => (text, 2),
            Failure::Failed(text) => (text, 1),
            Failure::ReaderGone => return ExitCode::SUCCESS,
        };
        let line = text.replace(['\n', '\r'], " ");
        // Standard error may be closed, too; the exit code is still there.
        let _ = writeln!(io::stderr(), "{program}: {line}");
        ExitCode::from(code)
    }
}

/// An error of writing to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Failed(format!("cannot write to standard output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a reader that has gone away is no error, and any other error of writing is one. Method: one of
    /// each.
    #[test]
    fn a_broken_pipe_is_success() {
        let gone = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(gone, Failure::ReaderGone));
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, Failure::Failed(_)));
    }
}
