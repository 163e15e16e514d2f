//! The event for a task that is put aside because the CPU time of its group is used up.
//!
//! No kernel has an event for it, so Perfetto has no message for one. It is written as an event with a name
//! and named values ("generic"), which Perfetto keeps as it is.
//!
//! Invariant: these words never mean anything else.

/// The name of the event.
pub(crate) const EVENT: &str = "paceline_throttle";
/// The task: the number by which the file knows it.
pub(crate) const TID: &str = "tid";
/// 1: it is put aside; 0: it may go on.
pub(crate) const BEGINS: &str = "begins";
