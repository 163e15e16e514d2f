//! The end of a job system.
//!
//! 1. Everything that is ready, and what becomes ready by that, is run; the thread that ends it takes
//!    part. So does a thread that is inside a handle's wait: what it is in the middle of is waited
//!    for.
//! 2. The workers are told to stop. Each leaves when it finds no work any more, and is joined.
//! 3. What was still made ready in between (with no workers: everything) is run here.
//! 4. Jobs that are still held back can never run: their bodies are dropped, and the ids and handles
//!    that name them report it.
//!
//! A job that never returns keeps step 1 from ending, as it would keep any thread from being joined.
//!
//! What is held back for good, and what only a moment longer, is told from a look at all jobs
//! ([`look_at_jobs`](Shared::look_at_jobs)). A thread that finishes a job lets its slot go first and tells
//! its successors then, and code of the program's may run in between (a waker). So a job that waits for less
//! than its count says is about to be released. And a look takes time, in which work may move from where it
//! has not looked to where it has: only two looks that see the same have seen what there was between them.
//!
//! Mostly the thread that drops the job system does all that. It cannot if it is in the middle of a call of
//! the job system's own: the last owner was in a job's body, its result, a hook, a waker. Then it would wait
//! for itself. Nor should it while it unwinds from a panic. So it only tells the workers to stop and leaves
//! the rest to others ([`Ending`]): the last worker to leave does it, or, where there is none, the call that
//! has run that code, when it is through.
//!
//! An event may be completed by any thread at any time, also during step 4 and after it. So a job is
//! dropped by a compare-exchange on `pending`, the word that releasing it counts down: either the
//! release came first (and the job is run after all), or [`DROPPED`] is in the count, which then
//! never comes to zero, however many releases follow.

use event::{EventKind, Nanos, mix};
use platform::{Atomic, Memory, Ordering, Parker, Platform};

use crate::context::Context;
use crate::failure::{Audience, Failure};
use crate::graph::{Ending as JobEnding, Left};
use crate::job::{Phase, Slot, Ticket};
use crate::seat::Role;
use crate::shared::Shared;

/// In the count of a job that was dropped unrun: more than there can be edges. Its slot is not used again:
/// links still lead to it, and on from it.
pub(crate) const DROPPED: u32 = 1 << 31;

/// How long to wait for a job before looking around again.
const PERIOD: Nanos = Nanos::from_millis(1);

/// How far the end is, and whether a thread has yet to bring it about.
pub(crate) struct Ending<M: Memory>(M::AtomicU32);

impl<M: Memory> Ending<M> {
    /// The owner is gone, and could not end it.
    const DEFERRED: u32 = 1;
    /// A thread ends it, or has done so.
    const CLAIMED: u32 = 1 << 1;

    pub(crate) fn new() -> Ending<M> {
        Ending(M::AtomicU32::new(0))
    }

    fn defer(&self) {
        // Relaxed: ordered by the caller's fence.
        self.0.fetch_or(Ending::<M>::DEFERRED, Ordering::Relaxed);
    }

    /// Whether a thread has yet to end it.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // Relaxed: ordered by the caller's fence, or a hint.
        self.0.load(Ordering::Relaxed) == Ending::<M>::DEFERRED
    }

    /// Whether the caller is the one that ends it.
    fn claim(&self) -> bool {
        // Relaxed: it only decides which thread does it.
        let before = self.0.fetch_or(Ending::<M>::CLAIMED, Ordering::Relaxed);
        before & Ending::<M>::CLAIMED == 0
    }
}

/// What a look at all jobs found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A job that runs elsewhere, or is about to, or another thread is about to release.
    Running,
    /// Jobs that nothing will release but the completion of events.
    Held,
}

/// One look: what it found, and a digest of all it saw.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Glance {
    found: Found,
    digest: u64,
}

impl<P: Platform> Shared<P> {
    /// The last owner is gone; see the module.
    pub(crate) fn shut_down(&self) {
        let unwinds = std::thread::panicking();
        // In a sink of this job system there is no way in; the thread is in the middle of a call, then.
        let context = self.context_at_last().ok();
        let context = context.as_ref().filter(|context| !context.is_called_back());
        if let Some(context) =
            context.filter(|context| context.seat.role == Role::Guest && !unwinds)
        {
            return self.end(context);
        }
        self.ending.defer();
        self.signal_stop();
        // SeqCst, partner: the fence in `end_if_last`: either the last worker sees that it has to end the job
        // system, or it is seen here that it has left.
        P::fence(Ordering::SeqCst);
        if let Some(context) = context.filter(|_| self.crew.active() == 0) {
            match unwinds {
                true => self.end_unrun(context),
                false => self.end(context),
            }
        }
    }

    /// The calling worker has left, and does not count any more: if it was the last, and the owner is gone,
    /// it ends the job system.
    pub(crate) fn end_if_last(&self, context: &Context<'_, P>) {
        // SeqCst, partner: the fence in `shut_down`.
        P::fence(Ordering::SeqCst);
        if self.crew.active() == 0 && self.ending.is_due() {
            self.end(context);
        }
    }

    /// The calling thread comes out of a call in which it may have run a job that was the job system's last
    /// owner.
    #[inline]
    pub(crate) fn end_if_deferred(&self, context: &Context<'_, P>) {
        if self.ending.is_due() && !context.is_called_back() && self.crew.active() == 0 {
            self.end(context);
        }
    }

    /// Runs what can run, drops the rest, unless another thread does.
    #[cold]
    fn end(&self, context: &Context<'_, P>) {
        if !self.ending.claim() {
            return;
        }
        context.flush();
        self.run_what_can_run(context);
        self.stop();
        while self.run_what_can_run(context) == Found::Held {
            self.drop_what_is_held(context);
        }
    }

    /// Drops everything, on a thread that unwinds from a panic, where there are no workers.
    fn end_unrun(&self, context: &Context<'_, P>) {
        if !self.ending.claim() {
            return;
        }
        // Nothing runs here, and drops of some jobs may make others ready.
        while self.drop_what_is_ready(context) | self.drop_what_is_held(context) {}
    }

    /// Runs until nothing is ready and nothing runs elsewhere. Returns what is left.
    fn run_what_can_run(&self, context: &Context<'_, P>) -> Found {
        loop {
            while context.run_any() {}
            match self.look_at_jobs(context) {
                Found::Running => {
                    // Not as one who waits for the job: its panic would count as heard. And not for
                    // ever: what it makes may have nobody but this thread to run it.
                    context.seat.parker.park(self.platform.now() + PERIOD);
                }
                rest => return rest,
            }
        }
    }

    /// What there is, and stays if no event is completed. `Running`, if that is not sure.
    fn look_at_jobs(&self, context: &Context<'_, P>) -> Found {
        let before = self.glance_at_jobs(context);
        match before.found {
            Found::Running => Found::Running,
            found if self.glance_at_jobs(context) == before => found,
            _ => Found::Running,
        }
    }

    fn glance_at_jobs(&self, context: &Context<'_, P>) -> Glance {
        // SeqCst, partner: the publisher's fence (F in `idle`): this look sees the jobs that were announced
        // before it, and the second look what happened in between.
        P::fence(Ordering::SeqCst);
        let mut found = Found::Nothing;
        let mut digest = 0;
        for (index, slot) in self.slots.iter() {
            // Acquire, partner: the Release stores of the state: the flags, the count, the links; and that of
            // a job that is over makes what its finisher has done before visible to the next look.
            let word = slot.word(Ordering::Acquire);
            let mut pending = 0;
            match word.phase {
                Phase::Ready | Phase::Running | Phase::Open => {
                    // Scopes' jobs are waited for by whoever runs the scope.
                    if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_ANONYMOUS == 0 {
                        found = Found::Running;
                        break;
                    }
                }
                Phase::Waiting => {
                    // Acquire, partner: the subtraction in `release`: that the releasing job is over.
                    pending = slot.pending.load(Ordering::Acquire);
                    let job = Ticket::new(index, word.generation);
                    if self.is_being_released(context, job, slot, pending) {
                        found = Found::Running;
                        break;
                    }
                    found = Found::Held;
                }
                Phase::Free | Phase::Settled => {}
            }
            digest = mix(digest ^ word.pack()) ^ u64::from(pending);
        }
        Glance { found, digest }
    }

    /// Whether the job is about to be ready: nothing holds it back any more, or something does that is over
    /// and will release it at once. `pending`: its count.
    fn is_being_released(
        &self,
        context: &Context<'_, P>,
        job: Ticket,
        slot: &Slot<P>,
        pending: u32,
    ) -> bool {
        // Dropped jobs stay where they are if links lead to them.
        let mut held_by =
            u32::from(slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_OPEN_EVENT != 0);
        context.unfinished_preds(job, |_| held_by += 1);
        pending == 0 || pending > held_by && pending < DROPPED
    }

    /// Drops jobs that nothing has claimed. Whether there were any.
    fn drop_what_is_ready(&self, context: &Context<'_, P>) -> bool {
        let mut has_dropped = false;
        for (index, slot) in self.slots.iter() {
            let word = slot.word(Ordering::Relaxed);
            let job = Ticket::new(index, word.generation);
            if word.phase == Phase::Ready && slot.claim(job) {
                has_dropped = true;
                self.drop_unrun(context, job, slot);
            }
        }
        has_dropped
    }

    /// Drops jobs that something holds back. Whether there were any.
    fn drop_what_is_held(&self, context: &Context<'_, P>) -> bool {
        let mut has_dropped = false;
        for (index, slot) in self.slots.iter() {
            // Acquire, partner: the Release stores of the state: the count and the body.
            let word = slot.word(Ordering::Acquire);
            if word.phase != Phase::Waiting {
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
                        self.drop_unrun(context, Ticket::new(index, word.generation), slot);
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

    /// A job that can never run, and that nobody can release any more.
    fn drop_unrun(&self, context: &Context<'_, P>, job: Ticket, slot: &Slot<P>) {
        let flags = slot.flags.load(Ordering::Relaxed);
        context.note_failure(job, slot, flags, Failure::ShutDown);
        // What depends on it is dropped as well: nobody hears through that.
        let audience = match context.audience(job, slot, flags) {
            Audience::Somebody => Audience::Somebody,
            Audience::Nobody | Audience::Successors => Audience::Nobody,
        };
        let unheard = context.unheard_panic(job, audience);
        if flags & Slot::<P>::HAS_BODY != 0 {
            context.discard_body(job, slot);
        }
        context.record(EventKind::Completed, job, JobEnding::Cancelled.code());
        let told = context.close(job, slot, flags);
        if context.let_go(job, slot, flags, true) == Left::Nothing {
            slot.move_on(job);
        }
        // Told when it is over, as in `finish`. Successors are dropped one by one, too: nobody is
        // released.
        context.tell_listeners_only(told);
        if let Some(panic) = unheard {
            context.report(&panic);
        }
    }
}
