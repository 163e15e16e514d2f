//! `rustland-333`: `scx_rustland` with the pull request of source 004 as it was merged (June 2024).
//!
//! The slice is the distance between the task's virtual time and the least one, at least 0.25 ms, without an
//! upper limit: "considering the vruntime as a deadline for the task to complete its work". Virtual time is
//! made from the time that the task *used* in its last turn, and not from a promise, so the example printed
//! in source 004 does not follow from it. With a least slice of one unit there are 10 switches instead of 7,
//! and with the real constants (units of 1 ms) 36, if the tasks have run before and are dispatched in bursts.
//! On a busy CPU they are dispatched one at a time, and tasks that begin have used nothing, so that every
//! slice is the least one.
//!
//! Where it is bad: two equal hogs starve each other of long slices. Each one's slice is the difference
//! between its own last one and the other's, s(k+1) = s(k−1) − s(k), as in Euclid's algorithm, until both
//! are at the least slice for good. Long slices are only for hogs that wait behind tasks with small virtual
//! times.

use event::Nanos;

use super::{Constants, Position, Rustland};

/// The policy. See the file's beginning.
pub fn merged(constants: Constants) -> Rustland {
    Rustland::new("rustland-333", constants, slice)
}

fn slice(constants: &Constants, position: Position) -> Nanos {
    position.ahead.max(constants.slice_min)
}
