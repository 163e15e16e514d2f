//! The number of threads that can run at the same time now, and the number of workers that fits it.
//!
//! CPUs go offline and come back, a control group gets another quota, a phone moves the program to its
//! small cores. So the job system *refreshes* its view of the machine. A thread that flushes, waits or
//! begins a frame requests a refresh if the last one was a second ago ([`PERIOD`]). There is no timer: a
//! job system with nothing to do still does nothing. A refresh takes a tenth of a millisecond. So the next
//! worker without work does it, and one is woken for it if all of them sleep. Two cases are left. If no
//! worker has done it after [`CONFIRM`], because all are busy, the next thread that passes by does it. If
//! there are no workers, the thread that requests it does it.
//!
//! - More CPUs count at once. Fewer CPUs count when the next refresh finds the same number; it comes after
//!   [`CONFIRM`]. So a CPU that is away for a moment costs no threads.
//! - Surplus workers retire at their next idle point, with their queues empty. Missing workers are started
//!   again (`work/workers`).
//! - If the system refuses a thread, as many workers are wanted as could be started. Every refresh tries to
//!   start the others, unless the system starts no threads at all.
//! - A refresh reads the masks of the calling thread and of all workers. Together these masks say where
//!   this job system may run. One thread that was pinned to a CPU does not make the machine small. Neither
//!   does a worker that steering keeps off a CPU.
//!
//! Invariants
//! - The number of workers wanted is a function of the request and of the machine as it was found
//!   ([`MachineView`]), and is stored under the same lock.
//! - A fact that cannot be found out changes nothing.

mod machine_view;

use event::Nanos;
use platform::{
    Atomic, CpuSet, Limits, Lock, Machine, Memory, Ordering, Padded, Platform, RefusalKind,
    SpawnError,
};

use crate::adapt::full::place::{WorkerPlace, allowed_without_place};
use crate::adapt::words::{Mask, NO_ORDINAL, PlacedThread, WorkerWords};
use crate::adapt::workers::Workers;
use crate::policy::Width;

use machine_view::Learned;
pub(crate) use machine_view::{MachineView, WorkersRequest};

/// The time from one refresh to the next.
const PERIOD: Nanos = Nanos::from_secs(1);
/// The same if the machine seems to have shrunk, or if a refresh that was requested is not done.
const CONFIRM: Nanos = Nanos::from_millis(100);

/// The machine as this job system knows it.
pub(crate) struct LiveMachine<M: Memory> {
    /// Whether there are refreshes at all.
    pub(crate) is_on: bool,
    /// The CPUs that workers were told to stay on; `None`: all CPUs that they may use.
    configured_cpus: Option<CpuSet>,
    /// The time of the next refresh, in ns.
    due: Padded<M::AtomicU64>,
    /// 1: the next worker without work is to refresh.
    requested: M::AtomicU32,
    /// [`Width`], packed. Relaxed: a number that nothing is published with.
    width: M::AtomicU32,
    pub(crate) view: M::Lock<MachineView>,
}

impl<M: Memory> LiveMachine<M> {
    /// `configured_cpus` restricts all workers. `follow`: the time of `view`; `None`: there are no
    /// refreshes.
    pub(crate) fn new(
        view: MachineView,
        configured_cpus: Option<CpuSet>,
        follow: Option<Nanos>,
    ) -> LiveMachine<M> {
        let width = view.width_now();
        LiveMachine {
            is_on: follow.is_some(),
            configured_cpus,
            due: Padded(M::AtomicU64::new(
                follow.map_or(u64::MAX, |now| (now + PERIOD).0),
            )),
            requested: M::AtomicU32::new(0),
            width: M::AtomicU32::new(width.pack()),
            view: M::Lock::new(view),
        }
    }

    pub(crate) fn width(&self) -> Width {
        Width::unpack(self.width.load(Ordering::Relaxed))
    }

    /// Whether a refresh is due and this thread has to request it. Of the threads that call this when one
    /// is due, one gets true.
    #[inline]
    pub(crate) fn takes_turn(&self, now: Nanos) -> bool {
        // Relaxed: the number decides which thread refreshes. The findings are under the lock.
        let due = self.due.load(Ordering::Relaxed);
        now.0 >= due && self.take_turn(due, now)
    }

    #[cold]
    fn take_turn(&self, due: u64, now: Nanos) -> bool {
        // If no thread has refreshed by then, the next thread that passes by does.
        let next = (now + CONFIRM).0;
        self.due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Requests a refresh. True if one was requested before, and no thread has done it.
    pub(super) fn request_refresh(&self) -> bool {
        // Relaxed, here and below: the findings are under the lock, and the thread that requests fences.
        self.requested.swap(1, Ordering::Relaxed) != 0
    }

    /// Whether a refresh was requested. If so, the calling thread has to do it.
    pub(super) fn take_request(&self) -> bool {
        // Relaxed: of the threads that see the request one refreshes, or two do.
        self.requested.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether a worker without work should refresh.
    #[inline]
    pub(crate) fn refresh_is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed) != 0
    }

    /// A thread has refreshed at `now`.
    pub(super) fn refreshed(&self, now: Nanos, must_confirm: bool) {
        let next = if must_confirm { CONFIRM } else { PERIOD };
        // Relaxed: as in `takes_turn`. A thread that has refreshed meanwhile refreshes once more.
        self.due.store((now + next).0, Ordering::Relaxed);
    }

    /// Learns the limits that a refresh has found. Calls `settle` with the number of workers wanted from
    /// now on, under the lock, so that calls come in the order in which limits are learned.
    pub(crate) fn learn(&self, limits: Limits, settle: impl FnOnce(&Learned, usize)) -> Learned {
        self.view.with(|view| {
            let learned = view.learn(limits);
            let width = view.width_now();
            self.width.store(width.pack(), Ordering::Relaxed);
            settle(&learned, view.workers());
            learned
        })
    }

    pub(crate) fn explain(&self) -> Vec<String> {
        self.view.with(|view| view.explain())
    }

    /// The place of the worker with this ordinal. A worker without an ordinal has the place of a fast
    /// worker. `None`: workers may run everything everywhere.
    pub(super) fn place(&self, ordinal: u32) -> Option<WorkerPlace> {
        self.view.with(|view| view.place(ordinal).cloned())
    }

    /// Whether workers have places at this moment.
    pub(super) fn has_places(&self) -> bool {
        self.view.with(|view| !view.places().is_empty())
    }

    /// Whether the number of workers follows the machine's width.
    pub(crate) fn fits(&self) -> bool {
        self.view.with(|view| view.fits())
    }

    /// The CPUs that workers were told to stay on, if any.
    pub(crate) fn configured_cpus(&self) -> Option<&CpuSet> {
        self.configured_cpus.as_ref()
    }
}

/// The CPUs of the first set that the second one has, too. If there are none, the first set: a CPU that is
/// away for a while must not stop everything.
pub(crate) fn common(cpus: &CpuSet, wanted: Option<&CpuSet>) -> CpuSet {
    let both = wanted.map_or_else(CpuSet::new, |wanted| wanted.intersection(cpus));
    if both.is_empty() { cpus.clone() } else { both }
}

/// The part of the machine that these threads may use, restricted to `configured`. `usable`: the CPUs
/// that could be used when the threads were given their places.
///
/// The platform knows the limits of the process. That is not enough: a program may have pinned its main
/// thread to one CPU, which says nothing about its workers.
pub(crate) fn limits_of<P: Platform>(
    platform: &P,
    threads: &[PlacedThread],
    configured: Option<&CpuSet>,
    usable: &CpuSet,
) -> Limits {
    let mut limits = platform.machine().limits();
    for thread in threads {
        if let Some(allowed) = allowed_without_place(platform, thread, usable) {
            limits.allowed = limits.allowed.union(&allowed);
        }
    }
    limits.allowed = common(&limits.usable(), configured);
    limits
}

/// The calling thread, which was given no place.
pub(crate) fn calling_thread<P: Platform>(platform: &P) -> PlacedThread {
    PlacedThread {
        thread: platform.thread_id(),
        given: None,
        is_steered: false,
    }
}

impl<P: Platform> LiveMachine<P> {
    /// The limits that the last refresh found.
    pub(super) fn limits(&self) -> Limits {
        self.view.with(|view| view.limits.clone())
    }

    /// The program requests `count` workers from now on. Tells `workers` how many are wanted.
    pub(super) fn request_workers(&self, workers: &impl Workers<P>, count: usize) {
        self.view.with(|view| {
            view.request = WorkersRequest::Exactly {
                workers: count,
                width_then: view.width,
            };
            view.refused = None;
            view.replan();
            workers.set_target(view.workers());
        });
    }

    /// From now on there are at most `most` workers; `None`: there is no such limit. Returns how many are
    /// wanted.
    pub(super) fn limit_workers(&self, workers: &impl Workers<P>, most: Option<usize>) -> usize {
        self.view.with(|view| {
            view.most = most.unwrap_or(usize::MAX);
            view.replan();
            let wanted = view.workers();
            workers.set_target(wanted);
            wanted
        })
    }

    /// The number of workers to begin with.
    pub(super) fn first_workers(&self) -> usize {
        self.view.with(|view| view.workers())
    }

    /// Starts the workers that are missing. If the system refuses one, those before it are all that are
    /// wanted, until the next refresh.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) fn fill(&self, workers: &impl Workers<P>) -> Result<(), SpawnError> {
        workers.fill_or_settle(|refused| {
            self.view.with(|view| {
                view.refused = Some(refused);
                view.replan();
                workers.set_target(view.workers());
            });
        })
    }

    /// Whether a refusal of the first workers is an error: the program asked for their number, or for
    /// settings that the system does not take.
    pub(super) fn must_start(&self, error: &SpawnError) -> bool {
        let was_asked_for =
            |view: &MachineView| !matches!(view.request, WorkersRequest::Fitting { .. });
        error.kind() == RefusalKind::Invalid || self.view.with(|view| was_asked_for(view))
    }

    /// The CPUs that a worker may use while steering leaves out none of them.
    pub(super) fn worker_cpus(&self, platform: &P, words: &WorkerWords<P>) -> CpuSet {
        let place = self.place(words.ordinal());
        place.map_or_else(|| self.all_worker_cpus(platform), |place| place.cpus)
    }

    /// The CPUs that workers may use without a place.
    fn all_worker_cpus(&self, platform: &P) -> CpuSet {
        match (self.configured_cpus(), self.is_on) {
            (None, false) => platform.machine().topology().allowed().clone(),
            (cpus, _) => common(&self.view.with(|view| view.seen().clone()), cpus),
        }
    }

    /// The CPUs that threads with a role are held to, as fast workers are. `None`: they may run anywhere.
    pub(super) fn frame_cpus(&self) -> Option<CpuSet> {
        let fast = self.place(NO_ORDINAL).map(|place| place.cpus);
        fast.or_else(|| self.configured_cpus().cloned())
    }

    /// Makes sure that a worker's thread has the mask of its place. `given`: the mask that it was given
    /// last. Called under the lock that keeps the thread alive.
    pub(super) fn assign_place(
        &self,
        platform: &P,
        words: &WorkerWords<P>,
        given: &mut Option<CpuSet>,
    ) -> Option<WorkerPlace> {
        let place = self.place(words.ordinal());
        let wanted = match (&place, &given) {
            (None, None) => return None,
            (None, Some(_)) => self.all_worker_cpus(platform),
            (Some(place), _) => place.cpus.clone(),
        };
        if given.as_ref() != Some(&wanted) {
            // Relaxed: see `with_thread`. A worker that has no id yet reads its place once it has one.
            let thread = words.thread.load(Ordering::Relaxed);
            // Refused: none of these CPUs may be used by now. The kernel has moved the thread to others,
            // and the next refresh finds them.
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

    /// Looks at the machine, on the calling thread. Returns the limits as they are now; `threads` are asked
    /// for their masks. If there are CPUs of an unknown class, the machine is detected anew.
    pub(super) fn refresh(&self, platform: &P, threads: &[PlacedThread]) -> Limits {
        // Relaxed: see `take_request`.
        self.requested.store(0, Ordering::Relaxed);
        let usable = self.limits().usable();
        let limits = limits_of(platform, threads, self.configured_cpus(), &usable);
        let new = limits.usable();
        let must_detect = self.view.with(|view| view.must_detect(&new));
        if must_detect {
            let machine = platform.machine().detect();
            self.view.with(|view| {
                let earlier = view.machine.take();
                view.machine = earlier.map(|earlier| machine.remembering(&earlier));
            });
        }
        limits
    }

    /// Adds new CPUs to the masks of workers, unless workers have places.
    pub(super) fn widen_masks(&self, workers: &impl Workers<P>) {
        if self.place(0).is_some() {
            return;
        }
        let cpus = self.all_worker_cpus(workers.platform());
        for (_, words) in workers.each() {
            workers.with_thread(words, |thread| {
                // The other masks leave out a CPU on purpose. Their workers will ask for all CPUs again.
                let is_full = Mask::of(words) == Mask::Full as u32;
                is_full && workers.machine().set_mask(thread, &cpus).is_ok()
            });
        }
    }
}

#[cfg(test)]
mod tests;
