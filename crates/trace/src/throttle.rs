//! How files say that a task is put aside because the CPU time that its group may use is used up.
//!
//! No kernel has an event for it, so Perfetto has no message for one: it is written as one of those events
//! that have a name and named values ("generic"), which Perfetto keeps as they are.
//!
//! Invariant: these words never mean anything else.

/// The event.
pub(crate) const EVENT: &str = "paceline_throttle";
/// Which task: the number by which the file knows it.
pub(crate) const TID: &str = "tid";
/// 1: it is put aside; 0: it may go on.
pub(crate) const BEGINS: &str = "begins";
