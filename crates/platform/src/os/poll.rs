//! The turns of naive loops, for experiments.
//!
//! The only place that gives the CPU away and hopes: `cargo xtask tidy` forbids it everywhere else in what
//! runs on a platform.

use crate::Poll;

/// One turn.
#[inline]
pub(super) fn turn(kind: Poll) {
    match kind {
        Poll::Spin => {}
        Poll::Pause => std::hint::spin_loop(),
        Poll::Yield => std::thread::yield_now(),
    }
}
