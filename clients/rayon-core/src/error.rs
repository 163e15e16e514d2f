//! Why a pool could not be built.

use std::error::Error;
use std::{fmt, io};

use paceline::BuildError;

/// Why a pool could not be built.
///
/// ```
/// use rayon_core::ThreadPoolBuilder;
/// ThreadPoolBuilder::new().build_global().unwrap();
/// let again = ThreadPoolBuilder::new().build_global().unwrap_err();
/// assert_eq!(again.to_string(), "The global thread pool has already been initialized.");
/// ```
#[derive(Debug)]
pub struct ThreadPoolBuildError {
    kind: ErrorKind,
}

#[derive(Debug)]
pub(crate) enum ErrorKind {
    GlobalPoolAlreadyInitialized,
    CurrentThreadAlreadyInPool,
    Io(io::Error),
}

impl ThreadPoolBuildError {
    pub(crate) fn new(kind: ErrorKind) -> ThreadPoolBuildError {
        ThreadPoolBuildError { kind }
    }

    /// Whether the system has no threads at all.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(&self.kind, ErrorKind::Io(error) if error.kind() == io::ErrorKind::Unsupported)
    }
}

impl From<io::Error> for ThreadPoolBuildError {
    fn from(error: io::Error) -> Self {
        ThreadPoolBuildError::new(ErrorKind::Io(error))
    }
}

impl From<BuildError> for ThreadPoolBuildError {
    fn from(error: BuildError) -> Self {
        io::Error::other(error).into()
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized | ErrorKind::CurrentThreadAlreadyInPool => None,
            ErrorKind::Io(error) => Some(error),
        }
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Programs compare the first two.
        match &self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized => {
                f.pad("The global thread pool has already been initialized.")
            }
            ErrorKind::CurrentThreadAlreadyInPool => {
                f.pad("The current thread is already part of another thread pool.")
            }
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}
