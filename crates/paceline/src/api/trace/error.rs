//! Why there is no trace.

use std::path::PathBuf;
use std::{fmt, io};

use crate::error::with_name;

/// The reason why a trace does not begin, or is not written.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let error = js.start_trace("no/such/folder/run.pftrace").unwrap_err();
/// assert!(error.to_string().starts_with("cannot write no/such/folder/run.pftrace: "));
/// ```
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be made or written.
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The events go to the program's own sink.
    HasSink,
    /// Another trace of this job system is being recorded.
    AlreadyTraced,
    /// This process is the child of a `fork`; the trace stayed with the parent.
    Forked,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::File { path, why } => {
                write!(f, "cannot write {}: {why}", path.display())
            }
            TraceError::HasSink => f.write_str(
                "the events of this job system go to the program's own sink (Builder::sink): leave that \
                 out to have a trace",
            ),
            TraceError::AlreadyTraced => f.write_str(
                "a trace of this job system is being recorded already, by a call or by PACELINE_TRACE: \
                 finish that first",
            ),
            TraceError::Forked => {
                f.write_str("this process is a fork of the one with the job system: make a new one")
            }
        }
    }
}

impl fmt::Debug for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_name(f, "TraceError", self)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::File { why, .. } => Some(why),
            _ => None,
        }
    }
}
