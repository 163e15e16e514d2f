//! The end of a job that was called off before it began. The thread that claims a job with a token asks the
//! token ([`tokens`](super::tokens)). All other jobs pay nothing.

use platform::Platform;

use super::context::Context;
use crate::graph::{Ending, Failure};
use crate::queues::Queue;
use crate::store::{Slot, Ticket};

impl<P: Platform> Context<'_, P> {
    /// Ends a job with a token that this thread has claimed, if the token was cancelled. Otherwise it may
    /// begin.
    #[cold]
    pub(super) fn end_if_called_off(&self, job: Ticket, slot: &Slot<P>, flags: u32) -> bool {
        let token = self.shared.tokens.take(job);
        if !token.is_some_and(|token| token.is_cancelled()) {
            return false;
        }
        let graph = self.graph();
        let label = graph.label_of(slot);
        graph.note_failure(job, slot, flags, Failure::CalledOff { label });
        graph.discard_body(job, slot);
        self.thread.counters.cancelled.add(1);
        graph.finish(job, slot, flags, Ending::Cancelled, Queue::Own);
        self.after_job();
        true
    }
}
