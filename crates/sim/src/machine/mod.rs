//! The description of a simulated machine, in plain integers.
//!
//! Times are nanoseconds, frequencies kHz, powers microwatts, temperatures millidegrees. Machine files
//! ([`mod@file`]) give them with units and sources; the rest of the simulator neither parses nor converts.

#[cfg(test)]
mod broken;
pub mod file;
mod given;
mod layout;
mod library;
mod read;
#[cfg(test)]
mod tests;
mod together;

use std::collections::BTreeMap;

use event::{Cpu, Nanos};
use platform::{CpuPlace, CpuSet, Topology};
use policy::Placement;

pub use crate::report::ClusterUse;
pub use file::MachineError;
pub use given::{Fact, Source};

/// A machine: its CPUs, the parts that they share, and the costs of its kernel's operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name it is chosen by.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The CPUs; a CPU's number is its index in this list.
    pub cpus: Vec<CpuSpec>,
    /// The clusters: CPUs of one kind that share a frequency.
    pub clusters: Vec<Cluster>,
    /// The time it takes to move a cache line.
    pub lines: LineCosts,
    /// Pairs of clusters between which moving a line takes another time than `lines` says, except between
    /// CPUs that share a module.
    pub between: Vec<Between>,
    /// The kernel's costs and habits.
    pub kernel: KernelSpec,
    /// The unit in which the machine's sources count time, if it has one of its own.
    pub tic: Option<Tic>,
    /// The sources of the values, in the order of the file; empty for a machine that comes from no file.
    pub facts: Vec<Fact>,
}

/// The place of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuSpec {
    /// The index of its cluster in [`Machine::clusters`].
    pub cluster: u32,
    /// The number of its core: hardware threads of one core have the same number.
    pub core: u32,
    /// The number of its module: a group of cores with a cache of their own below the last level, as the
    /// pairs and fours of small cores have. A core that shares none has its own number.
    pub module: u32,
    /// The number of its last-level cache.
    pub cache: u32,
    /// The number of its socket or memory node.
    pub node: u32,
}

/// CPUs of one kind that share a frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The name of its kind of cores.
    pub name: String,
    /// The work that a CPU of it does in a given time at the highest frequency, as a share of the machine's
    /// fastest, which has 1024.
    pub capacity: u32,
    /// The operating points, slowest first; at least one.
    pub points: Vec<OperatingPoint>,
    /// The governor that chooses among them.
    pub governor: Governor,
    /// The speed of a hardware thread when two threads of its core compute, when three do, and so on, in
    /// percent of a thread that has the core to itself. The last one stands for any higher number.
    pub smt_percent: Vec<u32>,
    /// The sleep states, lightest first. If there are none, waking an idle CPU takes no longer than an
    /// interrupt, and it uses no power.
    pub idle_states: Vec<IdleState>,
    /// How it heats up; `None`: it stays cool.
    pub thermal: Option<Thermal>,
}

/// A frequency and its power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// In kHz.
    pub khz: u32,
    /// The power of one busy core in microwatts; 0 if it is not known.
    pub microwatts: u64,
}

/// The part of the kernel that chooses a cluster's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governor {
    /// Always this operating point.
    Fixed {
        /// Its place in the list.
        point: u32,
    },
    /// Linux's schedutil: 1.25 times what the busiest CPU's utilization needs, with at least `rate_limit`
    /// between two changes. Utilization is PELT's.
    Schedutil {
        /// The least time between two changes.
        rate_limit: Nanos,
        /// The time in which PELT's memory halves. Linux's are 32 (or, booted with `pelt=8`, 8) periods of
        /// 1024 µs.
        half_life: Nanos,
    },
}

/// A sleep state of an idle CPU. The state a CPU is in is the deepest one whose `residency` it has idled
/// for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// How long a CPU must idle to get there.
    pub residency: Nanos,
    /// The time it takes to wake up from it.
    pub exit: Nanos,
    /// The power of the core in this state.
    pub microwatts: u64,
}

/// One heat capacity and one resistance to the surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thermal {
    /// The surroundings, and the temperature at the start.
    pub ambient_millidegrees: i64,
    /// The final rise of the cluster's temperature for each watt.
    pub millidegrees_per_watt: i64,
    /// The time after which 63 % of a change has happened.
    pub time_constant: Nanos,
    /// Above this temperature the highest allowed frequency goes down by one point at a time, below it up
    /// again.
    pub limit_millidegrees: i64,
    /// The time between two looks at the temperature, each of which allows one step.
    pub period: Nanos,
}

/// The time of an access to a cache line, by the place of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LineCosts {
    /// It is in the CPU's own cache.
    pub hit: Nanos,
    /// A read-modify-write of a line in the CPU's own cache.
    pub rmw: Nanos,
    /// At a hardware thread of the same core.
    pub core: Nanos,
    /// At a core of the same module.
    pub module: Nanos,
    /// At a CPU that shares the last-level cache.
    pub cache: Nanos,
    /// Elsewhere on this node.
    pub node: Nanos,
    /// On another node.
    pub remote: Nanos,
    /// How long a transfer takes that was requested while the line was on its way to another CPU, in percent
    /// of those above; 0 means all of it. Such a request is with the line's next owner already when the line
    /// arrives there.
    pub queued_percent: u32,
}

/// The time it takes to move a line between CPUs of two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The clusters; twice the same one stands for two of its CPUs.
    pub clusters: (u32, u32),
    /// The time.
    pub takes: Nanos,
}

/// A unit of time: `nanos` nanoseconds are `tics` of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tic {
    /// The nanoseconds.
    pub nanos: u64,
    /// The number of tics in them.
    pub tics: u64,
}

/// A kernel's costs and habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelSpec {
    /// The time between two ticks of a busy CPU; zero: no ticks.
    pub tick: Nanos,
    /// How it places tasks that wake up.
    pub placement: Placement,
    /// Entering and leaving the kernel.
    pub syscall: Nanos,
    /// A call of `sched_yield`, `syscall` included, if the caller continues at once; else it is `syscall` and
    /// a `switch`.
    pub yields: Nanos,
    /// Sending a message, or receiving one.
    pub message: Nanos,
    /// Switching to another task.
    pub switch: Nanos,
    /// Making a task runnable: the cost to the waker beside `syscall`.
    pub wake: Nanos,
    /// The cost to the waker of interrupting another CPU.
    pub ipi_send: Nanos,
    /// How long an interrupt of another CPU takes to arrive.
    pub ipi_deliver: Nanos,
    /// The time that a tick takes from the task it interrupts.
    pub tick_cost: Nanos,
    /// The cost to a task of continuing on another CPU.
    pub migrate: Nanos,
    /// Reading the clock.
    pub clock: Nanos,
}

impl Between {
    /// Whether it is for CPUs of these clusters, in any order.
    fn is_of(&self, (a, b): (u32, u32)) -> bool {
        self.clusters == (a, b) || self.clusters == (b, a)
    }
}

impl Tic {
    /// The time in thousandths of a tic, rounded down.
    ///
    /// ```
    /// use event::Nanos;
    /// let tic = paceline_sim::machine::Machine::named("mcu").unwrap().tic.unwrap();
    /// assert_eq!(tic.thousandths(Nanos(4900)), 841_000);
    /// ```
    pub fn thousandths(self, time: Nanos) -> u64 {
        let tics =
            u128::from(time.0) * u128::from(self.tics) * 1000 / u128::from(self.nanos.max(1));
        tics.min(u128::from(u64::MAX)) as u64
    }
}

impl Machine {
    /// `cpus` equal CPUs in one cache, on which no operation has a cost: only work takes time. The machine
    /// for tests of programs.
    pub fn ideal(cpus: usize) -> Machine {
        assert!(cpus > 0, "a machine has a CPU");
        let place = |cpu: usize| CpuSpec {
            core: cpu as u32,
            module: cpu as u32,
            ..CpuSpec::default()
        };
        Machine {
            name: format!("ideal-{cpus}"),
            about: format!("{cpus} equal CPUs, and nothing but work takes time"),
            cpus: (0..cpus).map(place).collect(),
            clusters: vec![Cluster {
                name: "ideal".into(),
                capacity: 1024,
                points: vec![OperatingPoint {
                    khz: 1_000_000,
                    microwatts: 0,
                }],
                governor: Governor::Fixed { point: 0 },
                smt_percent: Vec::new(),
                idle_states: Vec::new(),
                thermal: None,
            }],
            lines: LineCosts::default(),
            between: Vec::new(),
            kernel: KernelSpec::default(),
            tic: None,
            facts: Vec::new(),
        }
    }

    /// The same with another kernel.
    pub fn with_kernel(self, kernel: KernelSpec) -> Machine {
        Machine { kernel, ..self }
    }

    /// The same with every cluster at its highest frequency all the time, as Linux's governor `performance`
    /// has it.
    pub fn at_full_speed(self) -> Machine {
        let full = |cluster: Cluster| Cluster {
            governor: Governor::Fixed {
                point: cluster.points.len() as u32 - 1,
            },
            ..cluster
        };
        Machine {
            clusters: self.clusters.into_iter().map(full).collect(),
            ..self
        }
    }

    /// The same, with another way to place tasks that wake up.
    pub fn with_placement(self, placement: Placement) -> Machine {
        let kernel = KernelSpec {
            placement,
            ..self.kernel
        };
        self.with_kernel(kernel)
    }

    /// The keys of the values that were neither measured nor found in a source.
    pub fn assumed(&self) -> impl Iterator<Item = &str> {
        let assumed = |fact: &&Fact| matches!(fact.source, Source::Assumed(_));
        self.facts
            .iter()
            .filter(assumed)
            .map(|fact| fact.key.as_str())
    }

    /// The cluster of a CPU.
    pub fn cluster(&self, cpu: Cpu) -> &Cluster {
        &self.clusters[self.cpus[cpu.index()].cluster as usize]
    }

    /// The topology that programs see.
    pub fn topology(&self) -> Topology {
        let place = |(cpu, spec): (usize, &CpuSpec)| CpuPlace {
            cpu: cpu as u32,
            core: spec.core,
            cache: spec.cache,
            node: spec.node,
            package: spec.node,
        };
        let places: Vec<_> = self.cpus.iter().enumerate().map(place).collect();
        let cpus = places.len();
        let topology = Topology::new(places, cpus, self.about.clone());
        let classes = self.classes();
        match classes.len() {
            1 => topology,
            _ => topology.with_classes(classes),
        }
    }

    /// CPUs of equal capacity, slow to fast.
    fn classes(&self) -> Vec<(CpuSet, Option<u32>)> {
        let mut classes = BTreeMap::<u32, CpuSet>::new();
        for cpu in 0..self.cpus.len() as u32 {
            let capacity = self.cluster(Cpu(cpu)).capacity;
            classes.entry(capacity).or_default().insert(cpu);
        }
        let named = |(capacity, cpus)| (cpus, Some(capacity));
        classes.into_iter().map(named).collect()
    }

    /// The time it takes to move a line between these CPUs.
    pub(crate) fn transfer(&self, from: Cpu, to: Cpu) -> Nanos {
        let (a, b) = (self.cpus[from.index()], self.cpus[to.index()]);
        let pair = (a.cluster, b.cluster);
        if from == to {
            self.lines.hit
        } else if a.core == b.core {
            self.lines.core
        } else if a.module == b.module {
            self.lines.module
        } else if let Some(between) = self.between.iter().find(|between| between.is_of(pair)) {
            between.takes
        } else if a.cache == b.cache {
            self.lines.cache
        } else if a.node == b.node {
            self.lines.node
        } else {
            self.lines.remote
        }
    }
}
