//! Why a file is not read.

use std::{fmt, io};

/// Why a file is not read: the mistake, its place, and the remedy, in one line.
#[derive(Debug)]
pub struct ReadError {
    name: String,
    place: Option<u64>,
    what: String,
    remedy: String,
    source: Option<io::Error>,
}

impl ReadError {
    /// An error with its remedy.
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> ReadError {
        ReadError {
            name: String::new(),
            place: None,
            what: what.into(),
            remedy: remedy.into(),
            source: None,
        }
    }

    /// At this byte of the input, unpacked.
    pub(crate) fn at_byte(mut self, byte: u64) -> ReadError {
        self.place = Some(byte);
        self
    }

    /// In the file of this name.
    pub(super) fn of(mut self, name: &str) -> ReadError {
        name.clone_into(&mut self.name);
        self
    }

    /// The remedy.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        if let Some(byte) = self.place {
            write!(f, "byte {byte}: ")?;
        }
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.what),
            None => write!(f, "{}; {}", self.what, self.remedy),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_ref()?;
        Some(source)
    }
}

/// A refusal travels through `Read` as an error's payload; it is returned unchanged.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        match error.downcast::<ReadError>() {
            Ok(refusal) => refusal,
            Err(error) => ReadError {
                source: Some(error),
                ..ReadError::new("it cannot be read", "")
            },
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}
