//! Threads and machines for tests.

use event::{Nanos, Task};
use policy::Attr;
use replay::ProgramThread;
use sim::Machine;
use sim::scenario::Segment;

/// A thread that may use all CPUs and does nothing.
pub(super) fn thread(name: &str) -> ProgramThread {
    ProgramThread {
        name: name.to_owned(),
        task: Task(0),
        recorded_name: name.to_owned(),
        tid: None,
        process: (None, None),
        attr: Attr::nice(0),
        cpus: Vec::new(),
        first_cpu: 0,
        segments: vec![Segment::Rest],
        waits: Vec::new(),
        put_aside: Vec::new(),
        ran: Nanos::ZERO,
    }
}

/// A machine with CPUs of these capacities.
pub(super) fn machine(capacities: &[u32]) -> Machine {
    let mut machine = Machine::ideal(capacities.len());
    let kind = machine.clusters[0].clone();
    machine.clusters.clear();
    for (cpu, &capacity) in capacities.iter().enumerate() {
        machine.cpus[cpu].cluster = cpu as u32;
        let mut cluster = kind.clone();
        cluster.capacity = capacity;
        machine.clusters.push(cluster);
    }
    machine
}
