//! Which CPUs each worker is held to, and what it takes there.
//!
//! Where CPUs differ, work with a deadline belongs on the fast ones. So workers are of two kinds
//! ([`Plan`] says how many of each): *fast* ones have a mask of the fast classes and take everything; *slow*
//! ones have a mask of a slower class and take what has no deadline, and of ranges only shares that fit
//! their speed ([`slow`](crate::work::slow)). No mask is a single CPU unless a class is: within a class the
//! kernel decides, and steering leaves out a CPU of the class for a while.
//!
//! Where there are several last-level caches, fast workers that have a core each beside the thread that waits
//! have a mask of its cache ([`Plan`]). Which thread that is, shows a request for a look at the machine
//! ([`live`](crate::adapt::live)). A mask that leaves out idle CPUs is in the way where others want the rest:
//! while threads are preempted there is none.
//!
//! Invariants
//! - Where all usable CPUs are of one class, or classes are not reliable, every worker is a fast one, and no
//!   mask is set but that of a cache. If the program wants none of it ([`Placement::Free`]), none at all.
//! - Threads of the program's own, those with a role, too, are never held to a cache: workers follow them.
//! - A mask has a CPU that may be used at this moment. It has those, too, that are away and would belong to
//!   it: the kernel cuts them off, and what it leaves tells when they are back.
//! - Of the regular workers, the first one is fast.

use platform::{CpuSet, Distance, Lane, Limits, Machine, Plan, PlannedWorker, Platform, Topology};

use crate::adapt::words::PlacedThread;

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

/// Where this thread might run if it had not been given a mask; `usable`: the CPUs that this mask was chosen
/// from. A thread that has all of its mask that there was has lost nothing to anybody else, so what the mask
/// leaves out counts, too.
pub(crate) fn allowed_without_place<P: Platform>(
    platform: &P,
    placed: &PlacedThread,
    usable: &CpuSet,
) -> Option<CpuSet> {
    let now = platform.machine().allowed(&[placed.thread])?;
    let Some(given) = &placed.given else {
        return Some(now);
    };
    let has_all = placed.is_steered || given.intersection(usable).is_subset(&now);
    Some(if has_all { now.union(usable) } else { now })
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
