//! Marks: by which publishers find the waiters that a job concerns. The rule they follow is in the
//! module above.

use platform::{Atomic, Ordering, Platform};

use crate::context::{Context, Queue};
use crate::job::{Slot, Ticket};
use crate::seat::Seat;

/// A decoded mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    serial: u64,
    /// Several seats have marked the job; the last one is given.
    is_shared: bool,
    seat: u32,
}

impl Mark {
    const SEAT_BITS: u32 = 15;

    fn pack(self) -> u64 {
        (self.serial << 1 | u64::from(self.is_shared)) << Mark::SEAT_BITS | u64::from(self.seat)
    }

    /// `None` for a job nobody has marked: serials start at 1.
    fn unpack(word: u64) -> Option<Mark> {
        let mark = Mark {
            serial: word >> (Mark::SEAT_BITS + 1),
            is_shared: word >> Mark::SEAT_BITS & 1 != 0,
            seat: word as u32 & ((1 << Mark::SEAT_BITS) - 1),
        };
        (mark.serial > 0).then_some(mark)
    }
}

impl<P: Platform> Context<'_, P> {
    /// Marks a job for a walk of this seat and returns the mark, and whether it is the first of this wait
    /// (or somebody else's has replaced it); `None` if that walk was there before.
    pub(super) fn mark(&self, slot: &Slot<P>, serial: u64) -> Option<(u64, bool)> {
        let seat = self.seat.index;
        // Relaxed otherwise: see the module; the fence is the caller's. By compare-exchange, so that nobody's
        // mark is overwritten by one that does not say so.
        //
        // Mostly nobody has marked the job, so no look comes first: that would fetch a copy of a line that is
        // then fetched again to be written.
        let mut seen = 0;
        loop {
            let before = Mark::unpack(seen);
            if before.is_some_and(|mark| mark.seat == seat && mark.serial == serial) {
                return None;
            }
            let is_shared = before.is_some_and(|mark| mark.is_shared || mark.seat != seat);
            let new = Mark {
                serial,
                is_shared,
                seat,
            };
            let (relaxed, new) = (Ordering::Relaxed, new.pack());
            // Acquire, partner: the Release store in `allocate_slot`: who marks the slot's next job
            // sees in its state that it is another.
            match slot
                .mark
                .compare_exchange(seen, new, Ordering::Acquire, relaxed)
            {
                Ok(_) => {
                    let first = self.own(|own| own.marks_from);
                    let known = |mark: Mark| mark.seat == seat && mark.serial >= first;
                    return Some((new, !before.is_some_and(known)));
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Whether the innermost wait has found that it needs the job.
    pub(super) fn is_marked(&self, job: Ticket) -> bool {
        let slot = self.shared.slot(job);
        let mark = Mark::unpack(slot.mark.load(Ordering::Relaxed));
        let first = self.own(|own| own.marks_from);
        mark.is_some_and(|mark| mark.seat == self.seat.index && mark.serial >= first)
            && !slot.is_over(job)
    }

    /// Wakes the waiters that want one of the tickets just queued.
    #[cold]
    pub(crate) fn alert_watchers(&self, fresh: u32, queue: Queue) {
        let deque = match (queue, &self.seat.inbox) {
            (Queue::Inbox, Some(inbox)) => inbox,
            _ => &self.seat.deque,
        };
        let mut left = fresh;
        deque.scan(|ticket| {
            self.alert_watcher_of(ticket);
            left -= 1;
            left == 0
        });
    }

    /// Wakes the waiter that needs this job, going by the marks on it and on the jobs it was made
    /// by.
    pub(crate) fn alert_watcher_of(&self, ticket: Ticket) {
        const NESTING_MAX: usize = 64;
        let mut job = Some(ticket).filter(|job| self.shared.slots.exists(job.index()));
        for _ in 0..NESTING_MAX {
            let Some(known) = job else { return };
            let mark = self.shared.slot(known).mark.load(Ordering::Relaxed);
            if let Some(mark) = Mark::unpack(mark) {
                // A mark orders nothing. If the making of that seat is not visible here, its thread has
                // marked the job after this one's fence: the look behind its own fence sees what is published
                // here.
                match mark.is_shared {
                    false => self
                        .shared
                        .seats
                        .find(mark.seat as usize)
                        .into_iter()
                        .for_each(|seat| self.alert(seat)),
                    true => self.alert_all(),
                }
                return;
            }
            job = self.parent_of(known);
        }
    }

    /// Wakes every thread that waits.
    pub(crate) fn alert_all(&self) {
        self.shared.seats.iter().for_each(|seat| self.alert(seat));
    }

    fn alert(&self, seat: &Seat<P>) {
        let elsewhere = seat.index != self.seat.index;
        if elsewhere && seat.waits_for.load(Ordering::Relaxed) != 0 {
            self.unpark(seat);
        }
    }
}
