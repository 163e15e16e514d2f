//! What the kernel's recorder says when it is asked: no, or how much it has.

use std::fmt;

/// The kernel's events cannot be recorded; why, and what could be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Counts of events that the kernel recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that can be read.
    pub entries: u64,
    /// Those that cannot: overwritten by later ones, or without a place from the beginning.
    pub lost: u64,
}
