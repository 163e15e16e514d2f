//! Parallel loops: one word per participant, taken from the front and cut from the back.
//!
//! A running range has a word `hi 32 | lo 32` for each thread that takes part. The owner of a word takes a
//! block from `lo`. A participant without items cuts the largest word of another participant in half at `hi`.
//! Both are one CAS on one word, nothing is allocated or queued for each piece, and a participant that is
//! preempted strands one block, never its whole share. The first block of the items that were cut stands in
//! no word: so every cut leads to items that are run, whatever other threads do meanwhile.
//!
//! The words belong to the range, in a block that is reused only when every participant has left. An interval
//! of items is handed out once, so a word that looks as it did before *is* what it was, and a CAS from an old
//! reading cannot go wrong.
//!
//! Blocks grow until one takes `Tuning::BLOCK`. Other threads are invited (by one more ticket for the same
//! job) only when a thread wants work and the rest is worth more than the invitation. A loop that never
//! leaves its thread costs a clock stamp for each block the first time, and one for every 32 us
//! (`Tuning::STAMP`) when the cost of its items is known.

mod body;
mod local;
mod open;
mod pace;
mod participant;
mod private;
mod slow;
mod table;
mod trial;
pub(crate) mod words;

use std::ops::Range;
use std::panic::Location;

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::context::Context;
use crate::border::UnwindGuard;
use crate::error::{ScheduleError, or_panic};
use crate::graph::Ending;
use crate::policy::{Grain, Tuning};
use crate::queues::{IdleWord, Queue};
use crate::store::{Label, LaneFlags, Rank, Slot, Ticket};

pub(crate) use body::SharedRange;
pub(crate) use local::LoopLocal;
use local::Unshared;
pub(crate) use open::{OpenLoop, has_room_for_participant};
use private::Private;
pub(crate) use table::RangeTable;
pub(crate) use trial::Trials;
pub(crate) use words::RangeBlock;
use words::RangeItems;

impl<P: Platform> Context<'_, P> {
    /// Runs `body` over all parts of `range`, on this thread and on others that have nothing better to do.
    /// Returns when all of it is done. `body` is called with disjoint parts that make up the whole range. To
    /// go over the items of slices, see [`over`](Context::over).
    ///
    /// A loop that stays on this thread allocates nothing and wakes no thread. It is shared when a thread is
    /// idle and the rest is worth a wake-up. It then takes a slot of the job table, and at the end this
    /// thread waits for the other participants' last blocks: it may block.
    ///
    /// # Panics
    /// If `body` panics, after the parts that had begun have ended. If the range has 2³² items or more.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let heights = vec![2.0_f32; 10_000];
    /// let peaks = std::sync::Mutex::new(Vec::new());
    /// js.enter(|cx| {
    ///     cx.parallel_for(0..heights.len(), paceline::Grain::Auto, |part, _| {
    ///         let highest = heights[part].iter().copied().fold(0.0, f32::max);
    ///         peaks.lock().unwrap().push(highest); // Once a part, not once an item.
    ///     });
    /// });
    /// assert!(peaks.into_inner().unwrap().iter().all(|&peak| peak == 2.0));
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
        self.run_loop(label, range, grain, body);
    }

    /// The same under this label, which also says which loops share what is learnt of their cost.
    #[track_caller]
    pub(crate) fn run_loop<F>(&self, label: Label, range: Range<usize>, grain: Grain, body: F)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let range = or_panic(SharedRange::new(range, grain, &body));
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
            Ok(job) => {
                if let Some(error) = self.graph().take_failure(job) {
                    error.raise();
                }
            }
            // There is no free slot or block: the loop stays private.
            Err(_) => run.rest(left),
        }
    }

    /// Takes part in a range that was made from this stack, then waits for the other participants.
    fn finish_shared<F>(&self, job: Ticket, range: &SharedRange<&F>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let shared = OpenLoop::new(self, job, self.shared.slot(job));
        self.in_frame(job, || shared.run_share(range, 0));
        shared.leave();
        self.after_job();
        self.wait_for_borrowers(job, drop);
    }

    /// Makes a job of the rest of a private loop. The caller is its first participant.
    ///
    /// # Safety
    /// Everything `range` borrows outlives the job.
    unsafe fn share_range<F>(
        &self,
        label: Label,
        range: &SharedRange<&F>,
        left: RangeItems,
    ) -> Result<Ticket, ScheduleError>
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        let kind = Slot::<P>::HAS_BODY | Slot::<P>::IS_RANGE | Slot::<P>::IS_AWAITED;
        let flags = kind | self.lane().0;
        let graph = self.graph();
        let made = graph.make(&label, flags, self.current_job());
        let (job, slot) = made.ok_or_else(|| graph.full())?;
        // SAFETY: the table is that of the body, and the job is new. The rest is the caller's promise.
        unsafe { slot.put_body(range.again(), &RangeTable::<P, &F>::TABLE) };
        if !OpenLoop::new(self, job, slot).open(left) {
            self.drop_unopened(job, slot);
            return Err(graph.full());
        }
        self.invite(job);
        Ok(job)
    }

    fn drop_unopened(&self, job: Ticket, slot: &Slot<P>) {
        slot.flags.store(0, Ordering::Relaxed);
        self.graph().finish(job, slot, 0, Ending::Done, Queue::Own);
    }

    /// Queues one more ticket for an open range.
    pub(super) fn invite(&self, job: Ticket) {
        self.own(|own| own.loops.unshared = Unshared::default());
        match self.lane() {
            LaneFlags::NORMAL => match (self.own(|own| own.rank), self.extra_lanes()) {
                (Rank(1..), Some(extra)) => extra.invite(self, job, self.own(|own| own.rank)),
                _ => {
                    self.enqueue(job, Queue::Own);
                    self.publish(Queue::Own, false);
                }
            },
            LaneFlags::BACKGROUND => self.enqueue_in_backlog(job),
            LaneFlags::FRAME => self.enqueue_in_front(job),
            lane => {
                self.enqueue_beside(lane, job, Queue::Own);
                self.publish(Queue::Own, false);
            }
        }
    }

    /// Whether the last invitation has been taken up.
    pub(super) fn can_invite(&self) -> bool {
        match self.lane() {
            LaneFlags::NORMAL => match self.own(|own| own.rank) {
                Rank::NONE => self.thread.deque.len() == 0,
                rank => self.goes_first(rank),
            },
            LaneFlags::BACKGROUND => self.shared.lanes.backlog.is_empty(),
            LaneFlags::FRAME => self.shared.lanes.front.is_empty(),
            lane => self
                .extra_lanes()
                .is_some_and(|extra| extra.is_empty_in(lane)),
        }
    }

    /// Whether a thread could help, and `items` at `cost` picoseconds each are worth it.
    #[inline]
    pub(super) fn worth_inviting(&self, cost: Option<u64>, items: u64) -> bool {
        if items < 2 {
            return false;
        }
        match self.shared.idle.load_if(IdleWord::NOT_BUSY) {
            Some(idle) => self.is_worth_inviting(idle, cost, items),
            None if self.own(|own| own.rank) == Rank::NONE => false,
            None => self.is_worth_inviting(IdleWord::default(), cost, items),
        }
    }

    /// The same, where it takes more than a look.
    #[inline(never)]
    fn is_worth_inviting(&self, idle: IdleWord, cost: Option<u64>, items: u64) -> bool {
        let price = if idle.wants_work() {
            Tuning::WORTH_SHARING
        } else if idle.sleeping > 0 || self.could_have_way(idle) {
            // A helper that has to be woken takes its half only after the wake-up, and the waker pays for the
            // call. Work that was kept here just before counts: many short loops in a row are worth one
            // wake-up. A worker that makes way wakes one that takes its place.
            Nanos(2 * self.shared.wake_cost.get().0) - self.own(|own| own.loops.unshared.time)
        } else if self.goes_first(self.own(|own| own.rank)) {
            Tuning::PIECE
        } else {
            return idle.blocked > 0
                && self.shared.slow.idle.load().sleeping > 0
                && self.is_worth_slow(cost, items);
        };
        // The cost is unknown. It is better to share a cheap loop in vain once than to keep a costly one.
        cost.is_none_or(|cost| items.saturating_mul(cost) / 1000 > price.0)
    }

    /// Whether more hangs on a loop with this rank than on what busy threads would begin next.
    fn goes_first(&self, rank: Rank) -> bool {
        let extra = if rank == Rank::NONE {
            None
        } else {
            self.extra_lanes()
        };
        extra.is_some_and(|extra| rank > extra.best())
    }

    /// Whether a share of `items` at `cost` picoseconds each, with as much for each other fast thread, is
    /// worth waking slow workers.
    pub(super) fn is_worth_slow(&self, cost: Option<u64>, items: u64) -> bool {
        let worth = Tuning::WORTH_SLOW.max(Nanos(2 * self.shared.slow.wake_cost.get().0));
        cost.is_some_and(|cost| items.saturating_mul(cost) / 1000 > worth.0)
    }

    /// A loop that took `time` has just ended without being shared.
    pub(super) fn note_unshared(&self, time: Nanos) {
        if time < Tuning::WORTH_SHARING || self.shared.idle.load().sleeping == 0 {
            return;
        }
        let now = self.shared.platform.now();
        // For that long a helper that is awake waits for the next loop.
        let forget_at = now + self.shared.wake_cost.get();
        self.own(|own| own.loops.unshared.note(time, now, forget_at));
    }
}
