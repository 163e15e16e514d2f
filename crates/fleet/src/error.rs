//! Why a fleet or a sweep cannot go on.

use std::fmt;
use std::path::Path;

/// Why a fleet or a sweep cannot begin or go on: what, where, and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetError {
    text: String,
    is_input: bool,
}

impl FleetError {
    /// What was given is wrong.
    pub(crate) fn input(text: impl Into<String>) -> FleetError {
        FleetError {
            text: text.into(),
            is_input: true,
        }
    }

    /// The run failed.
    pub(crate) fn failed(text: impl Into<String>) -> FleetError {
        FleetError {
            text: text.into(),
            is_input: false,
        }
    }

    /// A file could not be read or written.
    pub(crate) fn of_file(doing: &str, path: &Path, why: impl fmt::Display) -> FleetError {
        FleetError::failed(format!("cannot {doing} {}: {why}", path.display()))
    }

    /// Whether what was given is wrong; else the run failed.
    pub fn is_input(&self) -> bool {
        self.is_input
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FleetError {}
