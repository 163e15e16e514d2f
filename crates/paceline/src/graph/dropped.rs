//! Jobs that can never run. They are dropped at the end of a job system.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::failure::{Audience, Failure};
use super::finish::{Ending, Left};
use super::{Driver, OnGraph};
use crate::store::{Slot, Ticket};

/// The count of a job that was dropped without running: more than there can be edges. Its slot is not used
/// again, because links still lead to it and on from it.
pub(crate) const DROPPED: u32 = 1 << 31;

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
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
