//! Where the reserve of a thread's stack is (`reserve`).

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

/// Addresses in the calling thread's stack; 0 if it is not known where that is.
#[derive(Clone, Copy, Default)]
pub(crate) struct StackLimits {
    /// Below it is the reserve.
    reserve: usize,
    /// The middle of the reserve.
    middle: usize,
}

impl StackLimits {
    /// Those of the calling thread.
    pub(crate) fn of<P: Platform>(platform: &P) -> Self {
        platform.stack_end().map_or_else(Self::default, |end| {
            let room = here().saturating_sub(end);
            let size = RESERVE.min(room / RESERVE_PARTS);
            StackLimits {
                reserve: end + size,
                middle: end + size / 2,
            }
        })
    }

    /// A stack of which only the reserve is left.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn only_reserve() -> Self {
        StackLimits {
            reserve: usize::MAX,
            middle: 0,
        }
    }

    /// Whether the calling function is above the reserve.
    #[inline]
    pub(super) fn has_stack(self) -> bool {
        here() > self.reserve
    }

    /// Whether it is above the second half of the reserve.
    pub(super) fn has_reserve(self) -> bool {
        here() > self.middle
    }
}

#[cold]
pub(super) fn no_stack_left() -> ! {
    panic!(
        "waits and scopes are nested too deep: less than {} KiB of this thread's stack are left, and no \
         other worker is free to run what it waits for; use `after` instead of waiting inside of jobs, or \
         a larger stack",
        RESERVE >> 10
    )
}
