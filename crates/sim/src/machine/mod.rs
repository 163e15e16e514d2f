//! What a simulated machine consists of, in plain integers.
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

use std::collections::BTreeMap;

use event::{Cpu, Nanos};
use platform::{CpuPlace, CpuSet, Topology};
use policy::Placement;

pub use crate::report::ClusterUse;
pub use file::MachineError;
pub use given::{Fact, Source};

/// A machine: its CPUs, what they share, and what its kernel's operations cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name it is chosen by.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// The CPUs; a CPU's number is its place here.
    pub cpus: Vec<CpuSpec>,
    /// The clusters: CPUs of one kind that share a frequency.
    pub clusters: Vec<Cluster>,
    /// What moving a cache line takes.
    pub lines: LineCosts,
    /// Pairs of clusters between which moving a line takes another time than `lines` says. CPUs that
    /// share a module are not concerned.
    pub between: Vec<Between>,
    /// The kernel's costs and habits.
    pub kernel: KernelSpec,
    /// The unit in which the machine's sources count time, if it has one of its own.
    pub tic: Option<Tic>,
    /// Where the values are from, in the order of the file; empty for a machine that comes from no file.
    pub facts: Vec<Fact>,
}

/// Where a CPU sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuSpec {
    /// Which of the machine's clusters.
    pub cluster: u32,
    /// Which core: hardware threads of one core have the same number.
    pub core: u32,
    /// Which group of cores with a cache of their own below the last level, as the pairs and fours of
    /// small cores have; a core that shares none has its own number.
    pub module: u32,
    /// Which last-level cache.
    pub cache: u32,
    /// Which socket or memory node.
    pub node: u32,
}

/// CPUs of one kind that share a frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// What its cores are called.
    pub name: String,
    /// What a CPU of it does in a given time at the highest frequency, as a share of the machine's
    /// fastest, which has 1024.
    pub capacity: u32,
    /// The operating points, slowest first; at least one.
    pub points: Vec<OperatingPoint>,
    /// Who chooses among them.
    pub governor: Governor,
    /// What a hardware thread is left with when two threads of its core compute, when three do, and so
    /// on, in percent of one that has the core to itself. The last one stands for any more.
    pub smt_percent: Vec<u32>,
    /// The sleep states, lightest first. None: waking an idle CPU takes no longer than an interrupt, and
    /// it uses no power.
    pub idle_states: Vec<IdleState>,
    /// How it heats up; `None`: it stays cool.
    pub thermal: Option<Thermal>,
}

/// A frequency and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// In kHz.
    pub khz: u32,
    /// The power of one busy core in microwatts; 0 if nobody has said.
    pub microwatts: u64,
}

/// Who chooses a cluster's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governor {
    /// Always this operating point.
    Fixed {
        /// Its place in the list.
        point: u32,
    },
    /// Linux's schedutil: 1.25 times what the busiest CPU's utilization needs, changed at most once per
    /// so much time. Utilization is PELT's.
    Schedutil {
        /// The least time between two changes.
        rate_limit: Nanos,
        /// The time after which PELT has forgotten half. Linux's are 32 (or, booted with `pelt=8`, 8)
        /// periods of 1024 µs.
        half_life: Nanos,
    },
}

/// A sleep state of an idle CPU. The state a CPU is in is the deepest one whose `residency` it has idled
/// for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// What it is called.
    pub name: String,
    /// How long a CPU must idle to get there.
    pub residency: Nanos,
    /// How long waking up from it takes.
    pub exit: Nanos,
    /// What the core uses meanwhile.
    pub microwatts: u64,
}

/// One heat capacity and one resistance to the surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thermal {
    /// The surroundings, and the temperature at the start.
    pub ambient_millidegrees: i64,
    /// By how much the cluster gets warmer for each watt, in the end.
    pub millidegrees_per_watt: i64,
    /// The time after which 63 % of a change have come.
    pub time_constant: Nanos,
    /// Above this the highest allowed frequency goes down, a point at a time; below it, up again.
    pub limit_millidegrees: i64,
    /// How often somebody looks: the time between two steps.
    pub period: Nanos,
}

/// What an access to a cache line takes that is not in the CPU's own cache, by where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LineCosts {
    /// It is here.
    pub hit: Nanos,
    /// A read-modify-write of a line that is here.
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
    /// How long a transfer takes that was asked for while the line was on its way to somebody else, in
    /// percent of those above; 0 means all of it. Such a request is with the line's next owner already when
    /// the line arrives there.
    pub queued_percent: u32,
}

/// What moving a line between CPUs of two clusters takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The clusters; twice the same one stands for two of its CPUs.
    pub clusters: (u32, u32),
    /// The time.
    pub takes: Nanos,
}

/// A unit of time: so many nanoseconds are so many of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tic {
    /// The nanoseconds.
    pub nanos: u64,
    /// How many tics they are.
    pub tics: u64,
}

/// A kernel's costs and habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelSpec {
    /// The time between two ticks of a busy CPU; zero: no ticks.
    pub tick: Nanos,
    /// How it places what it wakes.
    pub placement: Placement,
    /// Entering and leaving the kernel.
    pub syscall: Nanos,
    /// A call of `sched_yield`, `syscall` included, if the caller goes on at once; else it is `syscall` and a
    /// `switch`.
    pub yields: Nanos,
    /// Sending a message, or receiving one.
    pub message: Nanos,
    /// Going over to another task.
    pub switch: Nanos,
    /// Making a task runnable: what the waker pays beside `syscall`.
    pub wake: Nanos,
    /// What the waker pays to interrupt another CPU.
    pub ipi_send: Nanos,
    /// How long an interrupt of another CPU takes to arrive.
    pub ipi_deliver: Nanos,
    /// What a tick takes from the task it interrupts.
    pub tick_cost: Nanos,
    /// What a task pays when it goes on on another CPU.
    pub migrate: Nanos,
    /// Reading the clock.
    pub clock: Nanos,
}

impl Between {
    /// Whether it speaks of CPUs of these clusters, in any order.
    fn is_of(&self, (a, b): (u32, u32)) -> bool {
        self.clusters == (a, b) || self.clusters == (b, a)
    }
}

impl Tic {
    /// How many thousandths of a tic a time is, rounded down.
    ///
    /// ```
    /// use event::Nanos;
    /// let tic = sim::machine::Machine::named("mcu").unwrap().tic.unwrap();
    /// assert_eq!(tic.thousandths(Nanos(4900)), 841_000);
    /// ```
    pub fn thousandths(self, time: Nanos) -> u64 {
        let tics =
            u128::from(time.0) * u128::from(self.tics) * 1000 / u128::from(self.nanos.max(1));
        tics.min(u128::from(u64::MAX)) as u64
    }
}

impl Machine {
    /// `cpus` equal CPUs in one cache, on which nothing costs anything: only work takes time. What tests
    /// of programs run on.
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

    /// The same, with another way to place what wakes up.
    pub fn with_placement(self, placement: Placement) -> Machine {
        let kernel = KernelSpec {
            placement,
            ..self.kernel
        };
        self.with_kernel(kernel)
    }

    /// The values that nobody has said or measured, by their keys.
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

    /// What a program is told about the machine.
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

    /// What moving a line between these CPUs takes.
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
