//! What is known of the machine, what was asked for, and what follows from both: how many workers, and where.

use event::Resized;
use platform::{CpuSet, Limits, Topology};

use super::near::Near;
use crate::adapt::place::{Place, places};
use crate::adapt::words::NO_ORDINAL;
use crate::policy::Width;

/// How many workers the program wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// As many as threads can run at the same time, less so many for others; at least 1.
    Fitting { reserve: usize },
    /// So many, said when the machine was so wide.
    Exactly { workers: usize, width_then: usize },
}

impl Asked {
    /// Whether this has to do with how wide the machine is. A number that fitted it when it was given is a
    /// ceiling; one that did not was meant that way, and stays.
    fn fits(self) -> bool {
        match self {
            Asked::Fitting { .. } => true,
            Asked::Exactly {
                workers,
                width_then,
            } => workers <= width_then,
        }
    }

    /// How many are to run where so many threads can run at the same time.
    pub(super) fn workers(self, width: usize) -> usize {
        match self {
            Asked::Fitting { reserve } => width.saturating_sub(reserve).max(1),
            Asked::Exactly { workers, .. } if self.fits() => workers.min(width.max(1)),
            Asked::Exactly { workers, .. } => workers,
        }
    }
}

/// What is known of the machine, and what is made of it.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// What the last look found.
    pub(super) limits: Limits,
    /// How many threads are taken to be able to run at the same time.
    pub(super) width: usize,
    /// What the last look found, if that was less.
    fewer: Option<usize>,
    /// Every CPU that could ever be used.
    seen: CpuSet,
    pub(super) asked: Asked,
    workers_max: usize,
    /// As many as [`interference`](crate::adapt::interference) leaves.
    pub(super) most: usize,
    /// The system refused a thread last time.
    pub(super) undermanned: bool,
    /// The machine, if workers are held to its classes and caches.
    pub(super) machine: Option<Topology>,
    /// Whether workers are to be near the thread that waits for them.
    pub(super) near: Near,
    /// The workers' places, if CPUs differ or they are near that thread.
    places: Vec<Place>,
    /// The place of threads that are held to classes only.
    of_class: Option<Place>,
}

/// What a look has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Learned {
    /// Whether the width is another, and which way.
    pub(in crate::adapt) change: Option<Resized>,
    /// There is a CPU that was never seen before, or has come back.
    pub(in crate::adapt) has_new_cpus: bool,
    /// Less than before was found, for the first time.
    pub(in crate::adapt) must_confirm: bool,
    /// There are fewer workers than were wanted.
    pub(in crate::adapt) is_undermanned: bool,
    /// Workers belong elsewhere.
    pub(in crate::adapt) has_new_places: bool,
}

impl Reading {
    pub(crate) fn new(limits: Limits, asked: Asked, workers_max: usize) -> Reading {
        Reading {
            width: limits.effective_parallelism(),
            seen: limits.usable(),
            limits,
            fewer: None,
            asked,
            workers_max,
            most: usize::MAX,
            undermanned: false,
            machine: None,
            near: Near::to(None),
            places: Vec::new(),
            of_class: None,
        }
    }

    /// Workers are held to the classes of this machine from now on.
    pub(crate) fn divided_by(self, machine: Option<Topology>) -> Reading {
        let mut reading = Reading { machine, ..self };
        reading.replan();
        reading
    }

    /// Workers are to be near the thread on this CPU, if one is given, unless others are there.
    pub(crate) fn near(self, waiter: Option<u32>) -> Reading {
        let near = Near::to(waiter);
        Reading { near, ..self }
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The place of the worker with this ordinal. A worker that is to leave has that of the first one, and a
    /// worker without an ordinal that of fast workers, as far as it has to do with classes.
    pub(super) fn place(&self, ordinal: u32) -> Option<&Place> {
        if ordinal == NO_ORDINAL {
            return self.of_class.as_ref();
        }
        let place = self.places.get(ordinal as usize);
        place.or(self.places.first())
    }

    /// Every CPU that could ever be used.
    pub(crate) fn seen(&self) -> &CpuSet {
        &self.seen
    }

    /// Whether the class of one of these CPUs is not known, and was not looked for since it came.
    pub(super) fn must_detect(&self, usable: &CpuSet) -> bool {
        self.machine.as_ref().is_some_and(|machine| {
            let is_unknown = |cpu: u32| machine.class_of(cpu).is_none();
            usable.difference(&self.seen).iter().any(is_unknown)
        })
    }

    /// Finds the workers' places. True if they are others than before.
    pub(super) fn replan(&mut self) -> bool {
        let Some(machine) = &self.machine else {
            return false;
        };
        let find = |waiter| {
            let workers = self.workers();
            places(machine, &self.limits, workers, &self.seen, waiter)
        };
        let (found, of_class) = (find(self.near.waiter()), find(None).into_iter().next());
        let has_changed = found != self.places;
        self.places = found;
        self.of_class = of_class;
        has_changed
    }

    /// The smallest of what was asked for, what the machine leaves and what others on it do.
    pub(crate) fn workers(&self) -> usize {
        if self.fits() {
            self.workers_alone().min(self.most)
        } else {
            self.workers_alone()
        }
    }

    /// What it would be if nobody else wanted the CPUs.
    pub(crate) fn workers_alone(&self) -> usize {
        self.asked.workers(self.width).min(self.workers_max)
    }

    /// Whether the number of workers has to do with the machine's.
    pub(super) fn fits(&self) -> bool {
        self.asked.fits()
    }

    /// Whether there is less CPU time than CPUs: whoever spins spends what others need.
    pub(super) fn is_rationed(&self) -> bool {
        let cpus = self.limits.usable().len() as f64;
        self.limits.quota.is_some_and(|quota| quota.cpus() < cpus)
    }

    /// For those who ask often.
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
            is_undermanned: self.undermanned,
        }
    }
}
