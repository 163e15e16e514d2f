//! A quota of CPU time in a scenario file.

use event::Nanos;
use platform::Quota;
use serde::Deserialize;

use super::file::{MAIN, Scenario};
use crate::CpuQuota;
use crate::quantity::length;

/// A limit on the CPU time of some of the threads together, or of all, as a number of CPUs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuotaPlan {
    /// The length of a period; 100 ms if not given, as on Linux.
    #[serde(default = "hundred_millis", deserialize_with = "length")]
    pub period: Nanos,
    /// When the first period begins, within one of the start; at the start if not given.
    #[serde(default, deserialize_with = "length")]
    pub first: Nanos,
    /// The time in a period, as a number of CPUs: 1.5 is the time of one and a half.
    pub cpus: f64,
    /// The threads in the group, by the names of their tables, and the threads that these start; "main" is
    /// the program's. No names: all threads.
    #[serde(default)]
    pub threads: Vec<String>,
}

fn hundred_millis() -> Nanos {
    Nanos::from_millis(100)
}

impl QuotaPlan {
    /// The CPU time in a period, to the microsecond, as on Linux.
    fn runtime(&self) -> Nanos {
        Nanos(((self.period.0 as f64 * self.cpus / 1000.0).round() as u64).saturating_mul(1000))
    }

    /// The mistake in it, in one line, if there is one.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let (runtime, period) = (self.runtime().0 / 1000, self.period.0 / 1000);
        if self.cpus > f64::from(u16::MAX) {
            return Err(format!(
                "quota: {} CPUs: no machine has that many; leave the quota out, or give at most {}",
                self.cpus,
                u16::MAX
            ));
        }
        if Quota::new(runtime, period).is_none() {
            return Err(format!(
                "quota: {} CPUs in {}: give a period of 1 ms to 1 s, and CPUs for at least 1 ms of it",
                self.cpus, self.period
            ));
        }
        if self.first >= self.period {
            return Err(format!(
                "quota: the first period begins at {}: give less than a period, {}",
                self.first, self.period
            ));
        }
        let is_known = |name: &&String| {
            let is_main = scenario.program.is_some() && *name == MAIN;
            is_main || scenario.threads.iter().any(|thread| thread.name == **name)
        };
        match self.threads.iter().find(|name| !is_known(name)) {
            Some(name) => Err(format!("quota: there is no thread {name:?}")),
            None => Ok(()),
        }
    }
}

impl Scenario {
    /// The quota in the simulator's terms.
    pub fn cpu_quota(&self) -> Option<CpuQuota> {
        let quota = self.quota.as_ref()?;
        let mut names: Vec<String> = Vec::new();
        for name in &quota.threads {
            let plans = self.threads.iter().filter(|thread| thread.name == *name);
            names.extend(plans.flat_map(|plan| (0..plan.count).map(|copy| plan.name_of(copy))));
            names.extend((name == MAIN).then(|| name.clone()));
        }
        Some(CpuQuota {
            period: quota.period,
            first: quota.first,
            runtime: quota.runtime(),
            threads: names,
        })
    }
}
