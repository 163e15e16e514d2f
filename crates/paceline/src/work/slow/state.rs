//! The data about slow workers that all threads of a job system share.

use platform::{Atomic, Memory, Padded};

use crate::policy::WakeCost;
use crate::queues::{Fences, Idle, Injector};
use crate::store::Ticket;
use crate::work::range::Trials;

/// The data about slow workers that all threads of a job system share.
pub(crate) struct Slow<M: Memory> {
    pub(crate) idle: Idle<M>,
    /// Whether slow workers take part in loops at all.
    pub(crate) takes_loops: bool,
    /// The range that was offered last, if any. It is a hint: a thread that takes it looks whether it is
    /// still open.
    pub(crate) offered: Padded<M::AtomicU64>,
    /// The cost of waking a slow worker.
    pub(crate) wake_cost: WakeCost<M>,
    /// The known speeds of ranges with slow workers and without.
    pub(crate) trials: Trials<M>,
    /// How many threads may work fast, including the one that waits.
    pub(crate) fast_threads: M::AtomicU32,
}

impl<M: Memory> Slow<M> {
    pub(crate) fn new(threads: usize, takes_loops: bool) -> Slow<M> {
        Slow {
            idle: Idle::new(threads),
            takes_loops,
            offered: Padded(M::AtomicU64::new(Ticket::NONE.0)),
            wake_cost: WakeCost::slow(),
            trials: Trials::new(),
            fast_threads: M::AtomicU32::new(1),
        }
    }

    /// Steps 2 to 4 of publishing a background job: finds the worker that is to look at the backlog. The
    /// caller has put a ticket there, or has found one after a fence. A worker of `fast` is called only if no
    /// slow one will look.
    pub(crate) fn call_for<F: Fences<M>>(&self, backlog: &Injector<M>, fast: &Idle<M>) -> Called {
        if let Some(thread) = self.idle.wake_one() {
            return Called::Worker(thread);
        }
        // To find no worker took a moment. In that moment other publishers may have seen our count and left
        // their jobs to it.
        F::look();
        if self.idle.load().searching > 0 || backlog.is_empty() {
            return Called::Enough;
        }
        fast.wake_one().map_or(Called::NoWorker, Called::Worker)
    }
}

/// The worker that is to look at the backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Called {
    /// The worker on this thread slot, which the caller must unpark.
    Worker(usize),
    /// No further worker: a worker is searching and will see the ticket, or the ticket has been taken.
    Enough,
    /// No worker sleeps: a busy one will look, once it searches.
    NoWorker,
}
