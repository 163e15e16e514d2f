//! The end of a job system.
//!
//! 1. Everything that is ready, and what becomes ready by that, is run; the calling thread takes
//!    part. So does a thread that is inside a handle's wait: what it is in the middle of is waited
//!    for.
//! 2. The workers are told to stop. Each leaves when it finds no work any more, and is joined.
//! 3. What was still made ready in between (with no workers: everything) is run here.
//! 4. Jobs that are still held back can never run: their bodies are dropped, and the ids and handles
//!    that name them report it.
//!
//! A job that never returns keeps step 1 from ending, as it would keep any thread from being joined.
//!
//! An event may be completed by any thread at any time, also during step 4 and after it. So a job is
//! dropped by a compare-exchange on `pending`, the word that releasing it counts down: either the
//! release came first (and the job is run after all), or [`DROPPED`] is in the count, which then
//! never comes to zero, however many releases follow.

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Parker, Platform};

use crate::context::Context;
use crate::failure::Failure;
use crate::graph::Ending;
use crate::job::{Phase, Slot, Ticket};
use crate::listen::Audience;
use crate::shared::Shared;

/// In the count of a job that was dropped unrun: more than there can be edges. Its slot is not used again:
/// links still lead to it, and on from it.
pub(crate) const DROPPED: u32 = 1 << 31;

/// How long to wait for a job before looking around again.
const PERIOD: Nanos = Nanos::from_millis(1);

/// What a look at all jobs found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A job that runs elsewhere, or is about to.
    Running,
    /// Jobs that could be dropped, or are just being released.
    Held,
}

impl<P: Platform> Shared<P> {
    /// See the module.
    pub(crate) fn shut_down(&self) {
        let Ok(context) = self.context() else {
            // More threads than seats: this one cannot run jobs, but it can stop the workers.
            self.stop();
            return;
        };
        if !context.current_job().is_none() {
            // The last owner was a job: its thread can neither wait for itself nor run what might
            // wait for it. The others run what is ready before they leave.
            self.signal_stop();
            return;
        }
        context.flush();
        self.run_what_can_run(&context);
        self.stop();
        while self.run_what_can_run(&context) == Found::Held {
            self.drop_what_is_held(&context);
        }
    }

    /// Runs until nothing is ready and nothing runs elsewhere. Returns what is left.
    fn run_what_can_run(&self, context: &Context<'_, P>) -> Found {
        loop {
            while context.run_any() {}
            match self.look_at_jobs() {
                Found::Running => {
                    // Not as one who waits for the job: its panic would count as heard. And not for
                    // ever: what it makes may have nobody but this thread to run it.
                    context.seat.parker.park(self.platform.now() + PERIOD);
                }
                rest => return rest,
            }
        }
    }

    fn look_at_jobs(&self) -> Found {
        let mut found = Found::Nothing;
        for (_, slot) in self.slots.iter() {
            // Acquire, partner: the Release stores of the state: the flags.
            match slot.word(Ordering::Acquire).phase {
                Phase::Ready | Phase::Running | Phase::Open => {
                    // Scopes' jobs are waited for by whoever runs the scope.
                    if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_ANONYMOUS == 0 {
                        return Found::Running;
                    }
                }
                Phase::Waiting => found = Found::Held,
                Phase::Free | Phase::Settled => {}
            }
        }
        found
    }

    fn drop_what_is_held(&self, context: &Context<'_, P>) {
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
    }

    /// A job that can never run, and that nobody can release any more.
    fn drop_unrun(&self, context: &Context<'_, P>, job: Ticket, slot: &Slot<P>) {
        self.failures.add(job, Failure::ShutDown);
        let flags = slot.flags.load(Ordering::Relaxed);
        // What depends on it is dropped as well: nobody hears through that.
        match context.audience(job, slot, flags) {
            Audience::Somebody => context.report(job, Audience::Somebody),
            Audience::Nobody | Audience::Successors => context.report(job, Audience::Nobody),
        }
        if flags & Slot::<P>::HAS_BODY != 0 {
            context.discard_body(slot);
        }
        context.record(EventKind::Completed, job, Ending::Cancelled.code());
        let told = context.close(job, slot, flags);
        if context.let_go(job, slot, flags, true) {
            slot.move_on(job);
        }
        // Told when it is over, as in `finish`. Successors are dropped one by one, too: nobody is
        // released.
        context.tell_listeners_only(told);
    }
}
