//! How deep waits may nest.
//!
//! A wait that helps runs bodies on top of the waiting one, and these may wait in turn: about a kilobyte and
//! a half of stack a level, and what the bodies themselves take. A stack that is used up ends the process, so
//! a part of it is kept in reserve: a wait that finds less than that starts no further body, and a scope or
//! wait that has no other way to go on panics while that still can be caught.
//!
//! The reserve is for the bodies that run on it. One that takes more by itself overflows as it would
//! anywhere.

use platform::Platform;

use crate::context::Context;

/// How much is kept in reserve, of stacks that have it to spare.
const RESERVE: usize = 128 << 10;

/// The part of a small stack that is kept in reserve.
const RESERVE_PARTS: usize = 4;

/// About where the stack of the calling function is.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    &raw const local as usize
}

/// The address below which the reserve of the calling thread's stack begins; 0 if it is not known.
pub(crate) fn limit<P: Platform>(platform: &P) -> usize {
    let room = |end| here().saturating_sub(end);
    let limit = |end| end + RESERVE.min(room(end) / RESERVE_PARTS);
    platform.stack_end().map_or(0, limit)
}

impl<P: Platform> Context<'_, P> {
    /// Whether a body may be started on top of what this thread is in the middle of.
    #[inline]
    pub(crate) fn has_stack(&self) -> bool {
        here() > self.own(|own| own.stack_limit)
    }

    /// For a call that may have to run bodies here, and can still fail.
    ///
    /// # Panics
    /// If there is no stack left for them, and no worker to run them instead.
    #[inline]
    pub(crate) fn check_stack(&self) {
        if !self.has_stack() && self.shared.crew.active() == 0 {
            no_stack_left();
        }
    }
}

#[cold]
fn no_stack_left() -> ! {
    panic!(
        "waits and scopes are nested too deep: less than {} KiB of this thread's stack are left, and there \
         is no worker to run what it waits for; use `after` instead of waiting inside of jobs, or a larger \
         stack",
        RESERVE >> 10
    )
}
