//! The marks of programs: atrace's markers, track events, Chrome's phases.

use event::{Nanos, Task};

use super::Name;

/// A mark of a thread at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its time.
    pub time: Nanos,
    /// The thread that it belongs to.
    pub on: Task,
    /// Its kind.
    pub what: MarkKind,
}

impl Mark {
    /// The first words of a slice that a reader makes of a call by binder, which the kernel tells of.
    pub const BINDER_CALL: &str = "binder call ";
    /// The first words of a slice that a reader makes of a wait for a device's fence.
    pub const FENCE_WAIT: &str = "device fence ";
}

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A slice begins, inside of those that are open on this thread.
    Begin(Name),
    /// The innermost slice of this thread ends.
    End,
    /// A slice begins that may end on another thread, and need not nest.
    AsyncBegin {
        /// Its name.
        name: Name,
        /// Its number, which differs from those of other open slices of this name in the same process.
        cookie: u64,
    },
    /// It ends.
    AsyncEnd {
        /// Its name.
        name: Name,
        /// Its number, which differs from those of other open slices of this name in the same process.
        cookie: u64,
    },
    /// An instant with a name.
    Instant(Name),
    /// An arrow passes through the innermost slice of this thread, from the one it passed through before.
    Flow {
        /// The number of the arrow.
        id: u64,
        /// Whether it ends here.
        ends: bool,
    },
}
