//! What is known beside a recording, and why there may be no program of it.

use std::fmt;

use event::Nanos;
use sim::Machine;

/// What is known beside the recording.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// The machine that a simulator's recording was made on. Then the costs of its kernel are taken out of
    /// the threads' time, and the replay is exact.
    pub machine: Option<Machine>,
    /// The policy; none: what the kernel's release suggests.
    pub policy: Option<String>,
    /// The time between two ticks; none: 4 ms.
    pub tick: Option<Nanos>,
    /// Texts in the names of slices that are busy waits although their names do not say so.
    pub busy: Vec<String>,
    /// Texts in the names of slices that are pieces of work, which changes cut: `Change::pieces` has them.
    pub pieces: Vec<String>,
    /// Whether slices that mean that a thread holds a lock are marked, for changes that hand locks over:
    /// `Change::hands_over` says so.
    pub owners: bool,
}

/// Why there is no program, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplayable(pub String);

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unplayable {}
