//! Running a range together: opening it, joining and leaving its crew, doing a share.

use std::ops::Range;

use event::EventKind;
use platform::{Atomic, Ordering, Platform, SharedCell};

use super::pace::Pace;
use super::slow::{NO_WORD, SLOW_OFFERS};
use super::words::{CREW_MAX, Items, RangeBlock, SharedRange, take_front};
use crate::border::caught;
use crate::context::{Context, Queue};
use crate::graph::Ending;
use crate::job::{Phase, Slot, StateWord, Ticket};

/// What a member needs to know of its range.
pub(super) struct Share<'b, P: Platform> {
    pub(super) job: Ticket,
    pub(super) block: &'b RangeBlock<P>,
    /// The number of its word.
    me: usize,
}

impl<P: Platform> Context<'_, P> {
    /// The claimer of a range job: opens it, does its share, leaves.
    pub(super) fn open_range<F>(&self, range: &SharedRange<F>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let job = self.current_job();
        let slot = self.shared.slot(job);
        let items = Items {
            lo: 0,
            hi: range.items,
        };
        if self.open(job, slot, items) {
            if self.worth_inviting(self.cost_of(slot), u64::from(range.items)) {
                self.invite(job);
            }
            self.run_share(range, 0);
            self.leave_range(job, slot);
        } else {
            // No block to be had: run it alone. Nobody can join, so nobody else can leave.
            self.run_part(job, || range.run(items, self));
            self.leave_range(job, slot);
        }
        self.after_job();
    }

    /// Gives the job its words and opens it for others. False if there is no block to be had.
    pub(super) fn open(&self, job: Ticket, slot: &Slot<P>, items: Items) -> bool {
        let blocks = &self.shared.blocks;
        let Some((index, block)) = self.own(|own| blocks.allocate(&mut own.blocks)) else {
            return false;
        };
        // Relaxed: published by the Release store below.
        block.words[0].store(items.pack(), Ordering::Relaxed);
        block.members.store(1, Ordering::Relaxed);
        block.cost.store(0, Ordering::Relaxed);
        block.tried.forget();
        slot.place.store(index, Ordering::Relaxed);
        let open = StateWord::new(job.generation(), Phase::Open, 1).pack();
        // Release, partner: the Acquire CAS in `join_range`: block and body.
        slot.state.store(open, Ordering::Release);
        true
    }

    /// Whether joining this range makes sense: it has items left and a free word.
    pub(crate) fn has_room_for_member(&self, slot: &Slot<P>) -> bool {
        let index = slot.place.load(Ordering::Relaxed);
        if !self.shared.blocks.exists(index) {
            return false;
        }
        let block = self.shared.blocks.get(index);
        block.members() < CREW_MAX && block.left() > 0
    }

    /// Joins the crew of an open range and does a share of it. False if it is not open any more.
    pub(crate) fn join_range(&self, job: Ticket, slot: &Slot<P>) -> bool {
        if !self.enter_crew(job, slot) {
            return false;
        }
        let block = self.shared.blocks.get(slot.place.load(Ordering::Relaxed));
        let number = if block.left() > 0 { block.join() } else { None };
        if let Some(number) = number {
            self.run_as_member(job, slot, number);
        }
        self.leave_range(job, slot);
        self.after_job();
        number.is_some()
    }

    /// Makes this thread one of the crew of an open range. False if it is not open any more.
    pub(super) fn enter_crew(&self, job: Ticket, slot: &Slot<P>) -> bool {
        let mut seen = slot.state.load(Ordering::Relaxed);
        loop {
            let word = StateWord::unpack(seen);
            let open = word.generation == job.generation() && word.phase == Phase::Open;
            if !open || word.crew == 0 || word.crew == StateWord::CREW_MAX {
                return false;
            }
            // Acquire, partner: the Release store in `open`. From here on the range cannot end
            // before this thread leaves it.
            let joined = slot.state.compare_exchange(
                seen,
                seen + StateWord::CREW_ONE,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match joined {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Does a share of a range as the member with this number. The caller is one of its crew.
    pub(super) fn run_as_member(&self, job: Ticket, slot: &Slot<P>, number: usize) {
        let lane = slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_BACKGROUND;
        // SAFETY: the member's share of the crew keeps table and body in place.
        unsafe {
            let table = slot
                .table
                .with(|table| *table)
                .expect("an open range has a body");
            let body = slot.body_for_crew();
            self.in_lane(lane, || {
                self.in_frame(job, || table.join(body, self, number));
            });
        }
    }

    /// One member leaves; the last one ends the job.
    pub(super) fn leave_range(&self, job: Ticket, slot: &Slot<P>) {
        // AcqRel, partner: the other members' leaving: the last one sees what all of them did.
        let before = slot.state.fetch_sub(StateWord::CREW_ONE, Ordering::AcqRel);
        let before = StateWord::unpack(before);
        if before.crew > 1 {
            return;
        }
        if before.phase == Phase::Open {
            let index = slot.place.load(Ordering::Relaxed);
            self.note_trial(slot, self.shared.blocks.get(index));
            self.own(|own| self.shared.blocks.free(&mut own.blocks, index));
        }
        // The crew is empty and no thread can join any more.
        self.discard_body(job, slot);
        let flags = slot.flags.load(Ordering::Relaxed);
        let panicked = flags & Slot::<P>::PANICKED != 0;
        let ending = if panicked {
            Ending::PanicNoted
        } else {
            Ending::Done
        };
        self.finish(job, slot, flags, ending, Queue::Own);
    }

    /// Works on a range as member `me` until nothing of it is left to take.
    pub(super) fn run_share<F>(&self, range: &SharedRange<F>, me: usize)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let job = self.current_job();
        let slot = self.shared.slot(job);
        let block = self.shared.blocks.get(slot.place.load(Ordering::Relaxed));
        let share = Share { job, block, me };
        if !self.run_part(job, || self.run_blocks(range, &share)) {
            // What is left is not run; the other members end their blocks.
            block
                .words
                .iter()
                .for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Runs this thread's part of a range. False if it panicked, which is noted then.
    fn run_part(&self, job: Ticket, part: impl FnOnce()) -> bool {
        self.seat.counters.jobs.add(1);
        self.record(EventKind::Begin, job, 0);
        let done = caught(part);
        let ran = done.is_ok();
        if let Err(payload) = done {
            let slot = self.shared.slot(job);
            // Relaxed, both: the flags that matter were there before; ordered by the member's leaving.
            let flags = slot.flags.load(Ordering::Relaxed);
            self.record_panic(job, slot, flags, payload);
            slot.flags.fetch_or(Slot::<P>::PANICKED, Ordering::Relaxed);
        }
        self.record(EventKind::End, job, 0);
        ran
    }

    fn run_blocks<F>(&self, range: &SharedRange<F>, share: &Share<'_, P>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        if share.me == NO_WORD {
            return self.run_pieces(range, share);
        }
        let slot = self.shared.slot(share.job);
        let mut offers = 0;
        let mut pace = Pace::new(self, range.grain);
        if let Some(known) = self.cost_of(slot) {
            pace.expect(known);
        }
        let mut next = match share.me {
            0 => self.take_own(share, &pace, share.block.len_of(0)),
            _ => self.steal(share, &pace).map(|(first, _)| first),
        };
        while let Some(items) = next {
            range.run(items, self);
            let left = share.block.len_of(share.me);
            pace.ran(self, items.len(), left);
            if left > 0 {
                if self.worth_inviting(pace.cost(), u64::from(left)) && self.can_invite() {
                    self.invite(share.job);
                }
                if offers < SLOW_OFFERS {
                    offers += self.offer_to_slow(share, pace.cost(), left);
                }
            }
            next = self.take_own(share, &pace, left);
            if next.is_none()
                && let Some((first, stolen)) = self.steal(share, &pace)
            {
                self.seat.counters.splits.add(1);
                let cut = u64::from(stolen.lo) << 32 | u64::from(stolen.len());
                self.record(EventKind::Split, share.job, cut);
                next = Some(first);
            }
        }
        if pace.blocks > 0 {
            self.seat.counters.blocks.add(pace.blocks);
            self.learn(slot.label.load(Ordering::Relaxed), pace.measured());
        }
    }

    /// The next block of the own share, in which `left` items are left.
    #[inline]
    fn take_own(&self, share: &Share<'_, P>, pace: &Pace, left: u32) -> Option<Items> {
        match left {
            0 => None,
            left => take_front::<P>(&share.block.words[share.me], pace.next_block(self, left)),
        }
    }

    /// Steals half of the largest share of another member: what to run first of it, and all of it. What is
    /// left of it then is the own share.
    ///
    /// Nobody sees what is run first. If it stood in the own word until it is taken from there, another
    /// member without items could steal it meanwhile, and be stolen from in turn: the last items of a range
    /// would go from one to the other, and nobody would run them.
    fn steal(&self, share: &Share<'_, P>, pace: &Pace) -> Option<(Items, Items)> {
        let stolen = share.block.steal_for(share.me)?;
        let (first, rest) = stolen.take_front(pace.next_block(self, stolen.len()));
        if rest.len() > 0 {
            share.block.keep(share.me, rest);
        }
        Some((first, stolen))
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;
    use crate::Builder;

    /// Goal: what a thief runs first cannot be stolen from it, so each item is stolen once for each time
    /// that half of a share is, and the last one once. Method: members without items steal in turn from one
    /// who has one item, or eight.
    #[test]
    fn what_is_run_first_is_nobody_elses() {
        let js = Builder::new().workers(0).build().unwrap();
        js.enter(|cx| {
            let items = |lo, hi| Items { lo, hi };
            let block = RangeBlock::<Os>::empty();
            block.members.store(3, Ordering::Relaxed);
            let pace = Pace::new(cx, 1);
            let steal = |me| {
                let job = Ticket::NONE;
                let block = &block;
                cx.steal(&Share { job, block, me }, &pace)
            };
            block.keep(0, items(0, 1));
            assert_eq!(steal(1), Some((items(0, 1), items(0, 1))));
            assert_eq!(steal(2), None);
            block.keep(0, items(0, 8));
            assert_eq!(steal(1), Some((items(4, 5), items(4, 8))));
            assert_eq!([0, 1, 2].map(|member| block.len_of(member)), [4, 3, 0]);
            assert_eq!(steal(2), Some((items(2, 3), items(2, 4))));
            assert_eq!([0, 1, 2].map(|member| block.len_of(member)), [2, 3, 1]);
        });
    }
}
