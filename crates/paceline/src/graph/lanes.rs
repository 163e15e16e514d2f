//! The lane of a job, as the jobs say that wait for it.

use platform::{Atomic, Ordering, Platform};

use super::Graph;
use crate::store::{LaneFlags, Slot, Ticket};

impl<P: Platform> Graph<P> {
    /// The lane of a job that is not over: its own, or the one that a job was raised to that does not end
    /// before it.
    pub(crate) fn lane_of(&self, job: Ticket) -> LaneFlags {
        // Relaxed: a hint for a job that ends meanwhile; for a job that waits or is ready see `work/lanes`.
        let flags_of = |job: Ticket| self.slot(job).flags.load(Ordering::Relaxed);
        let mut lane = LaneFlags::of(flags_of(job));
        self.any_whole(job, |whole| {
            lane = lane.or(LaneFlags::raised_to(flags_of(whole)));
            false
        });
        lane
    }

    /// Calls `visit` with the scope of a job, the job that has opened that scope, its scope and so on, until
    /// `visit` returns true: with those that do not end before the job. Returns whether it did.
    pub(crate) fn any_whole(&self, job: Ticket, mut visit: impl FnMut(Ticket) -> bool) -> bool {
        const NESTING_MAX: usize = 64;
        let is_part = Slot::<P>::IN_SCOPE | Slot::<P>::IS_SCOPE;
        let mut job = job;
        for _ in 0..NESTING_MAX {
            // Relaxed: a hint.
            let flags = self.slot(job).flags.load(Ordering::Relaxed);
            let whole = (flags & is_part != 0).then(|| self.parent_of(job));
            let Some(whole) = whole.flatten() else {
                return false;
            };
            if visit(whole) {
                return true;
            }
            job = whole;
        }
        false
    }
}
