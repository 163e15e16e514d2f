//! Why a process has no page.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How long a program waits for the broker, to be heard and again to be answered.
pub(crate) const PATIENCE_MILLIS: u32 = 250;

/// How long the path of a socket may be on Linux.
pub(crate) const PATH_BYTES_MAX: usize = 107;

/// How long the broker's message is.
pub(crate) const MESSAGE_BYTES: usize = 32;

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
    /// Nothing listens there.
    NoBroker(io::Error),
    /// The path is longer than a socket's can be: so many bytes.
    PathTooLong(usize),
    /// This process may not connect to the socket.
    Denied(io::Error),
    /// So many processes wait for an answer that no further one can.
    Busy,
    /// What listens there said nothing in time.
    Silent,
    /// What listens there closed the connection, and said nothing.
    HungUp,
    /// Only so many bytes of the answer came.
    CutShort(usize),
    /// The answer could not be read, or the page cannot be mapped.
    NoAnswer(io::Error),
    /// What listens there is no broker.
    Garbled,
    /// This part of the page's header is not as the broker's answer says.
    Header(&'static str),
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

    /// The reason, by itself.
    pub fn into_kind(self) -> ConnectErrorKind {
        self.kind
    }

    /// The reason.
    pub fn kind(&self) -> &ConnectErrorKind {
        &self.kind
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hints: {}: {}", self.path.display(), self.kind)
    }
}

/// What failed, and what to do.
impl fmt::Display for ConnectErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OTHER_SOCKET: &str = "name another socket in PACELINE_HINTS";
        const STILL_RUNS: &str = "see whether its scheduler still runs";
        match self {
            ConnectErrorKind::NoBroker(error) => write!(
                f,
                "no scheduler listens there ({error}); start one that does, or do without"
            ),
            ConnectErrorKind::PathTooLong(bytes) => write!(
                f,
                "the path has {bytes} bytes, a socket's {PATH_BYTES_MAX} at most; {OTHER_SOCKET}"
            ),
            ConnectErrorKind::Denied(error) => write!(
                f,
                "this process may not connect there ({error}); it has to be allowed to write to the socket \
                 and to enter its folders"
            ),
            ConnectErrorKind::Silent => write!(
                f,
                "the broker there did not answer within {PATIENCE_MILLIS} ms; {STILL_RUNS}"
            ),
            ConnectErrorKind::CutShort(bytes) => write!(
                f,
                "{bytes} bytes of an answer came from there, and not {MESSAGE_BYTES}; {OTHER_SOCKET}"
            ),
            ConnectErrorKind::NoAnswer(error) => {
                write!(f, "the broker there gave no page ({error}); {STILL_RUNS}")
            }
            ConnectErrorKind::Header(part) => write!(
                f,
                "the page from there has a header whose {part} does not fit; {OTHER_SOCKET}"
            ),
            ConnectErrorKind::Version(theirs) => write!(
                f,
                "the broker there has pages of version {theirs}, not {}; update the older side",
                crate::VERSION
            ),
            ConnectErrorKind::OtherNumbers(theirs) => write!(
                f,
                "to the broker this process has the number {theirs}; run both in one pid namespace"
            ),
            ConnectErrorKind::Garbled => write!(
                f,
                "what listens there is no broker of hints; {OTHER_SOCKET}"
            ),
            ConnectErrorKind::Busy
            | ConnectErrorKind::HungUp
            | ConnectErrorKind::NoPage
            | ConnectErrorKind::EnoughPages
            | ConnectErrorKind::Unsupported => f.write_str(self.plain_text()),
        }
    }
}

impl ConnectErrorKind {
    /// The text of those that have no number and no part.
    fn plain_text(&self) -> &'static str {
        match self {
            ConnectErrorKind::Busy => {
                "too many programs wait for an answer there; see whether the scheduler still runs"
            }
            ConnectErrorKind::HungUp => {
                "what listens there hung up without an answer; run the program in the pid namespace of the \
                 scheduler"
            }
            ConnectErrorKind::NoPage => {
                "all pages have a process; end one of these, or start the scheduler with more \
                 (paceline-scx --pages)"
            }
            ConnectErrorKind::EnoughPages => {
                "this process has 4 pages, as many as one can have; have hints in fewer job systems"
            }
            _ => "hints take Linux, with addresses of 64 bits; do without here",
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ConnectErrorKind::NoBroker(error)
            | ConnectErrorKind::Denied(error)
            | ConnectErrorKind::NoAnswer(error) => Some(error),
            _ => None,
        }
    }
}
