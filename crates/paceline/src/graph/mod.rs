//! The graph of jobs: makes jobs, adds edges between them, and notifies successors and listeners when a job
//! is over.
//!
//! The graph knows slots, links and failures. It knows nothing of queues, waits and workers. What it needs
//! from the calling thread, it gets from a [`Driver`]: the data that the thread keeps for itself
//! ([`GraphLocal`]), a queue for a job that is ready, a wake-up for a thread that waits.
//!
//! - [`make`]: a slot becomes a job.
//! - [`edges`]: the edges of a job, given when it is scheduled or later, and what a scope needs.
//! - [`finish`]: a job is over.
//! - [`listen`]: threads and futures that wait for a job.
//! - [`lanes`]: the lane of a job, with that of the scopes that it is a part of.
//! - [`scopes`]: the ends of a scope's jobs, counted.
//! - [`failure`] and [`failing`]: jobs that failed.

mod ancestors;
mod dropped;
mod edges;
mod failing;
mod failure;
mod finish;
mod lanes;
mod listen;
mod make;
mod scopes;

use std::marker::PhantomData;
use std::ops::Deref;

use event::EventKind;
use platform::Platform;

use crate::border::{Payload, UserValue};
use crate::hooks::Hooks;
use crate::queues::Queue;
use crate::stats::Counters;
use crate::store::{Cache, Label, LabelCache, Labels, Links, Slab, Slot, Ticket};

pub(crate) use dropped::DROPPED;
pub(crate) use failure::{Failure, Failures};
pub(crate) use finish::Ending;
use listen::WaitLinks;
pub(crate) use listen::{Listener, Wakers};

/// All jobs of a job system.
pub(crate) struct Graph<P: Platform> {
    pub(crate) slots: Slab<P, Slot<P>>,
    pub(crate) links: Slab<P, Links<P>>,
    pub(crate) labels: Labels<P>,
    pub(crate) failures: Failures<P>,
    pub(crate) wakers: Wakers<P>,
    /// Whether any edge was added to a job after it was scheduled: only such edges can form cycles.
    pub(crate) late_edges: P::AtomicU32,
    pub(crate) max_jobs: u32,
}

/// The part of the graph's data that each thread keeps for itself.
pub(crate) struct GraphLocal {
    pub(crate) slots: Cache,
    pub(crate) links: Cache,
    pub(crate) labels: LabelCache,
    /// Jobs without a body and cancelled jobs that became ready. This thread has to finish them.
    pub(crate) todo: Vec<Ticket>,
    /// Jobs of one scope that finished here and that are not yet subtracted from its count.
    finished: scopes::Finished,
    /// The links of this thread slot's waits.
    wait_links: WaitLinks,
}

/// The graph, and the thread that works on it.
pub(crate) struct OnGraph<'d, P, D> {
    driver: &'d D,
    _platform: PhantomData<fn() -> P>,
}

impl<P, D> Clone for OnGraph<'_, P, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, D> Copy for OnGraph<'_, P, D> {}

impl<'d, P: Platform, D: Driver<P>> OnGraph<'d, P, D> {
    #[inline(always)]
    pub(crate) fn new(driver: &'d D) -> Self {
        OnGraph {
            driver,
            _platform: PhantomData,
        }
    }
}

impl<P: Platform, D: Driver<P>> Deref for OnGraph<'_, P, D> {
    type Target = Graph<P>;

    #[inline(always)]
    fn deref(&self) -> &Graph<P> {
        self.driver.jobs()
    }
}

/// The calling thread, as the graph sees it.
pub(crate) trait Driver<P: Platform> {
    /// The graph that it works on.
    fn jobs(&self) -> &Graph<P>;
    /// The number of its thread slot.
    fn index(&self) -> u32;
    /// Gives `f` the data that the thread keeps for itself. `f` does not call back.
    fn local<R>(&self, f: impl FnOnce(&mut GraphLocal) -> R) -> R;
    fn counters(&self) -> &Counters<P>;
    fn hooks(&self) -> &Hooks;
    /// Records an event, if the job system records.
    fn record(&self, kind: EventKind, job: Ticket, arg: u64);
    /// Puts a ready job into a queue, from which some thread takes it. [`publish`](Driver::publish) announces
    /// it.
    fn enqueue(&self, job: Ticket, queue: Queue);
    /// The same for a job of which the flags alone do not say that it is in the normal lane.
    fn enqueue_in_lane(&self, job: Ticket, queue: Queue);
    /// Hands a pinned job that may run to its thread. If that thread has left, the job becomes ready for all,
    /// to be called off.
    fn hand_to_thread(&self, job: Ticket);
    /// A job with a rank is about to be ready: notes its rank in the slot.
    fn gets_rank(&self, job: Ticket, slot: &Slot<P>);
    /// Announces the jobs that were put into a queue.
    fn publish(&self, queue: Queue);
    /// Wakes the thread on this thread slot, which is a listener.
    fn wake_listener(&self, thread: u32);
    /// Tells that a job has got another predecessor. Threads that wait for the job may have to run that
    /// predecessor.
    fn has_new_predecessor(&self, job: Ticket);
    /// Whether a thread waits for the job without being a listener.
    fn is_awaited(&self, job: Ticket) -> bool;
    /// The job will not run, or has: what is kept of it in tables beside the slots is not needed any more.
    fn forget_extras(&self, job: Ticket);
    /// Drops the closure or the result of a job.
    fn discard_held(&self, job: Ticket, drop_it: impl FnOnce() -> Result<(), Payload>);
    /// Drops a value of the program's that belongs to no job.
    fn discard<T>(&self, value: UserValue<T>);
    /// Calls a hook, a sink or the like on behalf of no job. `None`: it panicked, and the panic is counted.
    fn call_hook<R>(&self, call: impl FnOnce() -> Result<R, Payload>) -> Option<R>;
}

impl<P: Platform> Graph<P> {
    #[inline]
    pub(crate) fn slot(&self, job: Ticket) -> &Slot<P> {
        self.slots.get(job.index())
    }

    /// The scope or job that made `job`, unless `job` is over.
    pub(crate) fn parent_of(&self, job: Ticket) -> Option<Ticket> {
        // A parent outlives the jobs it made.
        let parent = self.slot(job).parent_of(job)?;
        self.slots.exists(parent.index()).then_some(parent)
    }

    /// The label of the job in this slot.
    pub(crate) fn label_of(&self, slot: &Slot<P>) -> Label {
        let unknown = Label {
            name: "job",
            site: std::panic::Location::caller(),
        };
        self.labels.get(slot.label_number()).unwrap_or(unknown)
    }

    /// Makes room for the free entries that each thread slot keeps for itself, and that others cannot have.
    pub(crate) fn make_room_for(&self, thread: u32) {
        self.slots.make_room_for_cache(thread);
        self.links.make_room_for_cache(thread);
    }
}

impl GraphLocal {
    pub(crate) fn new() -> GraphLocal {
        GraphLocal {
            slots: Cache::new(),
            links: Cache::new(),
            labels: LabelCache::new(),
            todo: Vec::new(),
            finished: scopes::Finished::NONE,
            wait_links: WaitLinks::new(),
        }
    }
}
