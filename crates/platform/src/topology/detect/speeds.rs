//! What each CPU says about how fast it is.
//!
//! Read are only values that do not change while a machine runs: not `scaling_max_freq` (some phones change
//! it every few seconds), no current frequency, no bogomips. And none that is known to mislead: package,
//! cluster and core numbers, `topology/core_type`.

use super::cpuinfo::{Core, CpuInfo};
use super::reader::{CPUS, Reader};
use crate::CpuSet;

/// One CPU's values, as far as they are known; never zero.
#[derive(Clone, Default, Debug)]
pub(super) struct Speed {
    pub(super) cpu: u32,
    pub(super) capacity: Option<u64>,
    pub(super) highest_perf: Option<u64>,
    pub(super) base_khz: Option<u64>,
    pub(super) max_khz: Option<u64>,
    pub(super) core: Option<Core>,
    pub(super) package: Option<u32>,
    /// CPUs that share its clock.
    pub(super) related: Option<CpuSet>,
}

/// The values of these CPUs.
pub(super) fn read(reader: &mut Reader<'_>, cpus: &CpuSet, info: &CpuInfo) -> Vec<Speed> {
    let policies = Policy::read_all(reader);
    let mut speeds = Vec::new();
    for cpu in cpus.iter() {
        let folder = format!("{CPUS}/cpu{cpu}");
        let mut policy = policies
            .iter()
            .find(|policy| policy.cpus.contains(cpu))
            .cloned();
        if policy.is_none() {
            policy = Policy::read(reader, &format!("{folder}/cpufreq"));
        }
        let policy = policy.unwrap_or_default();
        let register = reader.value(&format!("{folder}/regs/identification/midr_el1"));
        let package = reader.number(&format!("{folder}/topology/physical_package_id"));
        speeds.push(Speed {
            cpu,
            capacity: reader.value(&format!("{folder}/cpu_capacity")),
            highest_perf: reader.value(&format!("{folder}/acpi_cppc/highest_perf")),
            base_khz: policy.base_khz,
            max_khz: policy.max_khz,
            core: register
                .map(Core::from_register)
                .or(info.cores.get(&cpu).copied()),
            // 65535 is -1 in sixteen bits.
            package: package
                .and_then(|id| u32::try_from(id).ok())
                .filter(|&id| id != 65535 && id != u32::MAX),
            related: Some(policy.cpus).filter(|cpus| cpus.contains(cpu)),
        });
    }
    speeds
}

/// CPUs with one clock.
#[derive(Clone, Default)]
struct Policy {
    cpus: CpuSet,
    base_khz: Option<u64>,
    max_khz: Option<u64>,
}

impl Policy {
    fn read_all(reader: &mut Reader<'_>) -> Vec<Policy> {
        let folder = format!("{CPUS}/cpufreq");
        let numbers = reader.numbered(&folder, "policy");
        let read = |number| Policy::read(reader, &format!("{folder}/policy{number}"));
        numbers.into_iter().filter_map(read).collect()
    }

    /// None if there is no such folder.
    fn read(reader: &mut Reader<'_>, folder: &str) -> Option<Policy> {
        let cpus = reader.list(&format!("{folder}/related_cpus"));
        let highest = reader.value(&format!("{folder}/cpuinfo_max_freq"));
        let steps = || {
            let text = reader.text(&format!("{folder}/scaling_available_frequencies"))?;
            let steps = text.split_whitespace().filter_map(|step| step.parse().ok());
            steps.max().filter(|&khz: &u64| khz > 0)
        };
        let max_khz = highest.or_else(steps);
        (cpus.is_some() || max_khz.is_some()).then(|| Policy {
            cpus: cpus.unwrap_or_default(),
            base_khz: None,
            max_khz,
        })
    }
}

/// Base frequencies: only some of Intel's have one, and only some machines need it, so it is read when
/// asked for.
pub(super) fn read_base_frequencies(reader: &mut Reader<'_>, speeds: &mut [Speed]) {
    for speed in speeds {
        let path = format!("{CPUS}/cpu{}/cpufreq/base_frequency", speed.cpu);
        speed.base_khz = reader.value(&path);
    }
}
