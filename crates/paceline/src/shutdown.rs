//! The end of a job system.
//!
//! 1. Everything that is ready, and what becomes ready by that, is run; the calling thread takes
//!    part.
//! 2. The workers are told to stop. Each leaves when it finds no work any more, and is joined.
//! 3. What was still made ready in between (with no workers: everything) is run here.
//! 4. Jobs that are still held back can never run: their bodies are dropped, and the ids and handles
//!    that name them report it.
//!
//! A job that never returns keeps step 2 from ending, as it would keep any thread from being joined.

use platform::{Atomic, Lock, Ordering, Platform};

use crate::context::Context;
use crate::failure::Failure;
use crate::job::{Phase, Slot, Ticket};
use crate::seat::Role;
use crate::shared::Shared;

impl<P: Platform> Shared<P> {
    /// See the module.
    pub(crate) fn shut_down(&self) {
        let Ok(context) = self.context() else {
            // More threads than seats: this one cannot run jobs, but it can stop the workers.
            self.stop();
            return;
        };
        if context.seat.role != Role::Guest {
            // The last owner was one of our own jobs: its thread cannot wait for itself.
            self.signal_stop();
            return;
        }
        context.flush();
        while context.run_any() {}
        self.stop();
        // From here on events complete nothing any more.
        self.ended.with(|ended| *ended = true);
        while context.run_any() {}
        for (index, slot) in self.slots.iter() {
            let word = slot.word(Ordering::Acquire);
            if word.phase == Phase::Waiting {
                self.drop_unrun(&context, Ticket::new(index, word.generation), slot);
            }
        }
    }

    /// A job that can never run.
    fn drop_unrun(&self, context: &Context<'_, P>, job: Ticket, slot: &Slot<P>) {
        self.failures.add(job, Failure::ShutDown);
        let flags = slot.flags.load(Ordering::Relaxed);
        if flags & Slot::<P>::HAS_BODY != 0 {
            context.discard_body(slot);
        }
        // Successors are dropped one by one, too: nobody is released.
        context.tell_listeners_only(job, slot);
        context.let_go(job, slot, flags, true);
    }
}
