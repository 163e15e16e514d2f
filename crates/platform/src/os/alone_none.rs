//! Rests of the only thread there can ever be: on this system there can be others.

use event::Nanos;

/// Whether the calling thread is the only one there can ever be.
#[inline]
pub(super) fn is_certain() -> bool {
    false
}

/// Rests until `deadline` if no other thread can ever wake this one; false if that is not certain.
#[inline]
#[allow(dead_code, reason = "where threads park by a futex they rest there")]
pub(super) fn rest(_deadline: Nanos) -> bool {
    false
}
