//! Which CPUs each worker is held to, and what it takes there.
//!
//! Where CPUs differ, work with a deadline belongs on the fast ones. So workers are of two kinds
//! ([`Plan`] says how many of each): *fast* ones have a mask of the fast classes and take everything; *slow*
//! ones have a mask of a slower class and take what has no deadline, and of ranges only shares that fit
//! their speed ([`slow`](crate::slow)). No mask is a single CPU unless a class is: within a class the
//! kernel decides, and steering leaves out a CPU of the class for a while.
//!
//! Where there are several last-level caches, fast workers that have a core each beside the thread that waits
//! have a mask of its cache ([`Plan`]). Which thread that is, shows who asks for a look at the machine
//! ([`live`](crate::adapt::live)). A mask that leaves out idle CPUs is in the way where others want the rest: while
//! threads are preempted there is none.
//!
//! Invariants
//! - Where all usable CPUs are of one class, or classes are not reliable, every worker is a fast one, and no
//!   mask is set but that of a cache. If the program wants none of it ([`Placement::Free`]), none at all.
//! - Threads of the program's own, those with a role, too, are never held to a cache: workers follow them.
//! - A mask has a CPU that may be used at this moment. It has those, too, that are away and would belong to
//!   it: the kernel cuts them off, and what it leaves tells when they are back.
//! - Of the regular workers, the first one is fast.

use platform::Atomic;
use platform::topology::Topology;
use platform::{CpuSet, Distance, Lane, Limits, Lock, Ordering, Plan, PlannedWorker, Platform};

use crate::adapt::live::common;
use crate::adapt::steer::Mask;
use crate::seat::Seat;
use crate::shared::Shared;

/// Whether workers are held to classes of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Placement {
    /// Where CPUs differ: jobs on the fast ones (the fastest class, and slower ones until there are four CPUs
    /// or half of all), [background](crate::NewJob::background) jobs anywhere, and the slow CPUs take part in
    /// ranges with shares that fit their speed. Masks are those of classes, never of single CPUs.
    ///
    /// Where there are several last-level caches, workers stay in that of the thread that waits for them
    /// (which may move) if there is a core for each: they hear from each other in a third of the time. Not
    /// while other programs take their CPUs. Where CPUs are equal and share one cache nothing is done.
    #[default]
    Classes,
    /// Every worker runs everything, wherever the kernel puts it.
    Free,
}

/// Where one worker belongs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The mask of its thread.
    pub(crate) cpus: CpuSet,
    /// It takes no work with a deadline but shares of ranges.
    pub(crate) is_slow: bool,
    /// How many times as long as on a fast CPU something takes there, in sixteenths: what is believed before
    /// it is measured.
    pub(crate) times_16: u32,
}

/// What is believed of CPUs about which nothing is known: a little core beside a big one.
const TIMES_UNKNOWN: u32 = 4 * 16;

/// The places of so many workers; none if all may run everything everywhere. `seen`: every CPU that was ever
/// usable. `waiter`: the CPU of the thread that waits, if they are to be near it.
pub(crate) fn places(
    machine: &Topology,
    limits: &Limits,
    workers: usize,
    seen: &CpuSet,
    waiter: Option<u32>,
) -> Vec<Place> {
    let usable = limits.usable();
    let plan = Plan::new(machine, limits, workers, waiter);
    let is_anywhere = |worker: &PlannedWorker| worker.takes(Lane::Frame) && worker.cpus == usable;
    if plan.workers.iter().all(is_anywhere) {
        return Vec::new();
    }
    let fast = machine.fast(&usable);
    let slowest_fast = fast.iter().filter_map(|cpu| machine.class_of(cpu)).min();
    let away = seen.difference(&usable);
    let place = |worker: &PlannedWorker| {
        let is_slow = !worker.takes(Lane::Frame);
        // To a cache belongs what has it, too, and nothing else.
        let near = waiter.filter(|_| !is_slow && worker.cpus != fast);
        let belongs = |cpu: &u32| match (near, machine.class_of(*cpu)) {
            (Some(near), _) => machine.distance(near, *cpu) <= Distance::Cache,
            (None, Some(class)) => is_slow == (Some(class) < slowest_fast),
            (None, None) => true,
        };
        let with_away: CpuSet = worker
            .cpus
            .iter()
            .chain(away.iter().filter(belongs))
            .collect();
        Place {
            times_16: times(machine, &fast, &worker.cpus),
            cpus: with_away,
            is_slow,
        }
    };
    plan.workers.iter().map(place).collect()
}

/// How many times as long something takes on the slowest of `cpus` as on average on the fast ones.
fn times(machine: &Topology, fast: &CpuSet, cpus: &CpuSet) -> u32 {
    let capacity = |cpu| {
        let class = &machine.classes()[machine.class_of(cpu)?];
        class.capacity.filter(|&capacity| capacity > 0)
    };
    let of_fast: Option<Vec<u32>> = fast.iter().map(capacity).collect();
    let slowest: Option<Vec<u32>> = cpus.iter().map(capacity).collect();
    match (of_fast, slowest.and_then(|all| all.into_iter().min())) {
        (Some(of_fast), Some(slowest)) if !of_fast.is_empty() => {
            let average = of_fast.iter().sum::<u32>() / of_fast.len() as u32;
            (average * 16 / slowest).max(16)
        }
        _ => TIMES_UNKNOWN,
    }
}

/// A worker's thread, and the mask that it was given for its place; none if it was given none.
pub(crate) struct PlacedThread {
    pub(crate) thread: u64,
    pub(crate) given: Option<CpuSet>,
    /// Steering has left out a CPU of it.
    pub(crate) is_steered: bool,
}

/// Where this thread might run if it had not been given a mask; `usable`: the CPUs that this mask was chosen
/// from. A thread that has all of its mask that there was has lost nothing to anybody else, so what the mask
/// leaves out counts, too.
pub(crate) fn allowed_without_place<P: Platform>(
    platform: &P,
    placed: &PlacedThread,
    usable: &CpuSet,
) -> Option<CpuSet> {
    let now = platform.allowed(&[placed.thread])?;
    let Some(given) = &placed.given else {
        return Some(now);
    };
    let has_all = placed.is_steered || given.intersection(usable).is_subset(&now);
    Some(match has_all {
        true => now.union(usable),
        false => now,
    })
}

impl<P: Platform> Shared<P> {
    /// The CPUs that the worker on this seat may use when nothing is in its way.
    pub(crate) fn worker_cpus(&self, seat: &Seat<P>) -> CpuSet {
        let place = self.live.place(seat.ordinal.load(Ordering::Relaxed));
        place.map_or_else(|| self.all_worker_cpus(), |place| place.cpus)
    }

    /// The CPUs that workers may use without a place.
    pub(crate) fn all_worker_cpus(&self) -> CpuSet {
        match (self.live.told_cpus(), self.live.is_on) {
            (None, false) => self.platform.topology().allowed().clone(),
            (told, _) => common(
                &self.live.reading.with(|reading| reading.seen().clone()),
                told,
            ),
        }
    }

    /// The CPUs that threads with a role are held to, as fast workers are; none if they may run anywhere.
    pub(crate) fn frame_cpus(&self) -> Option<CpuSet> {
        let fast = self
            .live
            .place(Seat::<P>::NO_ORDINAL)
            .map(|place| place.cpus);
        fast.or_else(|| self.live.told_cpus().cloned())
    }

    /// Sees to it that a worker's thread has the mask of its place. `given`: the one that it was given last.
    /// Under the roster's lock, which keeps the thread alive.
    pub(crate) fn hold_to_place(
        &self,
        seat: &Seat<P>,
        place: Option<&Place>,
        given: &mut Option<CpuSet>,
    ) {
        let wanted = match (place, &given) {
            (None, None) => return,
            (None, Some(_)) => self.all_worker_cpus(),
            (Some(place), _) => place.cpus.clone(),
        };
        if given.as_ref() == Some(&wanted) {
            return;
        }
        // Relaxed: see `with_worker_thread`. Who has no name yet looks at its place when it has.
        let thread = seat.thread.load(Ordering::Relaxed);
        // Refused: none of them may be used by now. The kernel has found it others, and the next look too.
        if thread != 0 && self.platform.set_mask(thread, &wanted).is_ok() {
            let is_steered = seat.mask.load(Ordering::Relaxed) == Mask::Steered as u32;
            if is_steered {
                seat.mask.store(Mask::Restored as u32, Ordering::Relaxed);
            }
        }
        *given = Some(wanted);
    }
}

#[cfg(test)]
mod tests {
    use platform::CpuPlace;

    use super::*;

    fn phone() -> Topology {
        Topology::uniform(8).with_classes(vec![
            (CpuSet::parse("0-3"), Some(256)),
            (CpuSet::parse("4-6"), Some(768)),
            (CpuSet::parse("7"), Some(1024)),
        ])
    }

    fn lines(machine: &Topology, usable: &str, workers: usize) -> Vec<String> {
        let limits = Limits::of(CpuSet::parse(usable));
        let places = places(machine, &limits, workers, machine.allowed(), None);
        let kind = |place: &Place| if place.is_slow { "slow" } else { "fast" };
        let line = |place: &Place| format!("{} {} {}", place.cpus, kind(place), place.times_16);
        places.iter().map(line).collect()
    }

    /// Goal: places follow the plan, masks name no CPU of another kind, and where nothing is to be divided
    /// there are no places. Method: a phone, whole; without its prime core; with few workers; on its little
    /// cores; and equal CPUs.
    #[test]
    fn places_follow_the_plan() {
        let (fast, slow) = ("4-7 fast 17", "0-3 slow 52");
        let phone = phone();
        assert_eq!(lines(&phone, "0-7", 5), [fast, fast, fast, slow, slow]);
        // The average of the fast ones is 832; the slowest of them has 768.
        assert_eq!(lines(&phone, "0-7", 1), [fast]);
        let without_prime = lines(&phone, "1-2,4-6", 4);
        assert_eq!(
            without_prime,
            ["4-7 fast 16", "4-7 fast 16", "0-3 slow 48", "0-3 slow 48"]
        );
        assert_eq!(lines(&phone, "0-3", 3), [""; 0], "one class is left");
        assert_eq!(lines(&Topology::uniform(8), "0-7", 7), [""; 0]);
    }

    /// Goal: the mask of a cache has those of its CPUs, too, that are away, and no others. Method: a
    /// desktop of two caches without one CPU of each.
    #[test]
    fn a_cache_has_its_cpus_that_are_away() {
        let place = |cpu| CpuPlace {
            cpu,
            core: cpu,
            cache: cpu / 4,
            ..CpuPlace::default()
        };
        let desktop = Topology::new((0..8).map(place).collect(), 8, String::new());
        let limits = Limits::of(CpuSet::parse("0-1,3-6"));
        let [near, also] = &places(&desktop, &limits, 2, desktop.allowed(), Some(1))[..] else {
            panic!("two places");
        };
        assert_eq!((near, near.cpus.to_string()), (also, "0-3".into()));
        assert!(!near.is_slow);
    }

    /// Goal: nobody is held to classes that nobody knows the speed of, other than by their order; a class
    /// without a capacity has a usual one. Method: as it says.
    #[test]
    fn unknown_speeds_are_usual_ones() {
        let halves = vec![(CpuSet::parse("0-3"), None), (CpuSet::parse("4-7"), None)];
        let machine = Topology::uniform(8).with_classes(halves);
        assert_eq!(lines(&machine, "0-7", 4)[3], "0-3 slow 64");
    }
}
