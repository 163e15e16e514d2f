//! Changes of the machine.

use crate::program::Program;

/// The machine has this many CPUs: the last ones go, or there are more like the last one. Threads that could
/// only use CPUs that go may use all.
pub(super) fn set_cpus(program: &mut Program, count: usize) {
    let cpus = &mut program.machine.cpus;
    cpus.truncate(count);
    while let Some(last) = cpus.last().copied().filter(|_| cpus.len() < count) {
        let mut next = last;
        let number = cpus.len() as u32;
        (next.core, next.module) = (number, number);
        cpus.push(next);
    }
    for thread in &mut program.threads {
        thread.cpus.retain(|&cpu| (cpu as usize) < count);
    }
}

/// CPUs have this capacity.
pub(super) fn set_capacity(
    program: &mut Program,
    cpus: &[u32],
    capacity: u32,
) -> Result<(), String> {
    let machine = &mut program.machine;
    for &cpu in cpus {
        let Some(spec) = machine.cpus.get_mut(cpu as usize) else {
            let last = program.machine.cpus.len() - 1;
            return Err(format!(
                "capacity: there is no CPU {cpu}; there are 0 to {last}"
            ));
        };
        let mut cluster = machine.clusters[spec.cluster as usize].clone();
        if cluster.capacity == capacity {
            continue;
        }
        cluster.capacity = capacity;
        cluster.name = format!("capacity-{capacity}");
        let is_same = |other: &sim::machine::Cluster| *other == cluster;
        let at = machine.clusters.iter().position(is_same);
        spec.cluster = at.unwrap_or(machine.clusters.len()) as u32;
        if at.is_none() {
            machine.clusters.push(cluster);
        }
    }
    Ok(())
}
