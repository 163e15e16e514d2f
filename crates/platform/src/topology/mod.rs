//! What the machine is: which CPUs there are, how fast they are, and which of them share what.
//!
//! [`Topology`] is what never changes while a program runs. Only its [`Limits`] do: they hold what was so
//! when they were read. [`detect`] makes a topology from the files of a machine, [`Plan`] says which worker
//! belongs where.
//!
//! Invariant: detection always answers something usable. What it cannot find out it leaves at the neutral
//! value ("everything shares everything", "all are equal"), which costs locality and never a CPU.

mod cpuset;
#[cfg(feature = "machine")]
pub mod detect;
mod limits;
#[cfg(feature = "machine")]
mod plan;

pub use cpuset::CpuSet;
pub use limits::{Limits, Quota};
#[cfg(feature = "machine")]
pub use plan::{Plan, PlannedWorker};

use std::fmt;

/// How far data has to travel between two CPUs, near to far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Distance {
    /// The same core (the same CPU, or its SMT sibling).
    Core,
    /// A shared last-level cache.
    Cache,
    /// The same memory node.
    Node,
    /// Another memory node.
    Remote,
}

/// Where a CPU is. Numbers are only compared for equality.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuPlace {
    /// The logical CPU.
    pub cpu: u32,
    /// The core it is a thread of.
    pub core: u32,
    /// The last-level cache it uses.
    pub cache: u32,
    /// The memory node it belongs to.
    pub node: u32,
    /// The package it is in.
    pub package: u32,
}

/// CPUs that are equally fast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// `little`, `mid` or `big`, or `all` where there is only one class.
    pub name: String,
    /// Those of its CPUs that were online.
    pub cpus: CpuSet,
    /// What one of its CPUs can do, if the fastest ones can do 1024. An estimate unless the kernel says it
    /// ([`Witness::Capacity`]); none if nothing is known about it.
    pub capacity: Option<u32>,
}

/// What the classes were told apart by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// Nothing says that the CPUs differ.
    Nothing,
    /// The program that made the topology.
    Given,
    /// The kernel's lists of which CPUs a counter of the `cpu_core` or `cpu_atom` kind works on.
    Counters,
    /// `cpu_capacity`.
    Capacity,
    /// `acpi_cppc/highest_perf`.
    HighestPerf,
    /// `cpufreq/base_frequency`.
    BaseFrequency,
    /// The highest frequency, and which core it is.
    Frequency,
    /// The efficiency classes that Windows gives CPUs.
    EfficiencyClass,
    /// The performance levels that macOS has.
    PerfLevel,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Witness::Nothing => "nothing says that CPUs differ",
            Witness::Given => "as given",
            Witness::Counters => "lists of cpu_core and cpu_atom",
            Witness::Capacity => "cpu_capacity",
            Witness::HighestPerf => "acpi_cppc/highest_perf",
            Witness::BaseFrequency => "base_frequency",
            Witness::Frequency => "highest frequency and kind of core",
            Witness::EfficiencyClass => "efficiency class",
            Witness::PerfLevel => "performance levels",
        })
    }
}

/// How far classes can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confidence {
    /// Two witnesses contradict each other: no thread may be kept off a CPU because of its class.
    Low,
    /// Nothing speaks against them.
    High,
}

/// The machine as far as the job system needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    places: Vec<CpuPlace>,
    limits: Limits,
    /// Follows from the limits.
    usable: CpuSet,
    effective_parallelism: usize,
    present: CpuSet,
    isolated: CpuSet,
    classes: Vec<Class>,
    witness: Witness,
    confidence: Confidence,
    caches_known: CpuSet,
    notes: Vec<String>,
    model: String,
}

impl Default for Topology {
    fn default() -> Topology {
        Topology::new(Vec::new(), 1, String::new())
    }
}

// Inline is what most programs have no use for: it is compiled where it is used.
impl Topology {
    /// A machine with these CPUs, on which the process may use `effective_parallelism` of them at a
    /// time (its affinity and its quota considered).
    pub fn new(places: Vec<CpuPlace>, effective_parallelism: usize, model: String) -> Topology {
        let cpus: CpuSet = places.iter().map(|place| place.cpu).collect();
        Topology {
            places,
            limits: Limits::of(cpus.clone()),
            usable: cpus.clone(),
            effective_parallelism: effective_parallelism.max(1),
            present: cpus.clone(),
            isolated: CpuSet::new(),
            classes: name_classes(vec![(cpus.clone(), None)]),
            witness: Witness::Nothing,
            confidence: Confidence::High,
            caches_known: cpus,
            notes: Vec::new(),
            model,
        }
    }

    /// A machine of `cpus` equal CPUs.
    pub fn uniform(cpus: usize) -> Topology {
        let place = |cpu| CpuPlace {
            cpu,
            core: cpu,
            ..CpuPlace::default()
        };
        let places = (0..cpus as u32).map(place).collect();
        Topology::new(places, cpus, "uniform".into())
    }

    /// The same machine with these classes, slow to fast: CPUs and what one of them can do, the fastest 1024.
    #[inline]
    #[must_use]
    pub fn with_classes(mut self, classes: Vec<(CpuSet, Option<u32>)>) -> Topology {
        self.classes = name_classes(classes);
        self.witness = Witness::Given;
        self
    }

    /// The same machine with these limits, and the parallelism that follows from them.
    #[inline]
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Topology {
        self.effective_parallelism = limits.effective_parallelism();
        self.usable = limits.usable();
        self.limits = limits;
        self
    }

    /// The same machine, with what was known `earlier` of CPUs that are offline by now: they stay in the
    /// class of those they were with, or in one of their own if all of it is away. (Not if its speed is not
    /// to be compared with that of the others, because other witnesses say it.)
    ///
    /// ```
    /// # use paceline_platform::{CpuSet, Topology};
    /// let set = CpuSet::parse;
    /// let halves = vec![(set("0-1"), Some(300)), (set("2-3"), Some(1024))];
    /// let earlier = Topology::uniform(4).with_classes(halves);
    /// let now = Topology::uniform(3).with_classes(vec![(set("0-1"), Some(300)), (set("2"), Some(1024))]);
    /// assert_eq!(now.remembering(&earlier).class_of(3), Some(1));
    /// ```
    #[inline]
    #[must_use]
    pub fn remembering(self, earlier: &Topology) -> Topology {
        let mut classes: Vec<(CpuSet, Option<u32>)> = Vec::new();
        classes.extend(
            self.classes
                .iter()
                .map(|class| (class.cpus.clone(), class.capacity)),
        );
        for class in &earlier.classes {
            let is_away = |&cpu: &u32| self.class_of(cpu).is_none();
            let away: CpuSet = class.cpus.iter().filter(is_away).collect();
            let others = class.cpus.difference(&away);
            let with = classes
                .iter_mut()
                .max_by_key(|(cpus, _)| cpus.intersection(&others).len())
                .filter(|(cpus, _)| !cpus.intersection(&others).is_empty());
            match with {
                _ if away.is_empty() => {}
                Some((cpus, _)) => *cpus = cpus.union(&away),
                None if class.capacity.is_some() && self.witness == earlier.witness => {
                    classes.push((away, class.capacity));
                }
                None => {}
            }
        }
        classes.sort_by_key(|(_, capacity)| *capacity);
        Topology {
            classes: name_classes(classes),
            ..self
        }
    }

    /// How many threads of this process can run at the same time; at least 1.
    pub fn effective_parallelism(&self) -> usize {
        self.effective_parallelism
    }

    /// What the process may use, when it was read.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The CPUs this process may use: online and allowed.
    pub fn allowed(&self) -> &CpuSet {
        &self.usable
    }

    /// CPUs that are plugged in, whether or not they run.
    pub fn present(&self) -> &CpuSet {
        &self.present
    }

    /// CPUs that were taken away from the scheduler at boot (`isolcpus`): nothing runs there unless it asks.
    pub fn isolated(&self) -> &CpuSet {
        &self.isolated
    }

    /// Where each CPU is that was online, by number.
    pub fn places(&self) -> &[CpuPlace] {
        &self.places
    }

    /// The classes of CPUs, slow to fast: at least one, each CPU that was online in one of them.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// What the classes were told apart by.
    pub fn witness(&self) -> Witness {
        self.witness
    }

    /// How far the classes can be relied on.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// The position of a CPU's class in [`classes`](Topology::classes); none for a CPU that was not
    /// described.
    pub fn class_of(&self, cpu: u32) -> Option<usize> {
        let classes = self.classes.iter();
        classes
            .into_iter()
            .position(|class| class.cpus.contains(cpu))
    }

    /// Groups of CPUs that are threads of one core.
    #[inline]
    pub fn cores(&self) -> Vec<CpuSet> {
        self.groups(|place| place.core, |_| true)
    }

    /// Groups of CPUs that share a last-level cache, as far as it is known.
    #[inline]
    pub fn caches(&self) -> Vec<CpuSet> {
        self.groups(|place| place.cache, |cpu| self.caches_known.contains(cpu))
    }

    /// Groups of CPUs that share a memory node.
    #[inline]
    pub fn nodes(&self) -> Vec<CpuSet> {
        self.groups(|place| place.node, |_| true)
    }

    /// In the order of their first CPUs.
    #[inline]
    fn groups(
        &self,
        number: impl Fn(&CpuPlace) -> u32,
        known: impl Fn(u32) -> bool,
    ) -> Vec<CpuSet> {
        let mut groups = std::collections::BTreeMap::<u32, CpuSet>::new();
        for place in self.places.iter().filter(|place| known(place.cpu)) {
            groups.entry(number(place)).or_default().insert(place.cpu);
        }
        let mut groups: Vec<CpuSet> = groups.into_values().collect();
        groups.sort_by_key(CpuSet::first);
        groups
    }

    /// Those of the given CPUs that work with a deadline should run on: the fastest class, and the next
    /// slower ones until there are four CPUs or half of all, whichever is less. So a phone with a single
    /// prime core has four or five, and not one. Where these are fewer than four, a slower class is worth its
    /// CPUs if a loop that is divided evenly ends sooner with them, although it then waits for the slowest:
    /// so a prime core and a middle one are both fast, and a prime core and a little one are not. All of
    /// them if the classes are not reliable.
    #[inline]
    pub fn fast(&self, usable: &CpuSet) -> CpuSet {
        if self.confidence == Confidence::Low {
            return usable.clone();
        }
        let enough = usable.len().div_ceil(2).min(ENOUGH_FAST);
        let mut fast = CpuSet::new();
        let mut slowest = None;
        for class in self.classes.iter().rev() {
            let more = class.cpus.intersection(usable);
            if more.is_empty() {
                continue;
            }
            let with = fast.union(&more);
            if fast.len() >= enough {
                let without = evenly(fast.len(), slowest);
                let is_worth = evenly(with.len(), class.capacity).zip(without);
                let is_worth = is_worth.is_some_and(|(with, without)| with > without);
                if fast.len() >= ENOUGH_FAST || !is_worth {
                    return fast;
                }
            }
            (fast, slowest) = (with, class.capacity);
        }
        if fast.len() >= enough {
            fast
        } else {
            // CPUs that came online later have no class yet.
            usable.clone()
        }
    }

    /// What was distrusted, and why, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the machine calls its processor.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// How far apart two CPUs are. CPUs that were not described count as neighbours in one cache.
    pub fn distance(&self, a: u32, b: u32) -> Distance {
        if a == b {
            return Distance::Core;
        }
        let place = |cpu| self.places.iter().find(|place| place.cpu == cpu);
        match (place(a), place(b)) {
            (Some(a), Some(b)) if a.core == b.core => Distance::Core,
            (Some(a), Some(b)) if a.cache == b.cache => Distance::Cache,
            (Some(a), Some(b)) if a.node == b.node => Distance::Node,
            (Some(_), Some(_)) => Distance::Remote,
            _ => Distance::Cache,
        }
    }
}

/// So many CPUs are enough for work with a deadline: slower ones are not added to them.
const ENOUGH_FAST: usize = 4;

/// What so many CPUs do together if each has the same to do, the slowest of which can do `slowest`. None if
/// that is unknown.
#[inline]
fn evenly(cpus: usize, slowest: Option<u32>) -> Option<u64> {
    Some(cpus as u64 * u64::from(slowest?))
}

/// Gives classes, slow to fast, their names.
#[inline]
fn name_classes(classes: Vec<(CpuSet, Option<u32>)>) -> Vec<Class> {
    let count = classes.len();
    let name = |rank: usize| match (count, rank) {
        (1, _) => "all".to_owned(),
        (_, 0) => "little".to_owned(),
        (_, rank) if rank + 1 == count => "big".to_owned(),
        (3, _) => "mid".to_owned(),
        (_, rank) => format!("mid{rank}"),
    };
    let class = |(rank, (cpus, capacity))| Class {
        name: name(rank),
        cpus,
        capacity,
    };
    classes.into_iter().enumerate().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: distances grow from the core to the node, and groups follow the places. Method: a machine with
    /// each distance, and a CPU that it does not have.
    #[test]
    fn distance_grows_from_core_to_node() {
        let place = |cpu, core, cache, node| CpuPlace {
            cpu,
            core,
            cache,
            node,
            package: 0,
        };
        let places = vec![
            place(0, 0, 0, 0),
            place(1, 0, 0, 0),
            place(2, 1, 0, 0),
            place(3, 2, 1, 0),
            place(4, 3, 2, 1),
        ];
        let machine = Topology::new(places, 5, String::new());
        let from_zero = [0, 1, 2, 3, 4, 99].map(|cpu| machine.distance(0, cpu));
        use Distance::*;
        assert_eq!(from_zero, [Core, Core, Cache, Node, Remote, Cache]);
        let lists = |sets: Vec<CpuSet>| sets.iter().map(CpuSet::to_string).collect::<Vec<_>>();
        assert_eq!(lists(machine.cores()), ["0-1", "2", "3", "4"]);
        assert_eq!(lists(machine.caches()), ["0-2", "3", "4"]);
        assert_eq!(lists(machine.nodes()), ["0-3", "4"]);
    }

    /// Goal: the fast set is never one prime core, nor all of a phone. Method: a phone of 1 + 3 + 4, whole,
    /// cut to its slow half and to one CPU; and a CPU without a class.
    #[test]
    fn the_fast_set_is_four_or_half() {
        let set = CpuSet::parse;
        let phone = Topology::uniform(8).with_classes(vec![
            (set("0-3"), Some(300)),
            (set("4-6"), Some(800)),
            (set("7"), Some(1024)),
        ]);
        for (usable, fast) in [
            ("0-7", "4-7"),
            ("0-6", "4-6,0-3"),
            ("0-5", "0-5"),
            ("0-3", "0-3"),
        ] {
            let got = phone.fast(&set(usable));
            assert_eq!(got, set(fast), "{usable}: {got}");
        }
        assert_eq!(phone.fast(&set("7")), set("7"));
        assert_eq!(phone.fast(&set("3,6,7")), set("6-7"));
        assert_eq!(phone.fast(&set("7-9")), set("7-9"));
        assert_eq!(phone.fast(&set("6-7")), set("6-7"), "a middle core is fast");
        assert_eq!(phone.fast(&set("3,7")), set("7"), "a little one is not");
        let names: Vec<_> = phone.classes().iter().map(|class| &*class.name).collect();
        assert_eq!(names, ["little", "mid", "big"]);
    }

    /// Goal: of fewer than four fast CPUs, slower ones are added exactly where a loop that is divided evenly
    /// ends sooner with them; otherwise the set is as it was. Method: the time of such a loop, computed for
    /// two classes of every size and speed, known and unknown.
    #[test]
    fn slower_cpus_are_fast_where_an_even_loop_ends_sooner() {
        for (slow, quick) in (1..=5).flat_map(|slow| (1..=5).map(move |quick| (slow, quick))) {
            for capacity in [
                None,
                Some(100),
                Some(300),
                Some(512),
                Some(513),
                Some(780),
                Some(900),
            ] {
                let all: CpuSet = (0..slow + quick).collect();
                let big: CpuSet = (slow..slow + quick).collect();
                let little = all.difference(&big);
                let machine = Topology::uniform(all.len())
                    .with_classes(vec![(little, capacity), (big.clone(), Some(1024))]);
                let too_few = quick < (slow + quick).div_ceil(2).min(4);
                let sooner = capacity.is_some_and(|capacity| {
                    let with = 1.0 / f64::from(capacity * (slow + quick));
                    with < 1.0 / f64::from(1024 * quick)
                });
                let expected = if too_few || quick < 4 && sooner {
                    &all
                } else {
                    &big
                };
                let of = format!("{slow} of {capacity:?} and {quick}");
                assert_eq!(&machine.fast(&all), expected, "{of}");
            }
        }
    }
}
