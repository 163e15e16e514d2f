//! The machine as it was found, the program's request, and the result of both: how many workers, and where.

use event::Resized;
use platform::{CpuSet, Limits, RefusalKind, SpawnError, Topology};

use crate::adapt::full::place::{WorkerPlace, places};
use crate::adapt::workers::RefusedWorker;
use crate::policy::Width;

/// The number of workers that the program requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkersRequest {
    /// The machine's width, less `reserve` for other threads; at least 1.
    Fitting { reserve: usize },
    /// This many. The machine was `width_then` wide at the time of the request.
    Exactly { workers: usize, width_then: usize },
}

impl WorkersRequest {
    /// Whether the number of workers follows the machine's width. A number that fitted the machine at the
    /// time of the request is a ceiling. A number that did not fit was meant that way, and stays.
    fn fits(self) -> bool {
        match self {
            WorkersRequest::Fitting { .. } => true,
            WorkersRequest::Exactly {
                workers,
                width_then,
            } => workers <= width_then,
        }
    }

    /// The number of workers on a machine of this width.
    pub(super) fn workers(self, width: usize) -> usize {
        match self {
            WorkersRequest::Fitting { reserve } => width.saturating_sub(reserve).max(1),
            WorkersRequest::Exactly { workers, .. } if self.fits() => workers.min(width.max(1)),
            WorkersRequest::Exactly { workers, .. } => workers,
        }
    }
}

/// The job system's view of the machine, and the number and the places of workers that follow from it.
pub(crate) struct MachineView {
    /// The limits that the last refresh found.
    pub(super) limits: Limits,
    /// The machine's width: the number of threads that are believed to be able to run at the same time.
    pub(super) width: usize,
    /// A smaller width that the last refresh found, and that the next one has to confirm.
    fewer: Option<usize>,
    /// Every CPU that could ever be used.
    seen: CpuSet,
    pub(super) request: WorkersRequest,
    workers_max: usize,
    /// The most workers that [`interference`](crate::adapt::full::interference) leaves.
    pub(super) most: usize,
    /// The worker that the system refused the last time.
    pub(in crate::adapt) refused: Option<RefusedWorker>,
    /// The machine, if workers are held to its classes.
    pub(super) machine: Option<Topology>,
    /// The workers' places, if CPUs differ.
    places: Vec<WorkerPlace>,
}

/// The changes that a refresh has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Learned {
    /// Whether the machine is wider or narrower now.
    pub(in crate::adapt) change: Option<Resized>,
    /// There is a CPU that was never seen before, or that has come back.
    pub(in crate::adapt) has_new_cpus: bool,
    /// A smaller width was found for the first time.
    pub(in crate::adapt) must_confirm: bool,
    /// There are fewer workers than wanted, because the system had refused one.
    pub(in crate::adapt) is_undermanned: bool,
    /// Workers have other places than before.
    pub(in crate::adapt) has_new_places: bool,
}

impl MachineView {
    pub(crate) fn new(limits: Limits, request: WorkersRequest, workers_max: usize) -> MachineView {
        MachineView {
            width: limits.effective_parallelism(),
            seen: limits.usable(),
            limits,
            fewer: None,
            request,
            workers_max,
            most: usize::MAX,
            refused: None,
            machine: None,
            places: Vec::new(),
        }
    }

    /// Workers are held to the classes of this machine from now on.
    pub(crate) fn divided_by(self, machine: Option<Topology>) -> MachineView {
        let mut view = MachineView { machine, ..self };
        view.replan();
        view
    }

    pub(crate) fn request(&self) -> WorkersRequest {
        self.request
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn places(&self) -> &[WorkerPlace] {
        &self.places
    }

    /// The place of the worker with this ordinal. A worker that is to leave, or that has no ordinal, has
    /// the place of the first worker, which is fast.
    pub(super) fn place(&self, ordinal: u32) -> Option<&WorkerPlace> {
        let place = self.places.get(ordinal as usize);
        place.or(self.places.first())
    }

    /// Every CPU that could ever be used.
    pub(crate) fn seen(&self) -> &CpuSet {
        &self.seen
    }

    /// Whether one of these CPUs is new and of an unknown class. Its class was not looked for since it
    /// came.
    pub(super) fn must_detect(&self, usable: &CpuSet) -> bool {
        self.machine.as_ref().is_some_and(|machine| {
            let is_unknown = |cpu: u32| machine.class_of(cpu).is_none();
            usable.difference(&self.seen).iter().any(is_unknown)
        })
    }

    /// Finds the workers' places. True if they have changed.
    pub(super) fn replan(&mut self) -> bool {
        let Some(machine) = &self.machine else {
            return false;
        };
        let found = places(machine, &self.limits, self.workers(), &self.seen);
        let has_changed = found != self.places;
        self.places = found;
        has_changed
    }

    /// The number of workers wanted: the smallest of the number requested, the number that fits the
    /// machine, the number that interference leaves, and the number that the system has started.
    pub(crate) fn workers(&self) -> usize {
        let started = self.refused.as_ref();
        let started = started.map_or(usize::MAX, |refused| refused.before);
        self.workers_if_started().min(started)
    }

    /// The number of workers if the system had refused none.
    pub(crate) fn workers_if_started(&self) -> usize {
        if self.fits() {
            self.workers_alone().min(self.most)
        } else {
            self.workers_alone()
        }
    }

    /// The number of workers if no other program wanted the CPUs, and the system had refused none.
    pub(crate) fn workers_alone(&self) -> usize {
        self.request.workers(self.width).min(self.workers_max)
    }

    /// Why there are fewer workers than there could be, if the system has refused one.
    pub(crate) fn refusal(&self) -> Option<&SpawnError> {
        self.refused.as_ref().map(|refused| &refused.error)
    }

    /// Whether a worker was refused that the system may start by now. It counts as one that is wanted then.
    fn may_try_again(&mut self) -> bool {
        let may = |refused: &mut RefusedWorker| refused.error.kind() != RefusalKind::Unsupported;
        self.refused.take_if(may).is_some()
    }

    /// Whether the number of workers follows the machine's width.
    pub(super) fn fits(&self) -> bool {
        self.request.fits()
    }

    /// Whether there is less CPU time than the CPUs have. A thread that spins then spends time that other
    /// threads need.
    pub(super) fn is_rationed(&self) -> bool {
        let cpus = self.limits.usable().len() as f64;
        self.limits.quota.is_some_and(|quota| quota.cpus() < cpus)
    }

    /// The width in the form that threads read often.
    pub(super) fn width_now(&self) -> Width {
        Width {
            threads: self.width,
            is_rationed: self.is_rationed(),
        }
    }

    pub(super) fn learn(&mut self, limits: Limits) -> Learned {
        let (found, was) = (limits.effective_parallelism(), self.width);
        let is_sure = found >= was || self.fewer == Some(found);
        if is_sure {
            (self.width, self.fewer) = (found, None)
        } else {
            self.fewer = Some(found)
        }
        let old = self.limits.usable();
        let new = limits.usable();
        self.seen = self.seen.union(&new);
        self.limits = limits;
        let is_undermanned = self.may_try_again();
        let has_new_places = self.replan();
        Learned {
            has_new_places,
            change: match self.width.cmp(&was) {
                std::cmp::Ordering::Less => Some(Resized::Narrower),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some(Resized::Wider),
            },
            has_new_cpus: old.union(&new).len() > old.len(),
            must_confirm: self.fewer.is_some(),
            is_undermanned,
        }
    }
}
