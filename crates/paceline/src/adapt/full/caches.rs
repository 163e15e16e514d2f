//! Which CPUs share a last-level cache.

use platform::{Distance, Machine, Platform, Topology};

/// The CPU that stands for all CPUs that share a last-level cache with this one.
fn cache_of(topology: &Topology, cpu: u32) -> u32 {
    let mut cpus = topology.allowed().iter();
    let near = cpus.find(|&other| topology.distance(cpu, other) <= Distance::Cache);
    near.unwrap_or(cpu)
}

/// For each CPU, by its number: its last-level cache. Empty if there is only one.
pub(crate) fn caches<P: Platform>(platform: &P) -> Vec<u32> {
    let topology = platform.machine().topology();
    let cpus: Vec<u32> = topology.allowed().iter().collect();
    let mut caches = vec![0; cpus.iter().max().map_or(0, |&cpu| cpu as usize + 1)];
    for &cpu in &cpus {
        caches[cpu as usize] = cache_of(topology, cpu);
    }
    if cpus
        .iter()
        .any(|&cpu| caches[cpu as usize] != caches[cpus[0] as usize])
    {
        caches
    } else {
        Vec::new()
    }
}
