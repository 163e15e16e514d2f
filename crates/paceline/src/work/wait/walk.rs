//! The state of the search for runnable ancestors.

use event::Nanos;

use crate::store::{Set, Ticket};

/// A walk from the target to its unfinished ancestors, depth first. It can be left when it has found a job to
/// run, and taken up again: that costs less than to start over. The next walk looks at jobs that this one has
/// not seen.
pub(super) struct Walk {
    pub(super) stack: Vec<Ticket>,
    /// The number of this walk on this thread slot: the mark of jobs that it has visited.
    pub(super) serial: u64,
    /// For how many visits the walk relies on marks. Two waiters that overwrite each other's marks visit jobs
    /// more than once, in the worst case once for each path to a job.
    pub(super) visits_left: usize,
    /// The jobs that were visited after that, each once. Mostly there is no such set, so it is boxed.
    pub(super) visited: Option<Box<Set<Ticket>>>,
    /// The time at which the wait may run any job, although it is in the middle of a job.
    pub(super) last_resort: Nanos,
}

impl Walk {
    /// A walk that has not begun. `stack` is empty.
    pub(super) fn with(stack: Vec<Ticket>) -> Walk {
        Walk {
            stack,
            serial: 0,
            visits_left: 0,
            visited: None,
            last_resort: Nanos::MAX,
        }
    }

    /// Whether the job is not known to have been visited.
    #[inline]
    pub(super) fn is_first_visit(&mut self, job: Ticket) -> bool {
        match self.visits_left.checked_sub(1) {
            Some(left) => {
                self.visits_left = left;
                true
            }
            None => self.visit_once(job),
        }
    }

    #[cold]
    fn visit_once(&mut self, job: Ticket) -> bool {
        self.visited.get_or_insert_default().insert(job, ())
    }
}
