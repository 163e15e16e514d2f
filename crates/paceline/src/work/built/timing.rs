//! How long bodies took.

use event::Nanos;

use crate::work::order::mean_of_late;

/// The times of a node's body, of the runs that were timed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Timing {
    pub(crate) runs: u64,
    pub(crate) last: Nanos,
    pub(crate) total: Nanos,
    pub(crate) worst: Nanos,
    /// The mean of late, of the runs that were timed for the order as well.
    pub(super) recent: Nanos,
}

impl Timing {
    #[inline]
    pub(super) fn add(&mut self, time: Nanos) {
        self.runs += 1;
        self.last = time;
        self.total += time;
        self.worst = self.worst.max(time);
    }

    #[inline]
    pub(super) fn learn(&mut self, time: Nanos) {
        self.recent = mean_of_late(self.recent, time);
    }

    /// The mean, or nothing if the node has not run.
    #[inline]
    pub(crate) fn mean(&self) -> Nanos {
        Nanos(self.total.0.checked_div(self.runs).unwrap_or(0))
    }
}
