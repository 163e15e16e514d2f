//! What programs said about themselves: atrace's markers, track events, Chrome's phases.

use event::{Nanos, Task};

use super::Name;

/// Something a thread said at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub time: Nanos,
    /// Whose track it is on.
    pub on: Task,
    /// What.
    pub what: MarkKind,
}

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A slice begins, inside of those that are open on this thread.
    Begin(Name),
    /// The innermost slice of this thread ends.
    End,
    /// A slice begins that may end on another thread, and need not nest.
    AsyncBegin {
        /// What it is called.
        name: Name,
        /// What tells it from others of this name in the same process.
        cookie: u64,
    },
    /// It ends.
    AsyncEnd {
        /// What it is called.
        name: Name,
        /// What tells it from others of this name in the same process.
        cookie: u64,
    },
    /// An instant with a name.
    Instant(Name),
    /// An arrow passes through the innermost slice of this thread, from the one it passed through before.
    Flow {
        /// Which arrow.
        id: u64,
        /// Whether it ends here.
        ends: bool,
    },
}
