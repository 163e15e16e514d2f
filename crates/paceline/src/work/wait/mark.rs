//! Marks: through them publishers find the waiters that need a job. The module above has the rule for them.

use platform::{Atomic, Ordering, Platform};

use super::waiter::Waiter;
use crate::store::{Slot, Ticket};
use crate::work::context::Context;

/// A decoded mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    serial: u64,
    /// Several thread slots have marked the job. `thread` is the last of them.
    pub(crate) is_shared: bool,
    pub(crate) thread: u32,
}

impl Mark {
    const THREAD_BITS: u32 = 15;

    fn pack(self) -> u64 {
        debug_assert!(self.thread < 1 << Mark::THREAD_BITS && self.serial < 1 << 48);
        (self.serial << 1 | u64::from(self.is_shared)) << Mark::THREAD_BITS | u64::from(self.thread)
    }

    /// `None` for a job without a mark: serials start at 1.
    pub(crate) fn unpack(word: u64) -> Option<Mark> {
        let mark = Mark {
            serial: word >> (Mark::THREAD_BITS + 1),
            is_shared: word >> Mark::THREAD_BITS & 1 != 0,
            thread: word as u32 & ((1 << Mark::THREAD_BITS) - 1),
        };
        (mark.serial > 0).then_some(mark)
    }
}

impl<P: Platform> Waiter<'_, '_, P> {
    /// Marks a job for a walk of this thread slot. Returns the mark, and whether it is the first mark of this
    /// wait (or the first since another thread's mark replaced it). `None` if this walk has already visited
    /// the job.
    #[inline]
    pub(super) fn mark(&self, slot: &Slot<P>) -> Option<(u64, bool)> {
        self.cx.mark_for(slot, self.walk.serial)
    }

    /// Whether the innermost wait has found that it needs the job.
    pub(super) fn is_marked(&self, job: Ticket) -> bool {
        let slot = self.cx.shared.slot(job);
        let mark = Mark::unpack(slot.mark.load(Ordering::Relaxed));
        let first = self.cx.own(|own| own.wait.marks_from);
        mark.is_some_and(|mark| mark.thread == self.cx.thread.index && mark.serial >= first)
            && !slot.is_over(job)
    }
}

impl<P: Platform> Context<'_, P> {
    /// Marks a job for the walk of this thread slot with this number; as [`Waiter::mark`].
    #[inline]
    pub(super) fn mark_for(&self, slot: &Slot<P>, serial: u64) -> Option<(u64, bool)> {
        let thread = self.thread.index;
        // Relaxed otherwise: see the module; the caller fences. It is a compare-exchange, so that a mark that
        // overwrites another thread's mark says so.
        //
        // Mostly the job has no mark, so there is no load first: that would fetch a copy of a line that is
        // then fetched again to be written.
        let mut seen = 0;
        loop {
            let before = Mark::unpack(seen);
            if before.is_some_and(|mark| mark.thread == thread && mark.serial == serial) {
                return None;
            }
            let is_shared = before.is_some_and(|mark| mark.is_shared || mark.thread != thread);
            let new = Mark {
                serial,
                is_shared,
                thread,
            };
            let (relaxed, new) = (Ordering::Relaxed, new.pack());
            // Acquire, partner: the Release store in `make`: a thread that marks the slot's next job sees in
            // its state that it is another job.
            match slot
                .mark
                .compare_exchange(seen, new, Ordering::Acquire, relaxed)
            {
                Ok(_) => {
                    let first = self.own(|own| own.wait.marks_from);
                    let known = |mark: Mark| mark.thread == thread && mark.serial >= first;
                    return Some((new, !before.is_some_and(known)));
                }
                Err(now) => seen = now,
            }
        }
    }
}
