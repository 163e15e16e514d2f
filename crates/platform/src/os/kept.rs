//! How much the kernel's recorder has.

/// Counts of events that the kernel recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that can be read.
    pub entries: u64,
    /// Those that cannot: overwritten by later ones, or without a place from the beginning.
    pub lost: u64,
}
