//! The places of workers: the CPUs that each worker is held to, and the work that it takes there.
//!
//! Where CPUs differ, work with a deadline belongs on the fast ones. So there are two kinds of workers
//! ([`Plan`] says how many of each). *Fast* workers have a mask of the fast classes and take everything.
//! *Slow* workers have a mask of a slower class. They take work without a deadline, and of ranges only
//! shares that fit their speed ([`slow`](crate::work::slow)). No mask is a single CPU unless a class is:
//! within a class the kernel decides, and steering leaves out a CPU of the class for a while.
//!
//! Invariants
//! - Where all usable CPUs are of one class, or classes are not reliable, every worker is a fast one, and
//!   no mask is set. The same holds if the program wants no places
//!   ([`Placement::Free`](crate::Placement::Free)).
//! - A mask has a CPU that may be used at this moment. It also has the CPUs that are away and would belong
//!   to it. The kernel cuts them off, and the mask that it leaves tells when they are back.
//! - Of the regular workers, the first one is fast.

use platform::{CpuSet, Lane, Limits, Machine, Plan, PlannedWorker, Platform, Topology};

use crate::adapt::words::PlacedThread;

/// The place of one worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkerPlace {
    /// The mask of its thread.
    pub(crate) cpus: CpuSet,
    /// The worker takes no work with a deadline except shares of ranges.
    pub(crate) is_slow: bool,
    /// How many times as long as on a fast CPU a piece of work takes there, in sixteenths. This is believed
    /// until it is measured.
    pub(crate) times_16: u32,
}

/// The same for CPUs of unknown speed: the value of a little core beside a big one.
const TIMES_UNKNOWN: u32 = 4 * 16;

/// The places of `workers` workers. None if all workers may run everything everywhere. `seen`: every CPU
/// that was ever usable.
pub(crate) fn places(
    machine: &Topology,
    limits: &Limits,
    workers: usize,
    seen: &CpuSet,
) -> Vec<WorkerPlace> {
    let usable = limits.usable();
    let plan = Plan::new(machine, limits, workers);
    let is_anywhere = |worker: &PlannedWorker| worker.takes(Lane::Frame) && worker.cpus == usable;
    if plan.workers.iter().all(is_anywhere) {
        return Vec::new();
    }
    let fast = machine.fast(&usable);
    let slowest_fast = fast.iter().filter_map(|cpu| machine.class_of(cpu)).min();
    let away = seen.difference(&usable);
    let place = |worker: &PlannedWorker| {
        let is_slow = !worker.takes(Lane::Frame);
        let belongs = |cpu: &u32| match machine.class_of(*cpu) {
            Some(class) => is_slow == (Some(class) < slowest_fast),
            None => true,
        };
        let with_away: CpuSet = worker
            .cpus
            .iter()
            .chain(away.iter().filter(belongs))
            .collect();
        WorkerPlace {
            times_16: times(machine, &fast, &worker.cpus),
            cpus: with_away,
            is_slow,
        }
    };
    plan.workers.iter().map(place).collect()
}

/// How many times as long a piece of work takes on the slowest of `cpus` as on average on the fast ones, in
/// sixteenths.
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

/// The CPUs that this thread might use without the mask that it was given. `usable`: the CPUs from which
/// this mask was chosen. If the thread still has all of the mask's usable CPUs, nothing has taken one from
/// it. So the CPUs that the mask leaves out count, too.
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
        let places = places(machine, &limits, workers, machine.allowed());
        let kind = |place: &WorkerPlace| if place.is_slow { "slow" } else { "fast" };
        let line =
            |place: &WorkerPlace| format!("{} {} {}", place.cpus, kind(place), place.times_16);
        places.iter().map(line).collect()
    }

    /// Goal: places follow the plan, masks have no CPU of another kind, and there are no places where there
    /// is nothing to divide. Method: a phone, whole; with few workers; without its prime core; on its
    /// little cores; and equal CPUs.
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

    /// Goal: classes of unknown speed are told apart by their order alone, and a class without a capacity
    /// is believed to have a usual one. Method: two classes without capacities.
    #[test]
    fn unknown_speeds_are_usual_ones() {
        let halves = vec![(CpuSet::parse("0-3"), None), (CpuSet::parse("4-7"), None)];
        let machine = Topology::uniform(8).with_classes(halves);
        assert_eq!(lines(&machine, "0-7", 4)[3], "0-3 slow 64");
    }
}
