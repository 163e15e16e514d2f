//! How many threads can run at the same time, now; and as many workers as fit that.
//!
//! CPUs go offline and come back, a control group gets another quota, a phone moves the program to its
//! small cores. Who flushes, waits or begins a frame sees to it that somebody has a look at the machine if
//! the last one was a second ago ([`PERIOD`]): nobody looks by a timer, so that a job system with nothing
//! to do still does nothing. A look takes a tenth of a millisecond. So the next worker without work has it,
//! woken for that if all sleep; only if nobody had it for [`CONFIRM`] (all are busy), or there are no
//! workers, the thread that comes by.
//!
//! - What grew counts at once. What shrank counts when the next look says the same, which comes after
//!   [`CONFIRM`]: a CPU that is away for a moment costs no threads.
//! - Workers that are too many retire by [`crew`](crate::crew), at their next idle point, with their queues
//!   empty; those that are missing are started again.
//! - Who asks for a look waits for the workers, if it is a thread outside: they are to be near it ([`near`]).
//! - The threads that are asked about are the caller and all workers: their masks together say where this
//!   job system may run. One thread that was pinned to a CPU does not make the machine small, and neither
//!   does a worker that steers clear of one.
//!
//! Invariants
//! - The number of workers wanted is a function of what was asked for and what was found ([`Reading`]),
//!   and is stored under the same lock.
//! - What cannot be found out changes nothing.

mod near;
mod reading;

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Limits, Lock, Memory, Ordering, Padded, Platform};

use crate::adapt::place::{Place, PlacedThread, allowed_without_place};
use crate::adapt::steer::Mask;
use crate::context::Context;
use crate::job::Ticket;
use crate::policy::Width;
use crate::seat::Role;
use crate::shared::Shared;

use reading::Learned;
pub(crate) use reading::{Asked, Reading};

/// How long one look at the machine serves.
const PERIOD: Nanos = Nanos::from_secs(1);
/// When to look again at a machine that seems to have shrunk.
const CONFIRM: Nanos = Nanos::from_millis(100);

/// The machine as this job system knows it.
pub(crate) struct Live<M: Memory> {
    /// Whether to look again at all.
    pub(crate) is_on: bool,
    /// The CPUs that workers are to stay on; none given: wherever they may.
    cpus: Option<CpuSet>,
    /// When to look again, in ns.
    due: Padded<M::AtomicU64>,
    /// A look is asked of the next worker that has nothing to do.
    asked: M::AtomicU32,
    /// A CPU in the cache of the thread outside that asked last, + 1; 0: not known. Relaxed: a hint.
    waiter: M::AtomicU32,
    /// [`Width`], packed. Relaxed: a number that nothing is published with.
    width: M::AtomicU32,
    pub(crate) reading: M::Lock<Reading>,
}

impl<M: Memory> Live<M> {
    /// What was found at `now`. `cpus` restricts all workers.
    pub(crate) fn new(reading: Reading, cpus: Option<CpuSet>, follow: Option<Nanos>) -> Live<M> {
        let width = reading.width_now();
        let waiter = reading.near.waiter().map_or(0, |cpu| cpu + 1);
        Live {
            is_on: follow.is_some(),
            cpus,
            due: Padded(M::AtomicU64::new(
                follow.map_or(u64::MAX, |now| (now + PERIOD).0),
            )),
            asked: M::AtomicU32::new(0),
            waiter: M::AtomicU32::new(waiter),
            width: M::AtomicU32::new(width.pack()),
            reading: M::Lock::new(reading),
        }
    }

    pub(crate) fn width(&self) -> Width {
        Width::unpack(self.width.load(Ordering::Relaxed))
    }

    /// True for one of those who ask when a look is due: it has to look.
    #[inline]
    pub(crate) fn takes_turn(&self, now: Nanos) -> bool {
        // Relaxed: the number decides who looks; what is found is under the lock.
        let due = self.due.load(Ordering::Relaxed);
        now.0 >= due && self.take_turn(due, now)
    }

    #[cold]
    fn take_turn(&self, due: u64, now: Nanos) -> bool {
        // If nobody has looked by then, whoever comes by does.
        let next = (now + CONFIRM).0;
        self.due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Asks for a look. True if it was asked for before, and nobody has had one.
    fn ask(&self) -> bool {
        // Relaxed, here and below: what is found is under the lock; `ask_for_look` fences.
        self.asked.swap(1, Ordering::Relaxed) != 0
    }

    /// Whether a worker that has nothing to do should look.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// Somebody has looked.
    fn has_looked(&self, now: Nanos, must_confirm: bool) {
        let next = if must_confirm { CONFIRM } else { PERIOD };
        // Relaxed: as in `takes_turn`; whoever has looked meanwhile looks once more.
        self.due.store((now + next).0, Ordering::Relaxed);
    }

    /// Learns what a look has found; `settle` is called with the number of workers wanted by now, in the
    /// order in which it is learned.
    pub(crate) fn learn(&self, limits: Limits, settle: impl FnOnce(&Learned, usize)) -> Learned {
        self.reading.with(|reading| {
            let learned = reading.learn(limits);
            let width = reading.width_now();
            self.width.store(width.pack(), Ordering::Relaxed);
            settle(&learned, reading.workers());
            learned
        })
    }

    pub(crate) fn explain(&self) -> Vec<String> {
        self.reading.with(|reading| reading.explain())
    }

    /// The places of the workers, by ordinal; none if they may run everything everywhere.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.reading.with(|reading| reading.places().to_vec())
    }

    /// The place of the worker with this ordinal; that of the first one's class for those without.
    pub(crate) fn place(&self, ordinal: u32) -> Option<Place> {
        self.reading.with(|reading| {
            let place = reading.places().get(ordinal as usize);
            place.or(reading.of_class()).cloned()
        })
    }

    /// A thread outside, which waits for the workers, is in the cache of this CPU.
    fn saw_waiter(&self, cpu: Option<u32>) {
        self.waiter
            .store(cpu.map_or(0, |cpu| cpu + 1), Ordering::Relaxed);
    }

    /// That CPU.
    fn waiter(&self) -> Option<u32> {
        self.waiter.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether the number of workers has to do with the machine's.
    pub(crate) fn fits(&self) -> bool {
        self.reading.with(|reading| reading.fits())
    }

    /// The CPUs that workers were told to stay on, if any.
    pub(crate) fn told_cpus(&self) -> Option<&CpuSet> {
        self.cpus.as_ref()
    }
}

/// The CPUs of the first set that the second one has, too; if there are none, the first set: a CPU that
/// is away for a while must not stop everything.
pub(crate) fn common(cpus: &CpuSet, wanted: Option<&CpuSet>) -> CpuSet {
    let both = wanted.map_or_else(CpuSet::new, |wanted| wanted.intersection(cpus));
    match both.is_empty() {
        true => cpus.clone(),
        false => both,
    }
}

/// What these threads may use of the machine, of the CPUs they were told to stay on. `usable`: what could be
/// used when they were given their places.
///
/// The platform knows about the process, and that is not enough: a program may have pinned its main thread to
/// one CPU, and that says nothing about its workers.
pub(crate) fn limits_of<P: Platform>(
    platform: &P,
    threads: &[PlacedThread],
    told: Option<&CpuSet>,
    usable: &CpuSet,
) -> Limits {
    let mut limits = platform.limits();
    for thread in threads {
        if let Some(allowed) = allowed_without_place(platform, thread, usable) {
            limits.allowed = limits.allowed.union(&allowed);
        }
    }
    limits.allowed = common(&limits.usable(), told);
    limits
}

/// The calling thread, which was given no place.
pub(crate) fn caller<P: Platform>(platform: &P) -> PlacedThread {
    PlacedThread {
        thread: platform.thread_id(),
        given: None,
        is_steered: false,
    }
}

impl<P: Platform> Shared<P> {
    /// What the last look found.
    pub(crate) fn limits(&self) -> Limits {
        self.live.reading.with(|reading| reading.limits.clone())
    }

    /// Makes the number of regular workers what the program asks for. Returns the first refusal of the
    /// system, after which fewer workers run.
    pub(crate) fn resize(&self, workers: usize) -> Result<(), platform::SpawnError> {
        self.live.reading.with(|reading| {
            reading.asked = Asked::Exactly {
                workers,
                width_then: reading.width,
            };
            reading.replan();
            self.crew.set_target(reading.workers());
        });
        self.man_posts()
    }

    /// No more workers than that, if there is a number; how many there are to be.
    /// [`man_missing_posts`](Shared::man_missing_posts) sees to it.
    pub(crate) fn limit_workers(&self, most: Option<usize>) -> usize {
        self.live.reading.with(|reading| {
            reading.most = most.unwrap_or(usize::MAX);
            reading.replan();
            let workers = reading.workers();
            self.crew.set_target(workers);
            workers
        })
    }

    /// As [`man_posts`](Shared::man_posts); who is missing because the system refused is asked for again at
    /// the next look.
    pub(crate) fn man_missing_posts(&self) {
        let refused = self.man_posts().is_err();
        self.live
            .reading
            .with(|reading| reading.undermanned = refused);
    }

    /// Starts the first workers.
    pub(crate) fn start_workers(&self) -> Result<(), platform::SpawnError> {
        let target = self.live.reading.with(|reading| reading.workers());
        self.crew.set_target(target);
        self.man_posts()
    }
}

impl<P: Platform> Context<'_, P> {
    /// If it is time for that, sees to it that somebody has a look at the machine.
    #[inline]
    pub(crate) fn follow_machine(&self) {
        if self.shared.live.is_on {
            self.follow_machine_at(self.shared.platform.now());
        }
    }

    /// The same for threads that know the time.
    #[inline]
    pub(crate) fn follow_machine_at(&self, now: Nanos) {
        if self.shared.live.is_on && self.shared.live.takes_turn(now) {
            self.ask_for_look();
        }
    }

    /// A look takes a tenth of a millisecond, which is too much for a thread that has a frame to begin: a
    /// worker has it as soon as it has nothing to do. If all of them sleep, one is woken.
    #[cold]
    fn ask_for_look(&self) {
        let shared = self.shared;
        if self.seat.role == Role::Guest && shared.has_many_caches() {
            let cpu = shared.platform.current_cpu();
            shared.live.saw_waiter(cpu.map(|cpu| shared.cache_of(cpu)));
        }
        if shared.live.ask() || shared.crew.active() == 0 {
            self.look_at_machine();
            return;
        }
        // SeqCst, partner: the fence of a worker that has said that it sleeps and looks around once more.
        P::fence(Ordering::SeqCst);
        let sleeper = shared.slow.idle.wake_one();
        if let Some(seat) = sleeper.or_else(|| shared.idle.wake_one()) {
            self.wake_worker(seat);
        }
    }

    /// Has a look if one was asked for. True if so. The caller is a worker without work, and does not count
    /// as searching meanwhile, since others would leave work to it.
    #[cold]
    pub(crate) fn look_if_asked(&self) -> bool {
        // Relaxed: one of those who see it looks, or two do.
        let is_mine = self.shared.live.asked.swap(0, Ordering::Relaxed) != 0;
        if is_mine {
            self.look_at_machine();
        }
        is_mine
    }

    #[cold]
    fn look_at_machine(&self) {
        let shared = self.shared;
        // Relaxed: see `look_if_asked`.
        shared.live.asked.store(0, Ordering::Relaxed);
        let mut threads = shared.placed_threads();
        let caller = caller(&shared.platform);
        threads.push(PlacedThread {
            given: shared.role_mask(caller.thread),
            ..caller
        });
        let usable = shared.limits().usable();
        let limits = limits_of(&shared.platform, &threads, shared.live.told_cpus(), &usable);
        let new = limits.usable();
        let (waiter, are_preempted) = (shared.live.waiter(), shared.noticed.are_preempted());
        let must_detect = shared.live.reading.with(|reading| {
            reading.near.learn(waiter, are_preempted);
            reading.must_detect(&new)
        });
        if must_detect {
            let machine = shared.platform.detect();
            shared.live.reading.with(|reading| {
                let earlier = reading.machine.take();
                reading.machine = earlier.map(|earlier| machine.remembering(&earlier));
            });
        }
        self.learn_machine(limits);
    }

    fn learn_machine(&self, limits: Limits) {
        let shared = self.shared;
        let mut target = 0;
        let learned = shared.live.learn(limits, |learned, workers| {
            target = workers;
            // Counted first: who sees the workers sees the count.
            self.seat
                .counters
                .resizes
                .add(learned.change.is_some().into());
            shared.crew.set_target(workers);
        });
        let now = shared.platform.now();
        shared.live.has_looked(now, learned.must_confirm);
        if learned.has_new_cpus {
            shared.widen_masks();
        }
        shared.hold_role_threads();
        if learned.change.is_some() || learned.is_undermanned || learned.has_new_places {
            shared.man_missing_posts();
        }
        if let Some(why) = learned.change {
            let arg = (why as u64) << 32 | target as u64;
            self.record(EventKind::Resized, Ticket::NONE, arg);
        }
        self.seat.counters.looks.add(1);
    }
}

impl<P: Platform> Shared<P> {
    /// There are CPUs that masks set by steering do not have.
    fn widen_masks(&self) {
        if !self.steering.on || self.live.place(0).is_some() {
            return;
        }
        let cpus = self.all_worker_cpus();
        let workers = self.seats.iter().filter(|seat| seat.role != Role::Guest);
        for seat in workers {
            self.with_worker_thread(seat, |thread| {
                // Others have left out a CPU on purpose, and will ask for all of them.
                let is_full = seat.mask.load(Ordering::Relaxed) == Mask::Full as u32;
                is_full && self.platform.set_mask(thread, &cpus).is_ok()
            });
        }
    }
}

#[cfg(test)]
mod tests;
