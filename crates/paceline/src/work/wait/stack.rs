//! How deep waits may nest.
//!
//! A wait that helps runs bodies on top of the waiting one, and these may wait in turn. Each level takes
//! about a kilobyte and a half of stack, besides what the bodies themselves take. A stack that is used up
//! ends the process, so a part of it is kept in reserve. A wait that finds less than the reserve starts no
//! further body. A scope or wait that has no other way to go on panics, while that panic can still be caught.
//!
//! The reserve is for the bodies that run on it. A body that takes more by itself overflows the stack as it
//! would anywhere.

use platform::Platform;

/// The size of the reserve, on stacks that are large enough.
const RESERVE: usize = 128 << 10;

/// On a small stack the reserve is one in this many parts of it.
const RESERVE_PARTS: usize = 4;

/// About where the stack of the calling function is at this moment.
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

/// Whether the calling function is above the reserve that begins at `limit`.
#[inline]
pub(super) fn is_above(limit: usize) -> bool {
    here() > limit
}

#[cold]
pub(super) fn no_stack_left() -> ! {
    panic!(
        "waits and scopes are nested too deep: less than {} KiB of this thread's stack are left, and there \
         is no worker to run what it waits for; use `after` instead of waiting inside of jobs, or a larger \
         stack",
        RESERVE >> 10
    )
}
