//! What all threads of a job system share.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use event::{Nanos, Sink};
use platform::{Atomic, Distance, Padded, Platform, Topology};

use crate::adapt::Adapt;
use crate::border::{Hooks, Panics};
use crate::crew::Crew;
use crate::failure::Failures;
use crate::idle::Idle;
use crate::injector::Injector;
use crate::job::{LINK_BLOCKS_MAX, Labels, Links, Slot, Ticket};
use crate::limits::{JOBS_MAX, RECORDS_MAX};
use crate::listen::Wakers;
use crate::policy::{SpinPolicy, WakeCost};
use crate::range::RangeBlock;
use crate::record::Tap;
use crate::seat::{Role, Seats};
use crate::shutdown::Ending;
use crate::sitting::Host;
use crate::slab::Slab;
use crate::slow::Slow;
use crate::stats::Stats;

/// The job system itself; [`JobSystem`](crate::JobSystem) is the door to it.
pub(crate) struct Shared<P: Platform> {
    pub(crate) platform: P,
    pub(crate) id: NonZeroU32,
    pub(crate) this: Weak<Shared<P>>,
    pub(crate) slots: Slab<P, Slot<P>>,
    pub(crate) links: Slab<P, Links<P>>,
    pub(crate) blocks: Slab<P, RangeBlock<P>>,
    pub(crate) seats: Seats<P>,
    pub(crate) idle: Idle<P>,
    pub(crate) injector: Injector<P>,
    /// Background jobs that are ready. Whoever searches asks whether there are any, and nearly always there
    /// are none: nothing that is written often may be beside it.
    pub(crate) backlog: Padded<Injector<P>>,
    pub(crate) slow: Slow<P>,
    pub(crate) labels: Labels<P>,
    pub(crate) failures: Failures<P>,
    pub(crate) wakers: Wakers<P>,
    pub(crate) crew: Crew<P>,
    pub(crate) adapt: Adapt<P>,
    pub(crate) spin: SpinPolicy,
    /// What a wake-up takes.
    pub(crate) wake_cost: Padded<WakeCost<P>>,
    /// Whether any edge was added to a job after it was scheduled: only then can edges form cycles.
    pub(crate) late_edges: P::AtomicU32,
    pub(crate) frames: P::AtomicU64,
    pub(crate) tap: Option<Tap<P>>,
    pub(crate) hooks: Hooks,
    /// Panics of the program's code that no job fails of.
    pub(crate) panics: Panics<P>,
    /// How far its end is.
    pub(crate) ending: Ending<P>,
    pub(crate) max_jobs: u32,
    pub(crate) fork_epoch: u32,
    /// The last-level cache of each CPU, by CPU number; empty if there is only one.
    caches: Vec<u32>,
}

/// What a job system is made of; the builder fills this in.
pub(crate) struct Parts<P: Platform> {
    pub(crate) platform: P,
    pub(crate) seats: usize,
    pub(crate) guests_max: usize,
    pub(crate) workers_max: usize,
    pub(crate) spares_max: usize,
    pub(crate) queue: usize,
    pub(crate) max_jobs: u32,
    pub(crate) spin: SpinPolicy,
    pub(crate) adapt: Adapt<P>,
    pub(crate) sink: Option<Arc<dyn Sink>>,
    pub(crate) recording: bool,
    pub(crate) hooks: Hooks,
    pub(crate) stack_bytes: Option<usize>,
    pub(crate) slice: Option<Nanos>,
}

/// Most ranges that are being run by several threads at a time; further ones stay with their thread.
const BLOCKS_MAX: u32 = 1 << 12;
/// How many blocks of links there may be.
const LINK_BLOCKS_PER_JOB: u32 = 4;
const _: () = assert!(JOBS_MAX * LINK_BLOCKS_PER_JOB <= LINK_BLOCKS_MAX);

impl<P: Platform> Shared<P> {
    pub(crate) fn new(parts: Parts<P>) -> Arc<Shared<P>> {
        let seats = parts.seats as u32;
        let slots_max = Slab::<P, Slot<P>>::with_hoards(parts.max_jobs, seats);
        Arc::new_cyclic(|this| Shared {
            id: platform::fresh_pool_id(),
            this: this.clone(),
            slots: P::on_own_lines(|| Slab::new(parts.max_jobs, seats, Slot::empty)),
            links: P::on_own_lines(|| {
                Slab::new(parts.max_jobs * LINK_BLOCKS_PER_JOB, seats, Links::empty)
            }),
            blocks: P::on_own_lines(|| Slab::new(BLOCKS_MAX, 0, RangeBlock::empty)),
            seats: Seats::new(parts.seats, parts.guests_max, parts.queue),
            idle: Idle::new(parts.seats),
            injector: Injector::new(),
            backlog: Padded(Injector::new()),
            slow: Slow::new(parts.seats),
            labels: Labels::new(),
            failures: Failures::new(slots_max, RECORDS_MAX),
            wakers: Wakers::new(),
            crew: Crew::new(
                parts.workers_max,
                parts.spares_max,
                parts.stack_bytes,
                parts.slice,
            ),
            adapt: parts.adapt,
            spin: parts.spin,
            wake_cost: Padded(WakeCost::fast()),
            late_edges: P::AtomicU32::new(0),
            frames: P::AtomicU64::new(0),
            tap: parts
                .sink
                .map(|sink| Tap::new(sink, parts.recording, parts.seats)),
            hooks: parts.hooks,
            panics: Panics::new(),
            ending: Ending::new(),
            max_jobs: parts.max_jobs,
            fork_epoch: parts.platform.fork_epoch(),
            caches: caches(&parts.platform),
            platform: parts.platform,
        })
    }

    /// Whether this process is a child of the one that made the job system.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.platform.fork_epoch() != self.fork_epoch
    }

    pub(crate) fn host(&self) -> Weak<dyn Host> {
        self.this.clone()
    }

    #[inline]
    pub(crate) fn slot(&self, ticket: Ticket) -> &Slot<P> {
        self.slots.get(ticket.index())
    }

    /// Whether any queue holds a ticket, as far as can be seen.
    pub(crate) fn has_work(&self) -> bool {
        !self.injector.is_empty()
            || !self.backlog.is_empty()
            || self.seats.iter().any(|seat| {
                seat.deque.len() > 0 || seat.inbox.as_ref().is_some_and(|inbox| inbox.len() > 0)
            })
    }

    /// Whether two CPUs share a last-level cache; CPUs nobody knows do.
    pub(crate) fn are_near(&self, a: u32, b: u32) -> bool {
        match (self.caches.get(a as usize), self.caches.get(b as usize)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    /// A CPU that stands for all that share a last-level cache with this one.
    pub(crate) fn cache_of(&self, cpu: u32) -> u32 {
        self.caches.get(cpu as usize).copied().unwrap_or(cpu)
    }

    pub(crate) fn has_many_caches(&self) -> bool {
        !self.caches.is_empty()
    }

    /// How long a thread without work spins now.
    pub(crate) fn spin_time(&self) -> Nanos {
        // The waiting thread counts as one more.
        let threads = self.crew.active() + 1;
        self.spin
            .spin_time(self.wake_cost.get(), threads, self.adapt.width())
    }

    /// How many threads could work on one thing at the same time.
    pub(crate) fn threads_at_once(&self) -> u32 {
        let threads = self.crew.active() + 1;
        threads.min(self.adapt.width().threads).max(1) as u32
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut total = Stats::default();
        self.seats
            .iter()
            .for_each(|seat| seat.counters.add_to(&mut total));
        self.panics.add_to(&mut total);
        total
    }
}

impl<P: Platform> Host for Shared<P> {
    fn guest_left(&self, seat: u32) {
        if self.seats.get(seat as usize).role == Role::Guest {
            self.seats.leave(seat);
        }
    }

    fn role_thread_ends(&self) {
        if !self.is_forked() {
            self.adapt.thread_ended(self, None);
        }
    }
}

/// A CPU that stands for all that share a last-level cache with this one.
pub(crate) fn cache_of(topology: &Topology, cpu: u32) -> u32 {
    let mut cpus = topology.allowed().iter();
    let near = cpus.find(|&other| topology.distance(cpu, other) <= Distance::Cache);
    near.unwrap_or(cpu)
}

fn caches<P: Platform>(platform: &P) -> Vec<u32> {
    let topology = platform.topology();
    let cpus: Vec<u32> = topology.allowed().iter().collect();
    let mut caches = vec![0; cpus.iter().max().map_or(0, |&cpu| cpu as usize + 1)];
    cpus.iter()
        .for_each(|cpu| caches[*cpu as usize] = cache_of(topology, *cpu));
    match cpus
        .iter()
        .any(|&cpu| caches[cpu as usize] != caches[cpus[0] as usize])
    {
        true => caches,
        false => Vec::new(),
    }
}
