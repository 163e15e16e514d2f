//! Jobs that can never run. They are dropped at the end of a job system, and at the end of a scope whose jobs
//! wait for it.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::failure::{Audience, Failure};
use super::finish::{Ending, Left};
use super::{Driver, OnGraph};
use crate::queues::Queue;
use crate::store::{Label, NIL, Slot, Ticket};

/// The count of a job that was dropped without running: more than there can be edges. Its slot is not used
/// again, because links still lead to it and on from it.
pub(crate) const DROPPED: u32 = 1 << 31;

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// Ends a job of a scope that waits for its own scope, unless it has started. The slot and its links are
    /// not used again.
    pub(crate) fn give_up(self, job: Ticket, cycle: &[Label]) {
        let slot = self.slot(job);
        if !self.hold_back(job, slot) {
            return;
        }
        // Relaxed: this thread holds the job back. From now on its count never comes to zero.
        slot.pending.fetch_add(DROPPED, Ordering::Relaxed);
        let flags = slot.flags.load(Ordering::Relaxed);
        let scope = slot.parent(flags);
        let failure = Failure::Deadlock {
            label: self.label_of(slot),
            cycle: cycle.into(),
        };
        self.note_failure(job, slot, flags, failure);
        self.discard_body(job, slot);
        self.driver
            .record(EventKind::Completed, job, Ending::Cancelled.code());
        let first = self.close(job, slot, flags);
        if self.let_go(job, slot, flags, true) == Left::Nothing {
            slot.move_on(job);
        }
        if first != NIL {
            self.notify_list(first, job, true, Queue::Own);
        }
        self.release(scope, 1, Queue::Own);
    }

    /// Drops a job that can never run, and that no thread can release any more.
    pub(crate) fn drop_unrun(self, job: Ticket, slot: &Slot<P>) {
        let flags = slot.flags.load(Ordering::Relaxed);
        self.note_failure(job, slot, flags, Failure::ShutDown);
        // The successors are dropped as well, so no wait hears of the panic through them.
        let audience = match self.audience(job, slot, flags) {
            Audience::Listener => Audience::Listener,
            Audience::Empty | Audience::Successors => Audience::Empty,
        };
        let unreported = self.unreported_panic(job, audience);
        if flags & Slot::<P>::HAS_BODY != 0 {
            self.discard_body(job, slot);
        }
        self.driver
            .record(EventKind::Completed, job, Ending::Cancelled.code());
        let first = self.close(job, slot, flags);
        if self.let_go(job, slot, flags, true) == Left::Nothing {
            slot.move_on(job);
        }
        // Listeners are notified when the job is over, as in `finish`. Successors are not released: they are
        // dropped one by one, too.
        self.notify_listeners_only(first);
        if let Some(panic) = unreported {
            self.report(&panic);
        }
    }
}
