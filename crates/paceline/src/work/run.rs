//! Running one job: the claim, the body, the end.

use event::EventKind;
use platform::{Atomic, Omission, Ordering, Platform, SharedCell};

use super::context::Context;
use super::range::OpenLoop;
use super::thread_slot::{Running, ThreadKind};
use crate::border::Payload;
use crate::graph::Ending;
use crate::hooks::JobMoment;
use crate::queues::Queue;
use crate::store::{Erased, JobPhase, LaneFlags, Slot, Ticket};

/// The memory of a job is prefetched while so many jobs are before it.
const JOBS_AHEAD: u64 = 6;

impl<P: Platform> Context<'_, P> {
    /// The newest ticket of the own deque, left there. Prefetches the memory of a job that will be run here
    /// soon: jobs made on another thread are in its cache, and each claim would wait for its job.
    #[inline]
    pub(crate) fn peek_newest(&self) -> Option<Ticket> {
        let (newest, soon) = self.thread.deque.peek_newest_and_below(JOBS_AHEAD)?;
        if let Some(soon) = soon {
            P::prefetch(self.shared.slot(soon));
        }
        Some(newest)
    }

    /// The same, taken from there.
    #[inline]
    pub(crate) fn take_newest(&self) -> Option<Ticket> {
        let (newest, soon) = self.thread.deque.take_newest_and_below(JOBS_AHEAD)?;
        if let Some(soon) = soon {
            P::prefetch(self.shared.slot(soon));
        }
        Some(newest)
    }

    /// Tries to start the job of a ticket: claims it, or joins a range. False if the ticket is stale, or if
    /// nothing of the range was left. Then the caller has nothing to publish.
    #[inline(always)]
    pub(crate) fn start(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        if slot.claim(ticket) {
            self.run_claimed(ticket, slot);
            return true;
        }
        self.start_participant(ticket, slot)
    }

    #[cold]
    fn start_participant(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        // Relaxed: `enter` decides.
        let word = slot.word(Ordering::Relaxed);
        if word.phase != JobPhase::Open || word.generation != ticket.generation() {
            return false;
        }
        self.graph().flush_finished();
        let joined = self.with_place(|| OpenLoop::new(self, ticket, slot).join());
        if !joined && !P::omits(Omission::AnnounceAfterVainJoin) {
            // This thread may have been the last to leave the range, and may have made ready what the range
            // held back.
            self.publish(Queue::Own, false);
        }
        joined
    }

    /// Runs a job this thread has claimed, and finishes it.
    #[inline]
    pub(crate) fn run_claimed(&self, job: Ticket, slot: &Slot<P>) {
        let flags = slot.flags.load(Ordering::Relaxed);
        let lane = LaneFlags::made_in(flags);
        if lane == self.own(|own| own.lane) {
            self.run_in_own_lane(job, slot, flags)
        } else {
            self.with_place(|| self.work_in_lane(lane, || self.run_in_own_lane(job, slot, flags)))
        }
    }

    #[inline]
    fn run_in_own_lane(&self, job: Ticket, slot: &Slot<P>, flags: u32) {
        let graph = self.graph();
        graph.flush_finished_elsewhere(|| slot.parent(flags));
        // Release, partner: the Acquire load in a look at a job. If it has seen this place, it sees
        // afterwards that the slot's last job is over. (Deadlock checks do without: they are repeated.)
        slot.place.store(self.thread.index, Ordering::Release);
        self.record_claimed(job);
        // SAFETY: the claim was won: table and body were filled before the job was made ready (Acquire in
        // `claim`), and no other thread touches them until it is finished.
        let table = unsafe { slot.table.with(|table| *table) };
        let table = table.expect("a job that was made ready has a body");
        if flags & Slot::<P>::IS_ANONYMOUS == 0 {
            graph.prefetch_links(slot);
        }
        let ends_itself = Slot::<P>::IS_RANGE | Slot::<P>::IS_FUTURE | Slot::<P>::OF_RUN;
        if flags & (ends_itself | Slot::<P>::HAS_TOKEN) != 0 {
            if flags & Slot::<P>::HAS_TOKEN != 0
                && let Some(tokens) = self.shared.tokens.get()
                && tokens.ends(self, job, slot, flags)
            {
                return;
            }
            if flags & ends_itself != 0 {
                // A range opens itself, catches its panics and leaves as a participant. Other threads read
                // the closure meanwhile. The closure stays where it is: nothing is written through the
                // pointer, so the cell is not borrowed for the length of the call. A future ends itself, too,
                // or waits again. So does a node of a graph: others come after it that are counted there.
                let body = slot.body_for_participants();
                // SAFETY: as above; the body is opened once, because a claim is won once.
                self.in_frame(job, || unsafe { table.open(body, Erased::new(self)) });
                return;
            }
        }
        self.thread.counters.jobs.add(1);
        let is_watched = Slot::<P>::is_of_group(flags)
            && self.thread.kind == ThreadKind::Worker
            && self.shared.adapt.watches_groups();
        self.body_begins(job, slot);
        let began = is_watched.then(|| self.shared.platform.now());
        // SAFETY: as above; the body is run once, because a claim is won once.
        let run = || unsafe {
            slot.body
                .with_mut(|body| table.run(body, Erased::new(self)))
        };
        let ending = match self.in_frame(job, run) {
            Ok(()) => Ending::Done,
            Err(payload) => Ending::Panicked(payload),
        };
        if let Some(began) = began {
            let ended = self.shared.platform.now();
            self.shared.adapt.group_job_ended(self, began, ended);
        }
        self.body_has_ended(job, slot);
        graph.finish(job, slot, flags, ending, Queue::Own);
        self.after_job();
    }

    /// Records that a body, or this thread's part of one, begins, and tells the program's hook.
    #[inline]
    pub(crate) fn body_begins(&self, job: Ticket, slot: &Slot<P>) {
        if self.shared.hooks.has_job_hook() {
            self.tell_body(JobMoment::Begin, job, slot);
        }
        self.record(EventKind::Begin, job, 0);
    }

    /// The same for its end.
    #[inline]
    pub(crate) fn body_has_ended(&self, job: Ticket, slot: &Slot<P>) {
        self.record(EventKind::End, job, 0);
        if self.shared.hooks.has_job_hook() {
            self.tell_body(JobMoment::End, job, slot);
        }
    }

    /// Tells the order of frames' jobs, a scheduler, and then the program's hook.
    #[cold]
    fn tell_body(&self, moment: JobMoment, job: Ticket, slot: &Slot<P>) {
        if let Some(order) = self.shared.order.get() {
            order.body_moment(self, moment, job, slot);
        }
        let (hints, thread) = (&self.shared.hints, self.thread.index);
        if hints.is_on() {
            // Relaxed: a raise at this moment counts for the next look.
            let flags = slot.flags.load(Ordering::Relaxed);
            let runs = || (job, LaneFlags::of(flags), self.deadline_of(flags));
            self.own(|own| match moment {
                JobMoment::Begin => hints.body_begins(&mut own.hints, thread, runs()),
                JobMoment::End => hints.body_has_ended(&mut own.hints, thread),
            });
            if hints.hook_is_ours() {
                return;
            }
        }
        self.tell_hook(moment, slot);
    }

    /// The time that the hook takes is not part of the body.
    #[inline]
    fn tell_hook(&self, moment: JobMoment, slot: &Slot<P>) {
        let label = self.graph().label(slot);
        // Relaxed: a number.
        let frame = self.shared.frames.load(Ordering::Relaxed).checked_sub(1);
        let hooks = &self.shared.hooks;
        let tell = || hooks.body_moment(moment, &label, frame).unwrap_or(Ok(()));
        self.call_hook(tell);
        self.forget_stamp();
    }

    /// Runs `f` as a job or a part of one. With [`Ticket::NONE`] it runs `f` as code of the program's that
    /// belongs to no job.
    #[inline]
    pub(crate) fn in_frame<R>(&self, job: Ticket, f: impl FnOnce() -> R) -> R {
        /// Takes the frame off, also during an unwind.
        struct Framed<'c, 'a, P: Platform>(&'c Context<'a, P>, *const Running);
        impl<P: Platform> Drop for Framed<'_, '_, P> {
            #[inline]
            fn drop(&mut self) {
                self.0.own(|own| own.frame = self.1);
            }
        }
        let outer = self.own(|own| own.frame);
        let frame = Running { job, outer };
        self.own(|own| own.frame = &raw const frame);
        let _framed = Framed(self, outer);
        f()
    }

    /// The work that every finished job leaves behind.
    #[inline]
    pub(crate) fn after_job(&self) {
        if self.own(|own| !own.graph.todo.is_empty()) {
            self.graph().finish_todo(Queue::Own);
        }
        if self.own(|own| own.unsignalled > 0) {
            self.wake_for_batch();
        }
    }

    /// Runs something as part of a job of a lane: jobs scheduled by it are of that lane, too.
    pub(crate) fn work_in_lane<R>(&self, lane: LaneFlags, run: impl FnOnce() -> R) -> R {
        /// Restores the lane, also during an unwind.
        struct InLane<'c, 'a, P: Platform>(&'c Context<'a, P>, LaneFlags);
        impl<P: Platform> Drop for InLane<'_, '_, P> {
            fn drop(&mut self) {
                self.0.leave_lane(self.1);
            }
        }
        let outer = self.own(|own| std::mem::replace(&mut own.lane, lane));
        let _in_lane = InLane(self, outer);
        run()
    }

    /// Out of line: few jobs are of another lane than the one underneath.
    #[inline(never)]
    fn leave_lane(&self, outer: LaneFlags) {
        self.own(|own| own.lane = outer);
        if self.own(|own| own.is_lender) {
            self.lends_no_more();
        }
    }

    /// Drops the closure or the result of a job.
    pub(crate) fn discard_held(&self, job: Ticket, drop_it: impl FnOnce() -> Result<(), Payload>) {
        self.in_frame(job, || self.shared.panics.count_drop(drop_it()));
    }

    /// Calls a hook, a sink or the like on behalf of no job. `None`: it panicked, and the panic is counted.
    pub(crate) fn call_hook<R>(&self, call: impl FnOnce() -> Result<R, Payload>) -> Option<R> {
        self.in_frame(Ticket::NONE, || self.shared.panics.call_hook(call))
    }
}
