//! An open loop: joining it and leaving it.

use std::ops::Range;

use platform::{Atomic, Ordering, Platform, SharedCell};

use super::body::SharedRange;
use super::participant::Participant;
use super::words::{PARTICIPANTS_MAX, RangeBlock, RangeItems};
use crate::border::caught;
use crate::graph::Ending;
use crate::queues::Queue;
use crate::store::{Erased, JobPhase, LaneFlags, Slot, StateWord, Ticket};
use crate::work::context::Context;
use crate::work::shared::Shared;

/// A range job that is open or about to be, as a thread sees it that takes part.
pub(crate) struct OpenLoop<'c, 'a, P: Platform> {
    pub(super) cx: &'c Context<'a, P>,
    pub(super) job: Ticket,
    pub(super) slot: &'c Slot<P>,
}

impl<'c, 'a, P: Platform> OpenLoop<'c, 'a, P> {
    pub(crate) fn new(cx: &'c Context<'a, P>, job: Ticket, slot: &'c Slot<P>) -> Self {
        OpenLoop { cx, job, slot }
    }

    /// The loop whose job the thread is running.
    pub(super) fn current(cx: &'c Context<'a, P>) -> Self {
        let job = cx.current_job();
        OpenLoop::new(cx, job, cx.shared.slot(job))
    }

    /// For the claimer of a range job: opens it, does a share, leaves.
    pub(super) fn open_and_run<F>(&self, range: &SharedRange<F>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let cx = self.cx;
        let items = RangeItems {
            lo: 0,
            hi: range.items,
        };
        if self.open(items) {
            let invite = || {
                let known = cx.own(|own| own.loops.cost_of(self.slot.label_number()));
                if cx.worth_inviting(known, u64::from(range.items)) {
                    cx.invite(self.job);
                }
            };
            match cx.rank_of_loops(self.job, self.slot) {
                None => invite(),
                Some(rank) => cx.with_rank(rank, invite),
            }
            self.run_share(range, 0);
        } else {
            // There is no free block: this thread runs the range alone, and no other can join.
            self.run_part(|| range.run(items, cx));
        }
        self.leave();
        cx.after_job();
    }

    /// Gives the job its words and opens it for other threads. False if there is no free block.
    pub(super) fn open(&self, items: RangeItems) -> bool {
        let (cx, slot) = (self.cx, self.slot);
        let blocks = &cx.shared.blocks;
        let allocated = cx.own(|own| blocks.allocate(&mut own.loops.blocks));
        let Some((index, block)) = allocated else {
            return false;
        };
        // Relaxed: published by the Release store below.
        block.words[0].store(items.pack(), Ordering::Relaxed);
        block.participants.store(1, Ordering::Relaxed);
        block.cost.store(0, Ordering::Relaxed);
        block.tried.forget();
        slot.place.store(index, Ordering::Relaxed);
        let open = StateWord::new(self.job.generation(), JobPhase::Open, 1).pack();
        // Release, partner: the Acquire CAS in `enter`: block and body.
        slot.state.store(open, Ordering::Release);
        true
    }

    /// Joins an open range and does a share of it. False if it is no longer open.
    pub(crate) fn join(&self) -> bool {
        if !self.enter() {
            return false;
        }
        let block = self.block();
        let number = if block.left() > 0 { block.join() } else { None };
        if let Some(number) = number {
            self.run_as_participant(number);
        }
        self.leave();
        self.cx.after_job();
        number.is_some()
    }

    /// Makes this thread a participant of an open range. False if it is no longer open.
    pub(super) fn enter(&self) -> bool {
        let state = &self.slot.state;
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            let word = StateWord::unpack(seen);
            let open = word.generation == self.job.generation() && word.phase == JobPhase::Open;
            if !open || word.participants == 0 || word.participants == StateWord::PARTICIPANTS_MAX {
                return false;
            }
            // Acquire, partner: the Release store in `open`. From here on the range cannot end before this
            // thread leaves it.
            let joined = state.compare_exchange(
                seen,
                seen + StateWord::PARTICIPANT,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match joined {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Does a share of a range as the participant with this number. The caller is a participant.
    pub(super) fn run_as_participant(&self, number: usize) {
        let (cx, slot) = (self.cx, self.slot);
        let lane = LaneFlags::made_in(slot.flags.load(Ordering::Relaxed));
        // SAFETY: the participant's share keeps table and body in place.
        unsafe {
            let table = slot
                .table
                .with(|table| *table)
                .expect("an open range has a body");
            let body = slot.body_for_participants();
            cx.work_in_lane(lane, || {
                cx.in_frame(self.job, || table.join(body, Erased::new(cx), number));
            });
        }
    }

    /// This participant leaves. The last one ends the job.
    pub(super) fn leave(&self) {
        let (cx, job, slot) = (self.cx, self.job, self.slot);
        // AcqRel, partner: the other participants' leaving: the last one sees what all of them did.
        let before = slot
            .state
            .fetch_sub(StateWord::PARTICIPANT, Ordering::AcqRel);
        let before = StateWord::unpack(before);
        debug_assert!(
            before.generation == job.generation() && before.participants > 0,
            "a thread leaves a loop in which it was not counted"
        );
        if before.participants > 1 {
            return;
        }
        if before.phase == JobPhase::Open {
            let index = slot.place.load(Ordering::Relaxed);
            let blocks = &cx.shared.blocks;
            self.note_trial(blocks.get(index));
            cx.own(|own| blocks.free(&mut own.loops.blocks, index));
        }
        // No participant is left and no thread can join any more.
        cx.graph().discard_body(job, slot);
        let flags = slot.flags.load(Ordering::Relaxed);
        let panicked = flags & Slot::<P>::PANICKED != 0;
        let ending = if panicked {
            Ending::PanicNoted
        } else {
            Ending::Done
        };
        cx.graph().finish(job, slot, flags, ending, Queue::Own);
    }

    /// Works on a range as participant `me` until there is nothing left to take.
    pub(super) fn run_share<F>(&self, range: &SharedRange<F>, me: usize)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let block = self.block();
        let participant = Participant {
            cx: self.cx,
            job: self.job,
            slot: self.slot,
            block,
            me,
        };
        if !self.run_part(|| participant.run(range)) {
            // The rest is not run. The other participants end their blocks.
            for word in &block.words {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Runs this thread's part of a range. False if it panicked; the panic is recorded then.
    fn run_part(&self, part: impl FnOnce()) -> bool {
        let (cx, job, slot) = (self.cx, self.job, self.slot);
        cx.thread.counters.jobs.add(1);
        cx.body_begins(job, slot);
        let done = cx.thread.posted.in_loop(job, || caught(part));
        let ran = done.is_ok();
        if let Err(payload) = done {
            // Relaxed, both: the flags that matter were there before. It is ordered by the participant's
            // leaving.
            let flags = slot.flags.load(Ordering::Relaxed);
            cx.graph().record_panic(job, slot, flags, payload);
            slot.flags.fetch_or(Slot::<P>::PANICKED, Ordering::Relaxed);
        }
        cx.body_has_ended(job, slot);
        ran
    }

    /// The words of the loop. They stay in place because this thread is a participant.
    fn block(&self) -> &'c RangeBlock<P> {
        let index = self.slot.place.load(Ordering::Relaxed);
        self.cx.shared.blocks.get(index)
    }
}

/// Whether joining the open loop in this slot makes sense: it has items left and a free word.
#[inline(never)]
pub(crate) fn has_room_for_participant<P: Platform>(shared: &Shared<P>, slot: &Slot<P>) -> bool {
    let index = slot.place.load(Ordering::Relaxed);
    if !shared.blocks.exists(index) {
        return false;
    }
    let block = shared.blocks.get(index);
    block.participants() < PARTICIPANTS_MAX && block.left() > 0
}
