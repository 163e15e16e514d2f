//! Which worker belongs where: a mask and the kinds of work, for each.
//!
//! Work with a deadline goes to the fast CPUs ([`Topology::fast`]); work without one may run anywhere. So
//! workers for the fast CPUs take both, and workers for the other CPUs take what has no deadline. No worker
//! is tied to one CPU: within its mask the kernel decides, which knows more about heat and about others.

use super::{CpuSet, Limits, Topology};
use crate::Lane;

/// Where a worker may run, and what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedWorker {
    /// The CPUs it may use, of those the process may.
    pub cpus: CpuSet,
    /// The classes these are of, such as `mid+big`.
    pub class: String,
    /// What it takes. A worker takes the lanes behind the first one when it finds nothing there.
    pub lanes: &'static [Lane],
}

impl PlannedWorker {
    /// Whether it takes this kind of work.
    pub fn takes(&self, lane: Lane) -> bool {
        self.lanes.contains(&lane)
    }
}

/// A place for each worker, those for work with a deadline first.
///
/// ```
/// use paceline_platform::{CpuSet, Lane, Plan, Topology};
/// let phone = Topology::uniform(8).with_classes(vec![
///     (CpuSet::parse("0-3"), Some(300)),
///     (CpuSet::parse("4-6"), Some(800)),
///     (CpuSet::parse("7"), Some(1024)),
/// ]);
/// let plan = Plan::new(&phone, phone.limits(), 7);
/// let frame = plan.workers.iter().filter(|worker| worker.takes(Lane::Frame));
/// assert_eq!(frame.count(), 3, "and the thread that waits is the fourth");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// By thread slot.
    pub workers: Vec<PlannedWorker>,
}

impl Plan {
    /// A place for each of so many workers on this machine, within these limits (the machine's own, or newer
    /// ones).
    ///
    /// One fast CPU is left to the thread that waits for the workers, since that thread helps. Workers beyond
    /// the fast CPUs go to the next slower class and so on, one a CPU; if there are more of them than CPUs,
    /// the rest may run anywhere. Where all CPUs are equal, or classes are not reliable, each worker may run
    /// everything everywhere.
    pub fn new(machine: &Topology, limits: &Limits, workers: usize) -> Plan {
        let usable = limits.usable();
        let fast = machine.fast(&usable);
        let slow = usable.difference(&fast);
        let count = if slow.is_empty() {
            workers
        } else {
            workers.min(fast.len().saturating_sub(1).max(1))
        };
        let quick = planned(
            machine,
            &fast,
            &[Lane::Frame, Lane::Normal, Lane::Background],
        );
        let mut plan = vec![quick; count];
        for class in machine.classes().iter().rev() {
            let cpus = class.cpus.intersection(&slow);
            let wanted = cpus.len().min(workers - plan.len());
            let worker = planned(machine, &cpus, &[Lane::Background]);
            plan.extend(std::iter::repeat_n(worker, wanted));
        }
        let anywhere = planned(machine, &usable, &[Lane::Background]);
        plan.resize(workers, anywhere);
        Plan { workers: plan }
    }
}

fn planned(machine: &Topology, cpus: &CpuSet, lanes: &'static [Lane]) -> PlannedWorker {
    let classes = machine.classes().iter();
    let named = classes.filter(|class| !class.cpus.intersection(cpus).is_empty());
    let names: Vec<&str> = named.map(|class| &*class.name).collect();
    PlannedWorker {
        cpus: cpus.clone(),
        class: names.join("+"),
        lanes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone() -> Topology {
        Topology::uniform(8).with_classes(vec![
            (CpuSet::parse("0-3"), Some(300)),
            (CpuSet::parse("4-6"), Some(800)),
            (CpuSet::parse("7"), Some(1024)),
        ])
    }

    fn lines(machine: &Topology, limits: &Limits, workers: usize) -> Vec<String> {
        let plan = Plan::new(machine, limits, workers);
        let line = |worker: &PlannedWorker| {
            let lanes: Vec<_> = worker.lanes.iter().map(Lane::to_string).collect();
            format!("{} {} {}", worker.cpus, worker.class, lanes.join("+"))
        };
        plan.workers.iter().map(line).collect()
    }

    /// Goal: deadlines are met on fast CPUs, and no usable CPU is left without a worker or the waiter.
    /// Method: a phone, whole; with few workers; with many; in its background cpuset.
    #[test]
    fn frame_work_stays_on_fast_cpus() {
        let phone = phone();
        let (quick, slow) = (
            "4-7 mid+big frame+normal+background",
            "0-3 little background",
        );
        let whole = phone.limits();
        assert_eq!(lines(&phone, whole, 1), [quick]);
        assert_eq!(lines(&phone, whole, 4), [quick, quick, quick, slow]);
        let nine = lines(&phone, whole, 9);
        assert_eq!(nine[..3], [quick; 3]);
        assert_eq!(nine[3..7], [slow; 4]);
        assert_eq!(nine[7..], ["0-7 little+mid+big background"; 2]);
        let background = Limits {
            allowed: CpuSet::parse("0-1"),
            ..whole.clone()
        };
        let anywhere = "0-1 little frame+normal+background";
        assert_eq!(lines(&phone, &background, 2), [anywhere; 2]);
    }

    /// Goal: equal CPUs are not divided. Method: four of them.
    #[test]
    fn equal_cpus_take_everything() {
        let machine = Topology::uniform(4);
        let expected = ["0-3 all frame+normal+background"; 3];
        assert_eq!(lines(&machine, machine.limits(), 3), expected);
    }
}
