//! What one thread remembers of what it had used.

use platform::Usage;

/// What a thread remembers of what it had used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sampler {
    /// The frame in which it looked last.
    pub(super) frame: u64,
    /// Looks since the last close one.
    pub(super) looks: u32,
    /// What the last close look found.
    pub(super) then: Option<Usage>,
    /// It was worth it.
    pub(super) is_close: bool,
}
