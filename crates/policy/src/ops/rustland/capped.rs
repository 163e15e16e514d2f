//! `rustland-333-capped`: `scx_rustland` one day after the pull request of source 004 was merged.
//!
//! As [`merged`](super::merged()), but no slice is longer than the base slice ("never use a time slice that
//! exceeds the default value", pull request 336, after tasks had failed to run for more than five seconds).
//!
//! In this model the limit changes nothing, and a test checks that: a task joins the pool at most a base
//! slice ahead of the least virtual time, which only grows. The cause of the long slices in the field is not
//! in the documented rule.
//!
//! Where it is bad: as [`merged`](super::merged()).

use event::Nanos;

use super::{Constants, Position, Rustland};

/// The policy. See the file's beginning.
pub fn capped(constants: Constants) -> Rustland {
    Rustland::new("rustland-333-capped", constants, slice)
}

fn slice(constants: &Constants, position: Position) -> Nanos {
    position.ahead.min(constants.slice).max(constants.slice_min)
}
