//! `virtual-slice`: the rule that source 004's example follows, idealised. For the simulator only.
//!
//! Its model: the text of the pull request "scx_rustland: introduce virtual time slice" (source 004), where a
//! task's slice is the distance between its virtual time and the least one, and its virtual time says how
//! soon it *promises* to be done. The printed example, `ABBCCCDABCCCDDDDD`, follows if promises are fixed
//! numbers (the example's table) and work is done in bursts: all ready tasks are put into order and
//! dispatched before anything is queued again. The least slice is one unit: the lone D is 6 − 6 = 0 units,
//! raised to 1.
//!
//! The code that was merged differs: it takes a task's last CPU time for its promise
//! ([`rustland-333`](super::rustland)). No kernel knows promises; here they are [`Attr::slice`](crate::Attr),
//! through [`Ops::hint`](super::Ops::hint). Slices end exactly, and the scheduler costs nothing.
//!
//! Where it is bad: a task that promises the same as its neighbour gets a slice of one unit, however much it
//! needs; so equal hogs are cut into the shortest slices, except the first of each burst. A promise is not
//! checked against the use. A task that wakes up in a burst waits until all of it has run.

use event::Nanos;

use super::{Bursts, Promises};

/// The policy. See the file's beginning.
pub fn virtual_slice(promises: Promises) -> Bursts {
    Bursts::new("virtual-slice", promises, slice)
}

fn slice(promises: &Promises, ahead: Nanos) -> Nanos {
    ahead.max(promises.unit)
}
