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
//! - Workers that are too many retire at their next idle point, with their queues empty; those that are
//!   missing are started again (`work/workers`).
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

use event::Nanos;
use platform::{Atomic, CpuSet, Limits, Lock, Machine, Memory, Ordering, Padded, Platform};

use crate::adapt::place::{Place, allowed_without_place};
use crate::adapt::words::{Mask, NO_ORDINAL, PlacedThread, WorkerWords};
use crate::adapt::workers::Workers;
use crate::policy::Width;

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
    pub(super) fn ask(&self) -> bool {
        // Relaxed, here and below: what is found is under the lock; who asks fences.
        self.asked.swap(1, Ordering::Relaxed) != 0
    }

    /// Whether a look was asked for, which the caller has from now on.
    pub(super) fn take_request(&self) -> bool {
        // Relaxed: one of the threads that see it looks, or two do.
        self.asked.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether a worker that has nothing to do should look.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// A thread has looked.
    pub(super) fn has_looked(&self, now: Nanos, must_confirm: bool) {
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

    /// The place of the worker with this ordinal; of a worker without one, that of the fast ones' class. None
    /// if workers may run everything everywhere.
    pub(super) fn place(&self, ordinal: u32) -> Option<Place> {
        self.reading.with(|reading| reading.place(ordinal).cloned())
    }

    /// Whether workers have places at this moment.
    pub(super) fn has_places(&self) -> bool {
        self.reading.with(|reading| !reading.places().is_empty())
    }

    /// A thread outside, which waits for the workers, is in the cache of this CPU.
    pub(super) fn saw_waiter(&self, cpu: Option<u32>) {
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
    if both.is_empty() { cpus.clone() } else { both }
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
    let mut limits = platform.machine().limits();
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

impl<P: Platform> Live<P> {
    /// What the last look found.
    pub(super) fn limits(&self) -> Limits {
        self.reading.with(|reading| reading.limits.clone())
    }

    /// What the program asks for from now on. How many workers there are to be is told to `workers`.
    pub(super) fn ask_for(&self, workers: &impl Workers<P>, asked: usize) {
        self.reading.with(|reading| {
            reading.asked = Asked::Exactly {
                workers: asked,
                width_then: reading.width,
            };
            reading.replan();
            workers.set_target(reading.workers());
        });
    }

    /// No more workers than that, if there is a number; how many there are to be.
    pub(super) fn limit_workers(&self, workers: &impl Workers<P>, most: Option<usize>) -> usize {
        self.reading.with(|reading| {
            reading.most = most.unwrap_or(usize::MAX);
            reading.replan();
            let wanted = reading.workers();
            workers.set_target(wanted);
            wanted
        })
    }

    /// The number of workers to begin with.
    pub(super) fn first_workers(&self) -> usize {
        self.reading.with(|reading| reading.workers())
    }

    /// Fills the places of workers. Those that the system refused are asked for again at the next look.
    pub(super) fn fill(&self, workers: &impl Workers<P>) {
        let refused = workers.fill().is_err();
        self.reading.with(|reading| reading.undermanned = refused);
    }

    /// The CPUs that a worker may use when nothing is in its way.
    pub(super) fn worker_cpus(&self, platform: &P, words: &WorkerWords<P>) -> CpuSet {
        let place = self.place(words.ordinal());
        place.map_or_else(|| self.all_worker_cpus(platform), |place| place.cpus)
    }

    /// The CPUs that workers may use without a place.
    fn all_worker_cpus(&self, platform: &P) -> CpuSet {
        match (self.told_cpus(), self.is_on) {
            (None, false) => platform.machine().topology().allowed().clone(),
            (told, _) => common(&self.reading.with(|reading| reading.seen().clone()), told),
        }
    }

    /// The CPUs that threads with a role are held to, as fast workers are; none if they may run anywhere.
    pub(super) fn frame_cpus(&self) -> Option<CpuSet> {
        let fast = self.place(NO_ORDINAL).map(|place| place.cpus);
        fast.or_else(|| self.told_cpus().cloned())
    }

    /// Sees to it that a worker's thread has the mask of its place. `given`: the one that it was given last.
    /// Under the lock that keeps the thread alive.
    pub(super) fn hold_to_place(
        &self,
        platform: &P,
        words: &WorkerWords<P>,
        given: &mut Option<CpuSet>,
    ) -> Option<Place> {
        let place = self.place(words.ordinal());
        let wanted = match (&place, &given) {
            (None, None) => return None,
            (None, Some(_)) => self.all_worker_cpus(platform),
            (Some(place), _) => place.cpus.clone(),
        };
        if given.as_ref() != Some(&wanted) {
            // Relaxed: see `with_thread`. A worker that has no name yet looks at its place when it has.
            let thread = words.thread.load(Ordering::Relaxed);
            // Refused: none of them may be used by now. The kernel has found it others, and so does the next
            // look.
            if thread != 0
                && platform.machine().set_mask(thread, &wanted).is_ok()
                && Mask::is_steered(words)
            {
                Mask::Restored.set(words);
            }
            *given = Some(wanted);
        }
        place
    }

    /// A look at the machine by the calling thread: what may be used now, also of `threads`, and whether the
    /// machine has to be detected anew for that.
    pub(super) fn look(
        &self,
        platform: &P,
        threads: &[PlacedThread],
        are_preempted: bool,
    ) -> Limits {
        // Relaxed: see `take_request`.
        self.asked.store(0, Ordering::Relaxed);
        let usable = self.limits().usable();
        let limits = limits_of(platform, threads, self.told_cpus(), &usable);
        let new = limits.usable();
        let waiter = self.waiter();
        let must_detect = self.reading.with(|reading| {
            reading.near.learn(waiter, are_preempted);
            reading.must_detect(&new)
        });
        if must_detect {
            let machine = platform.machine().detect();
            self.reading.with(|reading| {
                let earlier = reading.machine.take();
                reading.machine = earlier.map(|earlier| machine.remembering(&earlier));
            });
        }
        limits
    }

    /// There are CPUs that the masks of workers without a place do not have.
    pub(super) fn widen_masks(&self, workers: &impl Workers<P>) {
        if self.place(0).is_some() {
            return;
        }
        let cpus = self.all_worker_cpus(workers.platform());
        for (_, words) in workers.each() {
            workers.with_thread(words, |thread| {
                // Others have left out a CPU on purpose, and will ask for all of them.
                let is_full = Mask::of(words) == Mask::Full as u32;
                is_full && workers.machine().set_mask(thread, &cpus).is_ok()
            });
        }
    }
}

#[cfg(test)]
mod tests;
