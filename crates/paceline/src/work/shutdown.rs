//! The end of a job system.
//!
//! 1. All jobs that are ready, and those that become ready by that, are run. The thread that ends the job
//!    system takes part. So does a thread that is inside a handle's wait: the job it is in the middle of is
//!    waited for.
//! 2. The workers are told to stop. Each leaves when it finds no more work, and is joined.
//! 3. Jobs that became ready in between (with no workers: all jobs) are run here.
//! 4. Jobs that are still held back can never run: their bodies are dropped, and the ids and handles that
//!    name them report it.
//!
//! A job that never returns keeps step 1 from ending, as it would keep any thread from being joined.
//!
//! Some jobs are held back for good, others only for a moment longer. A survey of all jobs tells which
//! ([`survey_jobs`](Shared::survey_jobs)). A thread that finishes a job first lets its slot go and then
//! notifies its successors, and code of the program's may run in between (a waker). So a job that waits for
//! less than its count says is about to be released. A waker that is due may be that of a future, or complete
//! an event. And a survey takes time, in which work may move from a
//! place it has not yet seen to one it has seen. Only two surveys with the same outcome have seen all there
//! was between them.
//!
//! A handle outlives the job system, and may schedule a successor at any time ([`Job::then`]). Such calls are
//! counted (`ending`), so that the last survey has seen what they made. Later ones are refused.
//!
//! [`Job::then`]: crate::Job::then
//!
//! Mostly the thread that drops the job system does all that. It cannot if it is in the middle of a call made
//! by the job system itself: the last owner was in a job's body, its result, a hook, a waker. Then it would
//! wait for itself. Nor should it while it unwinds from a panic. In these cases it only tells the workers to
//! stop and leaves the rest to other threads ([`EndOfSystem`](super::ending::EndOfSystem)): the last worker
//! to leave does it. Where there is no worker, the call that ran that code does it, when the code has
//! returned.
//!
//! Any thread may complete an event at any time, also during step 4 and after it. So a job is dropped by a
//! compare-exchange on `pending`, the word that its releases count down. Either the release came first (and
//! the job is run after all), or [`DROPPED`] is in the count, which then never comes to zero, however many
//! releases follow.

use event::{Nanos, mix};
use platform::{Atomic, Ordering, Parker, Platform};

use super::context::Context;
use super::shared::Shared;
use super::thread_slot::ThreadKind;
use crate::graph::DROPPED;
use crate::store::{JobPhase, Slot, Ticket};

/// How long to wait for a job before the next survey.
const PERIOD: Nanos = Nanos::from_millis(1);

/// What a survey of all jobs found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remaining {
    Nothing,
    /// There is a job that runs on another thread, or is about to, or that another thread is about to
    /// release; or a waker that another thread calls.
    Running,
    /// There are jobs that only the completion of events will release.
    Held,
}

/// One survey: what it found, and a digest of all it saw.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Survey {
    found: Remaining,
    digest: u64,
}

impl<P: Platform> Shared<P> {
    /// The last owner is gone; see the module.
    pub(crate) fn shut_down(&self) {
        let unwinds = std::thread::panicking();
        // Inside a sink of this job system there is no way in. The thread is in the middle of a call then.
        let context = self.context_at_last().ok();
        let context = context.as_ref().filter(|context| !context.is_called_back());
        if let Some(context) =
            context.filter(|context| context.thread.kind == ThreadKind::Guest && !unwinds)
        {
            return self.end(context);
        }
        self.ending.defer();
        self.signal_stop();
        // SeqCst, partner: the fence in `end_if_last`: either the last worker sees that it has to end the job
        // system, or this thread sees that the worker has left.
        P::fence(Ordering::SeqCst);
        if let Some(context) = context.filter(|_| self.workers.active() == 0) {
            if unwinds {
                self.end_unrun(context)
            } else {
                self.end(context)
            }
        }
    }

    /// The calling worker has left, and no longer counts. If it was the last, and the owner is gone, it ends
    /// the job system.
    pub(crate) fn end_if_last(&self, context: &Context<'_, P>) {
        // SeqCst, partner: the fence in `shut_down`.
        P::fence(Ordering::SeqCst);
        if self.workers.active() == 0 && self.ending.is_due() {
            self.end(context);
        }
    }

    /// The calling thread returns from a call in which it may have run a job that was the last owner of the
    /// job system.
    #[inline]
    pub(crate) fn end_if_deferred(&self, context: &Context<'_, P>) {
        if self.ending.is_due() && !context.is_called_back() && self.workers.active() == 0 {
            self.end(context);
        }
    }

    /// Runs the jobs that can run and drops the rest, unless another thread does.
    #[cold]
    fn end(&self, context: &Context<'_, P>) {
        if !self.ending.claim() {
            return;
        }
        context.wake_for_all();
        self.run_what_can_run(context);
        self.stop();
        self.until_no_visit(context, &|| {
            while self.run_what_can_run(context) == Remaining::Held {
                self.drop_what_is_held(context);
            }
        });
    }

    /// Drops everything, on a thread that unwinds from a panic, where there are no workers.
    fn end_unrun(&self, context: &Context<'_, P>) {
        if !self.ending.claim() {
            return;
        }
        self.until_no_visit(context, &|| {
            // No job runs here, and the drops of some jobs may make others ready.
            while self.drop_what_is_ready(context) | self.drop_what_is_held(context) {}
        });
    }

    /// Ends all jobs, until no handle has made a further one meanwhile.
    #[inline(never)]
    fn until_no_visit(&self, context: &Context<'_, P>, end_all: &dyn Fn()) {
        loop {
            let before = self.ending.before_last_look();
            end_all();
            if self.ending.is_over(before) {
                return;
            }
            context.thread.parker.park(self.platform.now() + PERIOD);
        }
    }

    /// Runs jobs until none is ready and none runs elsewhere. Returns what is left.
    #[inline(never)]
    fn run_what_can_run(&self, context: &Context<'_, P>) -> Remaining {
        loop {
            while context.run_any() {}
            match self.survey_jobs() {
                Remaining::Running => {
                    // This thread does not wait for the job as a listener, because the job's panic would then
                    // count as reported. Nor does it wait for ever: only this thread may be there to run the
                    // jobs that the job makes.
                    context.thread.parker.park(self.platform.now() + PERIOD);
                }
                rest => return rest,
            }
        }
    }

    /// What is left, and stays if no event is completed. `Running`, if that is not certain.
    fn survey_jobs(&self) -> Remaining {
        let before = self.survey_once();
        match before.found {
            Remaining::Running => Remaining::Running,
            found if self.survey_once() == before => found,
            _ => Remaining::Running,
        }
    }

    #[cold]
    fn survey_once(&self) -> Survey {
        // SeqCst, partner: the publisher's fence (F in `idle`): this survey sees the jobs that were announced
        // before it, and the second survey sees what happened in between.
        P::fence(Ordering::SeqCst);
        let mut found = Remaining::Nothing;
        let mut digest = 0;
        for (index, slot) in self.graph.slots.iter() {
            // Acquire, partner: the Release stores of the state: the flags, the count, the links. The store
            // for a job that is over also makes everything its finisher did before visible to the next
            // survey.
            let word = slot.word(Ordering::Acquire);
            let mut pending = 0;
            match word.phase {
                JobPhase::Ready | JobPhase::Running | JobPhase::Open => {
                    // The thread that runs the scope waits for the scope's jobs.
                    if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_ANONYMOUS == 0 {
                        found = Remaining::Running;
                        break;
                    }
                }
                JobPhase::Waiting => {
                    // Acquire, partner: the subtraction in `release`: that the releasing job is over.
                    pending = slot.pending.load(Ordering::Acquire);
                    let job = Ticket::new(index, word.generation);
                    if self.is_being_released(job, slot, pending) {
                        found = Remaining::Running;
                        break;
                    }
                    found = Remaining::Held;
                }
                JobPhase::Free | JobPhase::Settled => {}
            }
            digest = mix(digest ^ word.pack()) ^ u64::from(pending);
        }
        let is_over = |job| self.slot(job).is_over(job);
        if found != Remaining::Running && self.graph.wakers.are_due(is_over) {
            found = Remaining::Running;
        }
        Survey { found, digest }
    }

    /// Whether the job is about to be ready: nothing holds it back any more, or it is held back by a job that
    /// is over and will release it at once. `pending`: its count.
    fn is_being_released(&self, job: Ticket, slot: &Slot<P>, pending: u32) -> bool {
        // Dropped jobs stay where they are if links lead to them.
        let mut held_by =
            u32::from(slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_OPEN_EVENT != 0);
        self.graph.unfinished_preds(job, &mut |_| held_by += 1);
        pending == 0 || pending > held_by && pending < DROPPED
    }

    /// Drops jobs that no thread has claimed, but for those of built graphs. Returns whether there were
    /// any.
    #[inline(never)]
    fn drop_what_is_ready(&self, context: &Context<'_, P>) -> bool {
        let mut has_dropped = false;
        for (index, slot) in self.graph.slots.iter() {
            let word = slot.word(Ordering::Relaxed);
            let job = Ticket::new(index, word.generation);
            // Relaxed: in a slot that another job gets meanwhile the claim fails.
            let is_of_run = slot.flags.load(Ordering::Relaxed) & Slot::<P>::OF_RUN != 0;
            if word.phase == JobPhase::Ready && !is_of_run && slot.claim(job) {
                has_dropped = true;
                context.graph().drop_unrun(job, slot);
            }
        }
        has_dropped
    }

    /// Drops jobs that something holds back, but for those of built graphs. Returns whether there were
    /// any.
    #[cold]
    #[inline(never)]
    fn drop_what_is_held(&self, context: &Context<'_, P>) -> bool {
        let mut has_dropped = false;
        for (index, slot) in self.graph.slots.iter() {
            // Acquire, partner: the Release stores of the state: the count and the body.
            let word = slot.word(Ordering::Acquire);
            // Relaxed: written before the state.
            let is_of_run = slot.flags.load(Ordering::Relaxed) & Slot::<P>::OF_RUN != 0;
            if word.phase != JobPhase::Waiting || is_of_run {
                continue;
            }
            let mut pending = slot.pending.load(Ordering::Relaxed);
            while pending != 0 && pending < DROPPED {
                // AcqRel, partner: the subtraction in `release`.
                match slot.pending.compare_exchange(
                    pending,
                    pending + DROPPED,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        has_dropped = true;
                        context
                            .graph()
                            .drop_unrun(Ticket::new(index, word.generation), slot);
                        break;
                    }
                    Err(now) => pending = now,
                }
            }
            if pending == 0 {
                // Some thread has just released it and is about to say so.
                let seen = word.pack();
                P::spin_until(&slot.state, |now| now != seen, self.platform.now() + PERIOD);
            }
        }
        has_dropped
    }
}
