//! Why a process has no page.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why [`connect`](crate::connect) got no page. It is one line: what failed, where, and what to do.
#[derive(Debug)]
pub struct ConnectError {
    path: PathBuf,
    kind: ConnectErrorKind,
}

/// The reasons.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// Nothing listens there, or it may not be connected to.
    NoBroker(io::Error),
    /// What listens there did not answer, or its page cannot be mapped.
    NoAnswer(io::Error),
    /// What listens there is no broker.
    Garbled,
    /// The broker's pages are of another version.
    Version(u32),
    /// All pages have a process.
    NoPage,
    /// This process has as many pages as one can have.
    EnoughPages,
    /// To the broker this process has another number: it is in a namespace of its own.
    OtherNumbers(u32),
    /// The system is not Linux with addresses of 64 bits.
    Unsupported,
}

impl ConnectError {
    pub(crate) fn new(path: &Path, kind: ConnectErrorKind) -> ConnectError {
        ConnectError {
            path: path.to_owned(),
            kind,
        }
    }

    /// The reason.
    pub fn kind(&self) -> &ConnectErrorKind {
        &self.kind
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hints: {}: ", self.path.display())?;
        match &self.kind {
            ConnectErrorKind::NoBroker(error) => write!(
                f,
                "no scheduler listens there ({error}); start one that does, or do without"
            ),
            ConnectErrorKind::NoAnswer(error) => write!(
                f,
                "the broker there gave no page ({error}); see whether its scheduler still runs"
            ),
            ConnectErrorKind::Garbled => f.write_str(
                "what listens there is no broker of hints; name another socket in PACELINE_HINTS",
            ),
            ConnectErrorKind::Version(theirs) => write!(
                f,
                "the broker there has pages of version {theirs}, not {}; update the older side",
                crate::VERSION
            ),
            ConnectErrorKind::NoPage => f.write_str(
                "all pages have a process; end one of these, or start the scheduler with more pages",
            ),
            ConnectErrorKind::EnoughPages => f.write_str(
                "this process has as many pages as one can have; share one among its job systems",
            ),
            ConnectErrorKind::OtherNumbers(theirs) => write!(
                f,
                "to the broker this process has the number {theirs}; run both in one pid namespace"
            ),
            ConnectErrorKind::Unsupported => {
                f.write_str("hints take Linux, with addresses of 64 bits; do without here")
            }
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ConnectErrorKind::NoBroker(error) | ConnectErrorKind::NoAnswer(error) => Some(error),
            _ => None,
        }
    }
}
