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

/// The reserve of the calling thread's stack; nothing if it is not known where that is. A function may be on
/// another stack, as in a fiber. That is not in the reserve, and how much is left there is not known.
#[derive(Clone, Copy, Default)]
pub(crate) struct StackLimits {
    /// The lowest address of the stack, at which the reserve begins.
    end: usize,
    /// The bytes of the reserve.
    reserve: usize,
}

impl StackLimits {
    /// Those of the calling thread, which is on its own stack.
    pub(crate) fn of<P: Platform>(platform: &P) -> Self {
        platform.stack_end().map_or_else(Self::default, |end| {
            let room = here().saturating_sub(end);
            let reserve = RESERVE.min(room / RESERVE_PARTS);
            StackLimits { end, reserve }
        })
    }

    /// A stack of which only the reserve is left, wherever the stack is: threads of a model are on stacks of
    /// their own, which may lie far apart.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn only_reserve() -> Self {
        // Addresses differ by far less than the room on either side of three quarters.
        let reserve = 1 << (usize::BITS - 2);
        StackLimits {
            end: here().wrapping_sub(reserve / 4 * 3),
            reserve,
        }
    }

    /// Whether the calling function is not in the reserve.
    #[inline]
    pub(super) fn has_stack(self) -> bool {
        here().wrapping_sub(self.end) >= self.reserve
    }

    /// Whether it is not in the second half of the reserve.
    pub(super) fn has_reserve(self) -> bool {
        here().wrapping_sub(self.end) >= self.reserve / 2
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
