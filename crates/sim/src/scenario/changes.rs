//! Changes of the machine in a scenario file.

use event::{Cpu, Nanos};
use serde::Deserialize;

use super::file::Scenario;
use super::span;
use crate::Planned;
use crate::quantity::length;

/// A change of the machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Change {
    /// Its time.
    #[serde(deserialize_with = "length")]
    pub at: Nanos,
    /// These CPUs take no more tasks.
    #[serde(default)]
    pub offline: Vec<u32>,
    /// These CPUs take tasks again.
    #[serde(default)]
    pub online: Vec<u32>,
    /// The clusters of these CPUs …
    #[serde(default)]
    pub cap: Vec<u32>,
    /// … may not run faster than this.
    #[serde(default)]
    pub mhz: Option<u32>,
    /// The machine's host takes these CPUs away from the tasks on them …
    #[serde(default)]
    pub stolen: Vec<u32>,
    /// … for this time.
    #[serde(default, rename = "for", deserialize_with = "span::maybe")]
    pub away: Option<Nanos>,
}

impl Change {
    /// The mistake in it, in one line, if there is one.
    pub(super) fn check(&self) -> Result<(), String> {
        let pairs = [
            (self.cap.is_empty(), self.mhz.is_none(), "`cap` and `mhz`"),
            (
                self.stolen.is_empty(),
                self.away.is_none(),
                "`stolen` and `for`",
            ),
        ];
        match pairs.iter().find(|(one, other, _)| one != other) {
            Some((_, _, what)) => Err(format!("change at {}: {what} belong together", self.at)),
            None => Ok(()),
        }
    }

    /// The change in the simulator's terms.
    fn planned(&self) -> Vec<Planned> {
        let of = |cpus: &[u32], what: &dyn Fn(Cpu) -> Planned| -> Vec<Planned> {
            cpus.iter().map(|&cpu| what(Cpu(cpu))).collect()
        };
        let khz = self.mhz.unwrap_or(0).saturating_mul(1000);
        let away = self.away.unwrap_or_default();
        [
            of(&self.offline, &Planned::Offline),
            of(&self.online, &Planned::Online),
            of(&self.cap, &|cpu| Planned::Cap(cpu, khz)),
            of(&self.stolen, &|cpu| Planned::Stolen(cpu, away)),
        ]
        .concat()
    }

    fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let all = [&self.offline, &self.online, &self.cap, &self.stolen];
        all.into_iter().flatten().copied()
    }
}

impl Scenario {
    /// The changes of the machine in the simulator's terms.
    pub fn plan(&self) -> Vec<(Nanos, Planned)> {
        let of = |change: &Change| {
            let at = change.at;
            change.planned().into_iter().map(move |what| (at, what))
        };
        self.changes.iter().flat_map(of).collect()
    }

    /// The highest CPU that it names.
    pub fn highest_cpu(&self) -> Option<u32> {
        let threads = self.threads.iter().flat_map(|thread| &thread.cpus).copied();
        threads
            .chain(self.changes.iter().flat_map(Change::cpus))
            .max()
    }

    /// The time at which its changes would take the last of `cpus` CPUs offline. The simulator, as Linux,
    /// does not do that.
    pub fn leaves_no_cpu(&self, cpus: usize) -> Option<Nanos> {
        let mut plan = self.plan();
        plan.sort_by_key(|(at, _)| *at);
        let mut online = vec![true; cpus];
        for (at, what) in plan {
            match what {
                Planned::Offline(cpu) => online[cpu.index()] = false,
                Planned::Online(cpu) => online[cpu.index()] = true,
                Planned::Stolen(..) | Planned::Cap(..) => {}
            }
            if !online.contains(&true) {
                return Some(at);
            }
        }
        None
    }
}
