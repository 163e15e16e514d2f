//! How long bodies took.

use event::Nanos;

/// The times of a node's body, of the runs that were timed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Timing {
    pub(crate) runs: u64,
    pub(crate) last: Nanos,
    pub(crate) total: Nanos,
    pub(crate) worst: Nanos,
    /// The mean of late, of the runs that were timed for the order as well: each counts a quarter, and what
    /// came before it the rest.
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
        self.recent = match self.recent {
            Nanos::ZERO => time,
            recent => Nanos(recent.0 - recent.0 / 4 + time.0 / 4),
        };
    }

    /// The mean, or nothing if the node has not run.
    #[inline]
    pub(crate) fn mean(&self) -> Nanos {
        Nanos(self.total.0.checked_div(self.runs).unwrap_or(0))
    }
}
