//! A writer's report of its work.

/// The result of writing a recording, and the changes that it needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records of the file.
    pub packets: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Bodies, waits and frames whose end is not in the recording: they end with the recording, or with the
    /// slice around them.
    pub unfinished: u64,
    /// Ends of bodies, waits and frames whose beginning is not in the recording: left out.
    pub unbegun: u64,
    /// Spans of the program's own that crossed the end of another slice and go on as a second one.
    pub split: u64,
    /// Kernel events written some nanoseconds late, because the file's order would otherwise be unclear.
    pub delayed: u64,
}
