//! One thread's memory of the CPU time that it had used.

use platform::Usage;

/// A thread's memory of the CPU time that it had used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sampler {
    /// The frame in which the thread noted its usage last.
    pub(super) frame: u64,
    /// Frames in which it noted its usage since the last sample.
    pub(super) frames: u32,
    /// The last sample.
    pub(super) then: Option<Usage>,
    /// The last sample showed that the thread was delayed.
    pub(super) was_delayed: bool,
}
