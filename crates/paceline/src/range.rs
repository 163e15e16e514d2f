//! Parallel loops: one word per member of the crew, taken from the front and cut from the back.
//!
//! A range being run is a word `hi 32 | lo 32` for each thread that takes part. The owner of a word
//! takes a block from `lo`; a member without items cuts the largest word of another in half at `hi`.
//! Both are one CAS on one word, nothing is allocated or queued per piece, and a member that is
//! preempted strands one block, never its whole share.
//!
//! The words belong to the range, in a block that is reused only when every member has left: an
//! interval of items is handed out once, so a word that looks as it did before *is* what it was, and
//! a CAS from an old reading cannot go wrong.
//!
//! Blocks grow until one takes [`Tuning::BLOCK`]. Others are invited (one more ticket for the same
//! job) only when somebody is hungry and the rest is worth more than the invitation: a loop that
//! never leaves its thread costs a clock stamp per block.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use event::{EventKind, Nanos};
use platform::{Atomic, Memory, Ordering, Padded, Platform, SharedCell};

use crate::context::{Context, Queue};
use crate::error::{ScheduleError, WaitError};
use crate::failure::Failure;
use crate::graph::Ending;
use crate::job::{Body, BodyTable, Label, Phase, Slot, StateWord, Ticket};
use crate::policy::{Grain, Tuning};

/// Most threads that take part in one range.
pub(crate) const CREW_MAX: usize = 32;

/// The words of one range that is being run.
pub(crate) struct RangeBlock<M: Memory> {
    /// Members so far; each has the word with its number.
    members: M::AtomicU32,
    words: [Padded<M::AtomicU64>; CREW_MAX],
}

impl<M: Memory> RangeBlock<M> {
    /// A block of no range.
    pub(crate) fn empty() -> Self {
        RangeBlock {
            members: M::AtomicU32::new(0),
            words: std::array::from_fn(|_| Padded(M::AtomicU64::new(0))),
        }
    }
}

/// A decoded range word: the items not yet taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Items {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
}

impl Items {
    #[inline]
    fn pack(self) -> u64 {
        u64::from(self.hi) << 32 | u64::from(self.lo)
    }

    #[inline]
    fn unpack(word: u64) -> Items {
        Items {
            lo: word as u32,
            hi: (word >> 32) as u32,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.hi.saturating_sub(self.lo)
    }

    /// Splits off up to `most` items at the front.
    #[inline]
    fn take_front(self, most: u32) -> (Items, Items) {
        let cut = self.lo + most.min(self.len());
        (
            Items {
                lo: self.lo,
                hi: cut,
            },
            Items {
                lo: cut,
                hi: self.hi,
            },
        )
    }

    /// Splits off the back half; all of it if that is a single item.
    #[inline]
    fn cut_half(self) -> (Items, Items) {
        let cut = self.lo + self.len() / 2;
        (
            Items {
                lo: self.lo,
                hi: cut,
            },
            Items {
                lo: cut,
                hi: self.hi,
            },
        )
    }
}

/// Takes up to `most` items from the front of a word.
pub(crate) fn take_front<M: Memory>(word: &M::AtomicU64, most: u32) -> Option<Items> {
    change(word, |items| {
        let (taken, rest) = items.take_front(most);
        (taken, rest)
    })
}

/// Takes the back half of a word.
pub(crate) fn cut_half<M: Memory>(word: &M::AtomicU64) -> Option<Items> {
    change(word, |items| {
        let (rest, taken) = items.cut_half();
        (taken, rest)
    })
}

#[inline]
fn change(word: &impl Atomic<u64>, split: impl Fn(Items) -> (Items, Items)) -> Option<Items> {
    // Relaxed, here and below: the word is the whole state; what the items stand for was published
    // when the range was opened, and its members see that by joining.
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let items = Items::unpack(seen);
        if items.len() == 0 {
            return None;
        }
        let (taken, rest) = split(items);
        let new = rest.pack();
        match word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(taken),
            Err(now) => seen = now,
        }
    }
}

impl<M: Memory> RangeBlock<M> {
    /// Gives a new member its number, if there is room.
    fn join(&self) -> Option<usize> {
        // Relaxed: a number is given out once; the words are the state.
        let number = self.members.fetch_add(1, Ordering::Relaxed) as usize;
        if number >= CREW_MAX {
            self.members.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(number)
    }

    fn members(&self) -> usize {
        (self.members.load(Ordering::Relaxed) as usize).min(CREW_MAX)
    }

    /// Cuts the largest share of another member in half and makes it the own one.
    fn steal_for(&self, me: usize) -> Option<Items> {
        loop {
            let share =
                |&other: &usize| Items::unpack(self.words[other].load(Ordering::Relaxed)).len();
            let others = (0..self.members()).filter(|&other| other != me);
            let victim = others.max_by_key(share).filter(|other| share(other) > 0)?;
            if let Some(items) = cut_half::<M>(&self.words[victim]) {
                // Nobody changes an empty word but its owner.
                self.words[me].store(items.pack(), Ordering::Relaxed);
                return Some(items);
            }
        }
    }

    fn left(&self) -> u64 {
        let words = &self.words[..self.members()];
        words
            .iter()
            .map(|w| u64::from(Items::unpack(w.load(Ordering::Relaxed)).len()))
            .sum()
    }
}

/// The body of a range: the closure and what it ranges over.
pub(crate) struct SharedRange<F> {
    start: usize,
    items: u32,
    grain: u32,
    body: F,
}

impl<F> SharedRange<F> {
    pub(crate) fn new(range: Range<usize>, grain: Grain, body: F) -> Result<Self, ScheduleError> {
        let items = range.end.saturating_sub(range.start);
        let too_long = ScheduleError::TooLong { items };
        let items = u32::try_from(items).map_err(|_| too_long)?;
        Ok(SharedRange {
            start: range.start,
            items,
            grain: grain.items(),
            body,
        })
    }
}

/// The table of a range's body, by platform and closure.
pub(crate) struct RangeTable<P, F>(std::marker::PhantomData<(P, F)>);

impl<P: Platform, F: Fn(Range<usize>, &Context<'_, P>) + Sync> RangeTable<P, F> {
    pub(crate) const TABLE: BodyTable<P> = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds a `SharedRange<F>`, which stays
            // there until the last member has left.
            let range = unsafe { Body::peek::<SharedRange<F>>(body) };
            context.open_range(range);
        },
        join: |body, context, number| {
            // SAFETY: as above; the caller is a member.
            let range = unsafe { Body::peek::<SharedRange<F>>(body) };
            context.run_share(range, number);
        },
        discard: |body| {
            // SAFETY: as above; nobody is a member any more, or nobody ever was.
            drop(unsafe { Body::take::<SharedRange<F>>(body) });
        },
        drop_result: BodyTable::<P>::NO_RESULT,
    };
}

/// What a member needs to know of its range.
struct Share<'b, P: Platform> {
    job: Ticket,
    block: &'b RangeBlock<P>,
    me: usize,
}

impl<P: Platform> Context<'_, P> {
    /// Runs `body` over all parts of `range`, on this thread and on others that have nothing better
    /// to do, and returns when all of it is done. `body` is called with disjoint parts that make up
    /// the whole range.
    ///
    /// # Panics
    /// If `body` panics: after the parts that had begun are through. If the range has 2³² items or
    /// more.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut squares = vec![0u64; 1000];
    /// let cells: Vec<_> = squares.iter_mut().map(std::sync::Mutex::new).collect();
    /// js.parallel_for(0..1000, paceline::Grain::Auto, |part, _| {
    ///     for i in part {
    ///         **cells[i].lock().unwrap() = (i * i) as u64;
    ///     }
    /// });
    /// drop(cells);
    /// assert_eq!(squares[31], 961);
    /// ```
    #[track_caller]
    pub fn parallel_for<F>(&self, range: Range<usize>, grain: Grain, body: F)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let label = Label {
            name: "parallel_for",
            site: Location::caller(),
        };
        let range = SharedRange::new(range, grain, &body).unwrap_or_else(|error| panic!("{error}"));
        let mut run = Private::new(self, label, &range);
        let left = run.until_shared();
        if left.len() == 0 {
            return;
        }
        // SAFETY: this function does not return before the job has ended, whatever happens.
        let shared = unsafe { self.share_range(label, &range, left) };
        match shared {
            Ok(job) => self.finish_shared(job, &range),
            // No slot or no block to be had: it stays private.
            Err(_) => run.rest(left),
        }
    }

    /// Takes part in a range that was made from this stack, then waits for the others.
    fn finish_shared<F>(&self, job: Ticket, range: &SharedRange<&F>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let slot = self.shared.slot(job);
        self.in_frame(job, || self.run_share(range, 0));
        self.leave_range(job, slot);
        self.after_job();
        let over = self.wait_until(job, Nanos::MAX);
        if !matches!(over, Ok(true)) {
            // The members run code of ours on our stack: it is not left before they have.
            while !slot.is_over(job) {
                let _ = self.wait_until(job, Nanos::MAX);
            }
        }
        self.resume(self.shared.failures.verdict(job));
    }

    /// Makes a job of what is left of a private loop. The caller is its first member.
    ///
    /// # Safety
    /// What `range` borrows outlives the job.
    unsafe fn share_range<F>(
        &self,
        label: Label,
        range: &SharedRange<&F>,
        left: Items,
    ) -> Result<Ticket, ScheduleError>
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let flags = Slot::<P>::HAS_BODY | Slot::<P>::IS_RANGE | Slot::<P>::IS_AWAITED;
        let (job, slot) = self.allocate_slot(label, flags, self.current_job())?;
        let body = SharedRange {
            start: range.start,
            items: range.items,
            grain: range.grain,
            body: range.body,
        };
        // SAFETY: the table is that of the body; the rest is the caller's promise.
        unsafe { self.put_body(slot, body, &RangeTable::<P, &F>::TABLE) };
        if !self.open(job, slot, left) {
            self.drop_unopened(job, slot);
            return Err(ScheduleError::Full {
                max_jobs: self.shared.max_jobs,
            });
        }
        self.invite(job);
        Ok(job)
    }

    fn drop_unopened(&self, job: Ticket, slot: &Slot<P>) {
        slot.flags.store(0, Ordering::Relaxed);
        self.finish(job, slot, 0, Ending::Done, Queue::Own);
    }

    /// The claimer of a range job: opens it, does its share, leaves.
    fn open_range<F>(&self, range: &SharedRange<F>)
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
            self.run_part(job, || {
                (range.body)(range.start..range.start + range.items as usize, self);
            });
            self.leave_range(job, slot);
        }
        self.after_job();
    }

    /// Gives the job its words and opens it for others. False if there is no block to be had.
    fn open(&self, job: Ticket, slot: &Slot<P>, items: Items) -> bool {
        let blocks = &self.shared.blocks;
        let Some((index, block)) = self.own(|own| blocks.allocate(&mut own.blocks)) else {
            return false;
        };
        // Relaxed: published by the Release store below.
        block.words[0].store(items.pack(), Ordering::Relaxed);
        block.members.store(1, Ordering::Relaxed);
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
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let block = self.shared.blocks.get(slot.place.load(Ordering::Relaxed));
        let number = if block.left() > 0 { block.join() } else { None };
        if let Some(number) = number {
            // SAFETY: the member's share of the crew keeps table and body in place.
            unsafe {
                let table = slot
                    .table
                    .with(|table| *table)
                    .expect("an open range has a body");
                self.in_frame(job, || {
                    slot.body.with(|body| (table.join)(body, self, number))
                });
            }
        }
        self.leave_range(job, slot);
        self.after_job();
        number.is_some()
    }

    /// One member leaves; the last one ends the job.
    fn leave_range(&self, job: Ticket, slot: &Slot<P>) {
        // AcqRel, partner: the other members' leaving: the last one sees what all of them did.
        let before = slot.state.fetch_sub(StateWord::CREW_ONE, Ordering::AcqRel);
        let before = StateWord::unpack(before);
        if before.crew > 1 {
            return;
        }
        if before.phase == Phase::Open {
            let index = slot.place.load(Ordering::Relaxed);
            self.own(|own| self.shared.blocks.free(&mut own.blocks, index));
        }
        // SAFETY: the crew is empty and nobody can join any more; the body is dropped once.
        unsafe {
            let table = slot
                .table
                .with(|table| *table)
                .expect("an open range has a body");
            slot.body.with_mut(|body| (table.discard)(body));
        }
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
    fn run_share<F>(&self, range: &SharedRange<F>, me: usize)
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
        let done = catch_unwind(AssertUnwindSafe(part));
        let ran = done.is_ok();
        if let Err(payload) = done {
            let slot = self.shared.slot(job);
            self.seat.counters.panicked.add(1);
            let label = self.label_of(slot);
            self.shared
                .failures
                .add(job, Failure::panicked(label, payload));
            // Relaxed: ordered by the member's leaving.
            slot.flags.fetch_or(Slot::<P>::PANICKED, Ordering::Relaxed);
        }
        self.record(EventKind::End, job, 0);
        ran
    }

    fn run_blocks<F>(&self, range: &SharedRange<F>, share: &Share<'_, P>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let slot = self.shared.slot(share.job);
        let mut pace = Pace::new(self, range.grain);
        if let Some(known) = self.cost_of(slot) {
            pace.expect(known);
        }
        if share.me != 0 && share.block.steal_for(share.me).is_none() {
            return;
        }
        loop {
            let word = &share.block.words[share.me];
            while let Some(items) = take_front::<P>(word, pace.block) {
                let part = range.start + items.lo as usize..range.start + items.hi as usize;
                (range.body)(part, self);
                pace.ran(self, items.len());
                let left = Items::unpack(word.load(Ordering::Relaxed)).len();
                if self.worth_inviting(pace.cost(), u64::from(left)) && self.can_invite() {
                    self.invite(share.job);
                }
            }
            match share.block.steal_for(share.me) {
                Some(items) => {
                    self.seat.counters.splits.add(1);
                    let cut = u64::from(items.lo) << 32 | u64::from(items.len());
                    self.record(EventKind::Split, share.job, cut);
                }
                None => break,
            }
        }
        self.seat.counters.blocks.add(pace.blocks);
        self.learn(slot.label.load(Ordering::Relaxed), pace.cost());
    }

    /// One more ticket for an open range.
    fn invite(&self, job: Ticket) {
        self.enqueue(job, Queue::Own);
        self.publish(Queue::Own, false);
    }

    /// Whether the last invitation has been taken up.
    fn can_invite(&self) -> bool {
        self.seat.deque.len() == 0
    }

    /// Whether somebody could help, and `items` at `cost` picoseconds each are worth it.
    fn worth_inviting(&self, cost: Option<u64>, items: u64) -> bool {
        if items < 2 {
            return false;
        }
        let idle = self.shared.idle.load();
        let price = if idle.is_hungry() {
            Tuning::WORTH_SHARING
        } else if idle.sleeping > 0 {
            // A helper that has to be woken takes its half only after the wake-up, and the waker
            // pays for the call.
            Nanos(2 * self.shared.wake_cost().0)
        } else {
            return false;
        };
        // Unknown cost: better to share a cheap loop in vain once than to keep a costly one.
        cost.is_none_or(|cost| items.saturating_mul(cost) / 1000 > price.0)
    }

    fn cost_of(&self, slot: &Slot<P>) -> Option<u64> {
        self.cost_of_label(slot.label.load(Ordering::Relaxed))
    }

    /// What an item of this label has cost on this thread, in picoseconds.
    pub(crate) fn cost_of_label(&self, label: u32) -> Option<u64> {
        self.own(|own| {
            own.costs
                .get(label as usize)
                .copied()
                .filter(|&cost| cost > 0)
        })
    }

    /// Learns the cost of an item (a moving average over runs).
    pub(crate) fn learn(&self, label: u32, cost: Option<u64>) {
        const LABELS_MAX: usize = 1 << 16;
        let (Some(cost), true) = (cost, (label as usize) < LABELS_MAX) else {
            return;
        };
        self.own(|own| {
            if own.costs.len() <= label as usize {
                own.costs.resize(label as usize + 1, 0);
            }
            let known = &mut own.costs[label as usize];
            *known = if *known == 0 {
                cost
            } else {
                (*known * 3 + cost) / 4
            }
            .max(1);
        });
    }

    /// Re-raises what a wait found.
    pub(crate) fn resume(&self, verdict: Result<(), WaitError>) {
        match verdict {
            Ok(()) => {}
            Err(WaitError::Panicked {
                payload: Some(payload),
                ..
            }) => std::panic::resume_unwind(payload),
            Err(error) => panic!("{error}"),
        }
    }
}

/// How fast a thread gets through a range, and how large its next block should be.
struct Pace {
    grain: u32,
    block: u32,
    last: Nanos,
    time: u64,
    items: u64,
    blocks: u64,
}

impl Pace {
    fn new<P: Platform>(context: &Context<'_, P>, grain: u32) -> Pace {
        let last = context.shared.platform.now();
        Pace {
            grain,
            block: grain,
            last,
            time: 0,
            items: 0,
            blocks: 0,
        }
    }

    /// Starts with the block size that fits a known cost.
    fn expect(&mut self, cost: u64) {
        let fitting = Tuning::BLOCK.0 * 1000 / cost.max(1) / 2;
        self.block = self
            .grain
            .max(u32::try_from(fitting).unwrap_or(u32::MAX / 4));
    }

    /// A block of `items` has just ended.
    fn ran<P: Platform>(&mut self, context: &Context<'_, P>, items: u32) {
        let now = context.shared.platform.now();
        let took = (now - self.last).0;
        self.last = now;
        self.time += took;
        self.items += u64::from(items);
        self.blocks += 1;
        if took < Tuning::BLOCK.0 / 2 && items >= self.block {
            self.block = self.block.saturating_mul(2);
        } else if took > Tuning::BLOCK.0 * 2 {
            self.block = (self.block / 2).max(self.grain);
        }
    }

    /// Picoseconds per item so far.
    fn cost(&self) -> Option<u64> {
        (self.items > 0).then(|| (self.time.saturating_mul(1000) / self.items).max(1))
    }
}

/// A loop that has not left its thread (yet).
struct Private<'c, 'a, P: Platform, F> {
    context: &'c Context<'a, P>,
    label: u32,
    range: &'c SharedRange<&'c F>,
    pace: Pace,
}

impl<'c, 'a, P: Platform, F: Fn(Range<usize>, &Context<'_, P>) + Sync> Private<'c, 'a, P, F> {
    fn new(context: &'c Context<'a, P>, label: Label, range: &'c SharedRange<&'c F>) -> Self {
        let labels = &context.shared.labels;
        let label = context.own(|own| labels.number(&mut own.labels, label));
        let mut pace = Pace::new(context, range.grain);
        if let Some(known) = context.cost_of_label(label) {
            pace.expect(known);
        }
        Private {
            context,
            label,
            range,
            pace,
        }
    }

    /// Runs block after block until the rest is worth sharing; returns the rest.
    fn until_shared(&mut self) -> Items {
        let mut left = Items {
            lo: 0,
            hi: self.range.items,
        };
        let mut cost = self.context.cost_of_label(self.label);
        while left.len() > 0 && !self.context.worth_inviting(cost, u64::from(left.len())) {
            left = self.block(left);
            cost = self.pace.cost();
        }
        self.context.learn(self.label, self.pace.cost());
        left
    }

    /// Runs what is left without sharing.
    fn rest(&mut self, mut left: Items) {
        while left.len() > 0 {
            left = self.block(left);
        }
    }

    fn block(&mut self, left: Items) -> Items {
        let (items, rest) = left.take_front(self.pace.block);
        let start = self.range.start;
        (self.range.body)(
            start + items.lo as usize..start + items.hi as usize,
            self.context,
        );
        self.pace.ran(self.context, items.len());
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_without_gaps() {
        let items = Items { lo: 3, hi: 10 };
        assert_eq!(Items::unpack(items.pack()), items);
        assert_eq!(
            items.take_front(4),
            (Items { lo: 3, hi: 7 }, Items { lo: 7, hi: 10 })
        );
        assert_eq!(items.take_front(99).1.len(), 0);
        assert_eq!(
            items.cut_half(),
            (Items { lo: 3, hi: 6 }, Items { lo: 6, hi: 10 })
        );
        let one = Items { lo: 4, hi: 5 };
        assert_eq!(one.cut_half(), (Items { lo: 4, hi: 4 }, one));
        let whole = Items {
            lo: 0,
            hi: u32::MAX,
        };
        assert_eq!(whole.take_front(u32::MAX).1.len(), 0);
    }
}
