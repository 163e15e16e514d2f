//! Why a command did not do what it was asked, and the exit code for it.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or bad input: exit code 2.
    Usage(String),
    /// The thing failed, or a bound was missed: exit code 1.
    Failed(String),
    /// Nobody reads the output any more: success.
    ReaderGone,
}

impl Failure {
    pub(crate) fn usage(what: impl fmt::Display) -> Failure {
        Failure::Usage(what.to_string())
    }

    pub(crate) fn failed(what: impl fmt::Display) -> Failure {
        Failure::Failed(what.to_string())
    }

    /// What there is to say; empty if nobody reads it.
    pub(crate) fn text(self) -> String {
        match self {
            Failure::Usage(text) | Failure::Failed(text) => text,
            Failure::ReaderGone => String::new(),
        }
    }

    /// Says it on standard error, in one line, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Usage(text) => (text, 2),
            Failure::Failed(text) => (text, 1),
            Failure::ReaderGone => return ExitCode::SUCCESS,
        };
        let line = text.replace(['\n', '\r'], " ");
        // Standard error may be closed, too; the exit code still says it.
        let _ = writeln!(io::stderr(), "paceline: {line}");
        ExitCode::from(code)
    }
}

/// Of writing to standard output.
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

    /// Goal: a reader that has gone away is no error, any other write error is one. Method: one of
    /// each.
    #[test]
    fn a_broken_pipe_is_success() {
        let gone = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(gone, Failure::ReaderGone));
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, Failure::Failed(_)));
    }
}
