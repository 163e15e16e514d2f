//! What to run under.

use std::fmt;
use std::sync::Arc;

use event::{Cpu, Nanos, Random};
use platform::{Quota, Topology};
use policy::random::Order;
use policy::{Class, Setting};
use serde::Deserialize;

use crate::machine::Machine;
use crate::quantity::length;

/// What to run under.
#[derive(Clone, Debug, PartialEq)]
pub struct SimConfig {
    /// Everything that is random follows from it.
    pub seed: u64,
    /// The machine.
    pub machine: Arc<Machine>,
    /// The kernel's policy, by its name in [`policy::CATALOGUE`].
    pub policy: String,
    /// What programs are told about the machine, if not the truth.
    pub shown: Option<Topology>,
    /// How many steps a run may take.
    pub steps_max: u64,
    /// How many threads a run may start, the first one included; `spawn` fails beyond.
    pub threads_max: usize,
    /// What is disturbed on purpose.
    pub perturb: Perturb,
    /// What happens to the machine from outside, and when.
    pub plan: Vec<(Nanos, Planned)>,
    /// How much CPU time a group of threads may use; see [`CpuQuota`].
    pub quota: Option<CpuQuota>,
    /// When the run is over, if it has not ended by then.
    pub until: Nanos,
    /// Whether the kernel's events are kept. Their hash always is.
    pub trace: bool,
    /// Whether it is checked after each decision that what must hold does hold: work is conserved, nobody
    /// starves, clocks are monotone, the policy keeps its promises. The first violation is in the report.
    pub checks: bool,
    /// With `checks`: how long a task may wait for a CPU.
    pub starvation: Option<Nanos>,
}

/// So much CPU time in each period for a group of threads together, enforced as Linux enforces `cpu.max`: see
/// `Documentation/scheduler/sched-bwc.rst`. The machine must have ticks, and the policy must be one that
/// rations ([`policy::Class::has_quotas`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// How long a period is.
    pub period: Nanos,
    /// How much CPU time there is in each.
    pub runtime: Nanos,
    /// The names of the threads that share it, and with them all that they start; none: all threads.
    pub threads: Vec<String>,
}

impl CpuQuota {
    /// Whether a thread of this name that is there when the run begins is in the group.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.threads.is_empty() || self.threads.iter().any(|thread| thread == name)
    }

    /// As programs are told of it.
    pub(crate) fn as_told(&self) -> Option<Quota> {
        Quota::new(self.runtime.0 / 1000, self.period.0 / 1000)
    }
}

/// Disturbances, drawn from the seed: in a scenario's file the table `[perturb]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Perturb {
    /// Once in so many waits that would block, `park` and `spin_until` return early for no reason, as
    /// they may; 0: never.
    pub spurious_one_in: u64,
    /// Once in so many steps, a step takes longer; 0: never.
    pub delay_one_in: u64,
    /// By how much at most.
    #[serde(deserialize_with = "length")]
    pub delay_max: Nanos,
    /// By how much a tick may be late; zero: never. On real machines some are: interrupts are off for a
    /// while, and a hypervisor has other guests.
    #[serde(deserialize_with = "length")]
    pub tick_late_max: Nanos,
    /// How long it takes on the average until the machine's host takes a CPU away from whoever works on it,
    /// each time another one that is drawn as well; zero: never.
    #[serde(deserialize_with = "length")]
    pub stolen_every: Nanos,
    /// For how long at most.
    #[serde(deserialize_with = "length")]
    pub stolen_max: Nanos,
}

/// A change of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// The CPU takes no tasks any more, and those it has go elsewhere: it went offline, or is paused.
    Offline(Cpu),
    /// The CPU takes tasks again.
    Online(Cpu),
    /// The host takes the CPU away for so long from whoever works on it. A CPU that idles, and a program that
    /// spins, have nothing to lose.
    Stolen(Cpu, Nanos),
    /// The cluster of this CPU may not run faster than so many kHz.
    Cap(Cpu, u32),
}

impl SimConfig {
    /// For finding errors in programs: one CPU on which nothing but work takes time, shown as two, and any
    /// order of steps ([`Order::Random`]). A million steps, 256 threads, no spurious returns.
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

    /// The same, shown as a machine of so many equal CPUs.
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

    /// Whether the machine and the policy can do what the quota asks for, if there is one.
    ///
    /// # Errors
    /// What is missing, in a line.
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
                "machine {} has no ticks, so nobody would see that a quota is used up; use another --machine",
                self.machine.name
            )),
            Some(_) => Ok(()),
        }
    }

    /// A new instance of the policy.
    ///
    /// # Panics
    /// If there is none of that name.
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
    /// What is wrong with it, in a line.
    pub(crate) fn check(&self) -> Result<(), String> {
        let has = |time: Nanos| time > Nanos::ZERO;
        if (self.delay_one_in > 0) != has(self.delay_max) {
            return Err("perturb: `delay-one-in` and `delay-max` belong together".into());
        }
        if has(self.stolen_every) != has(self.stolen_max) {
            return Err("perturb: `stolen-every` and `stolen-max` belong together".into());
        }
        match has(self.stolen_every) && self.stolen_max > self.stolen_every {
            true => Err(format!(
                "perturb: more is stolen than there is: give a `stolen-max` up to {}",
                self.stolen_every
            )),
            false => Ok(()),
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
