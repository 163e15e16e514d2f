//! The configuration of a run.

use std::fmt;
use std::sync::Arc;

use event::{Cpu, Nanos, Random};
use platform::{Quota, Topology};
use policy::random::Order;
use policy::{Class, Setting};
use serde::Deserialize;

use crate::machine::Machine;
use crate::quantity::length;

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimConfig {
    /// The seed that every random choice follows from.
    pub seed: u64,
    /// The machine.
    pub machine: Arc<Machine>,
    /// The kernel's policy, by its name in [`policy::CATALOGUE`].
    pub policy: String,
    /// The machine that programs are told they run on, if it is not the true one.
    pub shown: Option<Topology>,
    /// How many steps a run may take.
    pub steps_max: u64,
    /// The largest number of threads, the first one included; more calls of `spawn` fail.
    pub threads_max: usize,
    /// The disturbances that the run adds on purpose.
    pub perturb: Perturb,
    /// Changes of the machine from outside, each with its time.
    pub plan: Vec<(Nanos, Planned)>,
    /// The limit on the CPU time of a group of threads; see [`CpuQuota`].
    pub quota: Option<CpuQuota>,
    /// Whether programs say what their threads wait for ([`Sim::waits_for`](crate::Sim::waits_for)), to
    /// policies that listen ([`Class::listens`]) and to others.
    pub hints: bool,
    /// The time at which the run is stopped if it has not ended by then.
    pub until: Nanos,
    /// Whether the report keeps the kernel's events. It always has their hash.
    pub trace: bool,
    /// Whether the run is checked after each decision: work is conserved, no task starves, clocks are
    /// monotone, the policy keeps its promises. The first violation is in the report.
    pub checks: bool,
    /// With `checks`: the longest time that a task may wait for a CPU.
    pub starvation: Option<Nanos>,
}

/// A limit on the CPU time that a group of threads uses together in each period, enforced as Linux enforces
/// `cpu.max`: see `Documentation/scheduler/sched-bwc.rst`. The machine must have ticks, and the policy must
/// support quotas ([`policy::Class::has_quotas`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// The length of a period.
    pub period: Nanos,
    /// When the first one begins after the start: less than a period. Until then the group has a whole one's
    /// time.
    pub first: Nanos,
    /// The CPU time that the group may use in each period.
    pub runtime: Nanos,
    /// The names of the threads in the group. Threads that they start belong to it too. No names: all
    /// threads.
    pub threads: Vec<String>,
}

impl CpuQuota {
    /// Whether a thread of this name that is there when the run begins is in the group.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.threads.is_empty() || self.threads.iter().any(|thread| thread == name)
    }

    /// The quota in the form in which programs see it.
    pub(crate) fn as_told(&self) -> Option<Quota> {
        Quota::new(self.runtime.0 / 1000, self.period.0 / 1000)
    }
}

/// Disturbances, drawn from the seed: in a scenario's file the table `[perturb]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Perturb {
    /// One in `spurious_one_in` waits that would block, `park` and `spin_until`, returns early for no reason,
    /// as waits may; 0: none.
    pub spurious_one_in: u64,
    /// One in `delay_one_in` steps takes longer; 0: none.
    pub delay_one_in: u64,
    /// The largest delay of a step.
    #[serde(deserialize_with = "length")]
    pub delay_max: Nanos,
    /// The largest delay of a tick; zero: ticks are on time. Ticks of real machines can be late: interrupts
    /// are off for a while, or a hypervisor runs another guest.
    #[serde(deserialize_with = "length")]
    pub tick_late_max: Nanos,
    /// The mean time between two steals: the machine's host takes a CPU, drawn anew each time, away from the
    /// task on it; zero: never.
    #[serde(deserialize_with = "length")]
    pub stolen_every: Nanos,
    /// The longest time for which the host takes a CPU away.
    #[serde(deserialize_with = "length")]
    pub stolen_max: Nanos,
}

/// A change of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// The CPU takes no more tasks, and its tasks move to other CPUs: it went offline, or is paused.
    Offline(Cpu),
    /// The CPU takes tasks again.
    Online(Cpu),
    /// The host takes the CPU away from the task on it for this time. A CPU that idles, and a program that
    /// spins, lose nothing.
    Stolen(Cpu, Nanos),
    /// The frequency of this CPU's cluster may not exceed this number of kHz.
    Cap(Cpu, u32),
}

impl SimConfig {
    /// For finding errors in programs: one CPU, shown as two, on which only work takes time, and any order of
    /// steps ([`Order::Random`]). A million steps, 256 threads, no spurious returns.
    pub fn new(seed: u64) -> SimConfig {
        SimConfig {
            shown: Some(Topology::uniform(2)),
            ..SimConfig::on(Machine::ideal(1), "random", seed)
        }
    }

    /// A run on this machine under this policy. A hundred million steps, 4096 threads.
    pub fn on(machine: impl Into<Arc<Machine>>, policy: &str, seed: u64) -> SimConfig {
        let explores = policy::named(
            policy,
            Setting {
                cpus: 1,
                tick: Nanos::ZERO,
                seed,
            },
        )
        .is_some_and(|class| class.has_steps());
        SimConfig {
            seed,
            machine: machine.into(),
            policy: policy.into(),
            shown: None,
            steps_max: if explores { 1_000_000 } else { u64::MAX },
            threads_max: if explores { 256 } else { 4096 },
            perturb: Perturb::default(),
            plan: Vec::new(),
            quota: None,
            hints: false,
            until: Nanos::MAX,
            trace: false,
            checks: false,
            starvation: None,
        }
    }

    /// The same with another order of steps.
    pub fn with_order(self, order: Order) -> SimConfig {
        let policy = match order {
            Order::Random => "random".into(),
            Order::Pct { depth } => format!("pct-{depth}"),
        };
        SimConfig { policy, ..self }
    }

    /// The same, shown as a machine of `cpus` equal CPUs.
    pub fn with_cpus_shown(self, cpus: usize) -> SimConfig {
        SimConfig {
            shown: Some(Topology::uniform(cpus)),
            ..self
        }
    }

    /// The same, with a spurious return in every eighth wait.
    pub fn with_spurious(self, spurious: bool) -> SimConfig {
        SimConfig {
            perturb: Perturb {
                spurious_one_in: if spurious { 8 } else { 0 },
                ..self.perturb
            },
            ..self
        }
    }

    /// Whether the machine and the policy can enforce the quota, if there is one.
    ///
    /// # Errors
    /// The reason why not, in one line.
    ///
    /// # Panics
    /// If there is no policy of that name.
    pub fn is_quota_enforced(&self) -> Result<(), String> {
        match self.quota {
            None => Ok(()),
            Some(_) if !self.class().has_quotas() => Err(format!(
                "policy {} knows no quota of CPU time; use a fair one of Linux as --policy",
                self.policy
            )),
            Some(_) if self.machine.kernel.tick == Nanos::ZERO => Err(format!(
                "machine {} has no ticks, which notice that a quota is used up; use another --machine",
                self.machine.name
            )),
            Some(_) => Ok(()),
        }
    }

    /// Whether the policy listens to what programs say about their waits.
    ///
    /// # Panics
    /// If there is no policy of that name.
    pub fn is_listened_to(&self) -> bool {
        self.class().listens()
    }

    /// A new instance of the policy.
    ///
    /// # Panics
    /// If no policy has that name.
    pub(crate) fn class(&self) -> Box<dyn Class> {
        let setting = Setting {
            cpus: self.machine.cpus.len(),
            tick: self.machine.kernel.tick,
            seed: self.seed,
        };
        policy::named(&self.policy, setting)
            .unwrap_or_else(|| panic!("there is no policy called {:?}", self.policy))
    }
}

impl Default for SimConfig {
    fn default() -> SimConfig {
        SimConfig::new(0)
    }
}

impl fmt::Display for SimConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "machine {}, policy {}, seed {}",
            self.machine.name, self.policy, self.seed
        )?;
        if self.perturb != Perturb::default() {
            write!(f, ", {:?}", self.perturb)?;
        }
        Ok(())
    }
}

impl Perturb {
    /// The mistake in it, in one line, if there is one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let has = |time: Nanos| time > Nanos::ZERO;
        if (self.delay_one_in > 0) != has(self.delay_max) {
            return Err("perturb: `delay-one-in` and `delay-max` belong together".into());
        }
        if has(self.stolen_every) != has(self.stolen_max) {
            return Err("perturb: `stolen-every` and `stolen-max` belong together".into());
        }
        if has(self.stolen_every) && self.stolen_max > self.stolen_every {
            Err(format!(
                "perturb: more is stolen than there is: give a `stolen-max` up to {}",
                self.stolen_every
            ))
        } else {
            Ok(())
        }
    }

    /// Whether steps are delayed.
    pub(crate) fn is_on(&self) -> bool {
        self.delay_one_in > 0
    }

    pub(crate) fn delay(&self, random: &mut Random) -> Nanos {
        match random.below(self.delay_one_in) {
            0 => Nanos(random.below(self.delay_max.0 + 1)),
            _ => Nanos::ZERO,
        }
    }

    pub(crate) fn returns_spuriously(&self, random: &mut Random) -> bool {
        self.spurious_one_in > 0 && random.below(self.spurious_one_in) == 0
    }
}
