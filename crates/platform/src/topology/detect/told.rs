//! Machines whose system tells of each CPU in numbers of its own, instead of files: Windows and macOS.

use super::super::{Confidence, Limits, Topology, Witness, name_classes};
use crate::{CpuPlace, CpuSet};

/// What the CPUs share of which nothing is known.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A CPU, as the system tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToldCpu {
    /// Where it is; its last-level cache is [`UNKNOWN`] if the system does not tell it.
    pub(super) place: CpuPlace,
    /// How fast it is: a greater number is faster, and says nothing else.
    pub(super) rank: u32,
}

/// The machine that these CPUs are. `witness`: what the ranks are.
pub(super) fn machine(
    mut cpus: Vec<ToldCpu>,
    limits: Limits,
    witness: Witness,
    model: Option<String>,
) -> Topology {
    cpus.sort_by_key(|told| told.place.cpu);
    cpus.dedup_by_key(|told| told.place.cpu);
    let set = |is_in: &dyn Fn(&ToldCpu) -> bool| -> CpuSet {
        let inside = cpus.iter().filter(|told| is_in(told));
        inside.map(|told| told.place.cpu).collect()
    };
    let mut ranks: Vec<u32> = cpus.iter().map(|told| told.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let classes: Vec<_> = ranks
        .iter()
        .map(|&rank| (set(&|told| told.rank == rank), None))
        .collect();
    let all = set(&|_| true);
    Topology {
        usable: limits.usable(),
        effective_parallelism: limits.effective_parallelism(),
        limits,
        isolated: CpuSet::new(),
        witness: if classes.len() > 1 {
            witness
        } else {
            Witness::Nothing
        },
        classes: if classes.is_empty() {
            name_classes(vec![(all.clone(), None)])
        } else {
            name_classes(classes)
        },
        present: all,
        confidence: Confidence::High,
        caches_known: set(&|told| told.place.cache != UNKNOWN),
        places: cpus.iter().map(|told| told.place).collect(),
        notes: Vec::new(),
        model: model.unwrap_or_else(|| "unknown processor".into()),
    }
}
