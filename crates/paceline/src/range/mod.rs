//! Parallel loops: one word per member of the crew, taken from the front and cut from the back.
//!
//! A range being run is a word `hi 32 | lo 32` for each thread that takes part. The owner of a word
//! takes a block from `lo`; a member without items cuts the largest word of another in half at `hi`.
//! Both are one CAS on one word, nothing is allocated or queued per piece, and a member that is
//! preempted strands one block, never its whole share. The first block of what was cut stands in no
//! word: every cut leads to items that are run, whatever others do meanwhile.
//!
//! The words belong to the range, in a block that is reused only when every member has left: an
//! interval of items is handed out once, so a word that looks as it did before *is* what it was, and
//! a CAS from an old reading cannot go wrong.
//!
//! Blocks grow until one takes `Tuning::BLOCK`. Others are invited (one more ticket for the same
//! job) only when somebody is hungry and the rest is worth more than the invitation: a loop that
//! never leaves its thread costs a clock stamp per block the first time, and one for every 32 us
//! (`Tuning::STAMP`) when it is known what its items take.

mod crew;
mod pace;
mod slow;
mod trial;
pub(crate) mod words;

use std::ops::Range;
use std::panic::Location;

use platform::{Atomic, Ordering, Platform};

use crate::border::UnwindGuard;
use crate::context::{Context, Queue};
use crate::error::ScheduleError;
use crate::graph::Ending;
use crate::job::{Label, Slot, Ticket};
use crate::policy::Grain;

use pace::Pace;
pub(crate) use pace::Unshared;
pub(crate) use trial::Trials;
use words::Items;
pub(crate) use words::{RangeBlock, RangeTable, SharedRange};

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
        let guard = UnwindGuard::<P>::new("a loop that other threads share");
        // SAFETY: this function does not return before the job has ended, whatever happens.
        let shared = unsafe { self.share_range(label, &range, left) };
        if let Ok(job) = shared {
            self.finish_shared(job, &range);
        }
        guard.disarm();
        match shared {
            Ok(job) => self.raise_panic_of(job),
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
        self.wait_for_borrowers(job);
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
        let allocated = self.allocate_slot(label, flags, self.current_job());
        let (job, slot) = allocated.ok_or_else(|| self.full())?;
        // SAFETY: the table is that of the body; the rest is the caller's promise.
        unsafe { self.put_body(slot, range.again(), &RangeTable::<P, &F>::TABLE) };
        if !self.open(job, slot, left) {
            self.drop_unopened(job, slot);
            return Err(self.full());
        }
        self.invite(job);
        Ok(job)
    }

    fn drop_unopened(&self, job: Ticket, slot: &Slot<P>) {
        slot.flags.store(0, Ordering::Relaxed);
        self.finish(job, slot, 0, Ending::Done, Queue::Own);
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
        self.context.learn(self.label, self.pace.measured());
        self.context.seat.counters.blocks.add(self.pace.blocks);
        if left.len() == 0 {
            self.context.note_unshared(self.pace.time());
        }
        left
    }

    /// Runs what is left without sharing.
    fn rest(&mut self, mut left: Items) {
        while left.len() > 0 {
            left = self.block(left);
        }
    }

    fn block(&mut self, left: Items) -> Items {
        let (items, rest) = left.take_front(self.pace.next_block(self.context, left.len()));
        self.range.run(items, self.context);
        self.pace.ran(self.context, items.len(), rest.len());
        rest
    }
}
