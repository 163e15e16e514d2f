//! How fast each CPU is at this moment, and how long it takes to wake up.
//!
//! A CPU's speed is its capacity, times its frequency over the highest one, times what is left of it
//! when the other hardware thread of its core is busy. Frequencies belong to clusters.

use std::collections::VecDeque;

use event::{Cpu, Nanos};

use crate::kernel::FULL;
use crate::machine::{Governor, Machine};

/// The speeds of a run.
#[derive(Debug)]
pub(crate) struct Speeds {
    cpus: Vec<CpuSpeed>,
    clusters: Vec<ClusterSpeed>,
    changed: VecDeque<Cpu>,
    frequencies: VecDeque<(Cpu, u32)>,
}

#[derive(Debug)]
struct CpuSpeed {
    cluster: usize,
    /// The other hardware threads of its core.
    siblings: Vec<Cpu>,
    busy: bool,
    speed: u32,
    exits: Vec<(Nanos, Nanos)>,
}

#[derive(Debug)]
struct ClusterSpeed {
    cpus: Vec<Cpu>,
    capacity: u32,
    smt_share: u32,
    khz: Vec<u32>,
    point: usize,
    cap: u32,
    governor: Governor,
}

impl Speeds {
    pub(crate) fn new(machine: &Machine) -> Speeds {
        let all = || (0..machine.cpus.len() as u32).map(Cpu);
        let cpu = |cpu: Cpu| {
            let spec = machine.cpus[cpu.index()];
            let is_sibling =
                |other: &Cpu| *other != cpu && machine.cpus[other.index()].core == spec.core;
            let states = &machine.cluster(cpu).idle_states;
            CpuSpeed {
                cluster: spec.cluster as usize,
                siblings: all().filter(is_sibling).collect(),
                busy: false,
                speed: FULL,
                exits: states
                    .iter()
                    .map(|state| (state.residency, state.exit))
                    .collect(),
            }
        };
        let cluster = |(number, cluster): (usize, &crate::machine::Cluster)| {
            let is_here = |cpu: &Cpu| machine.cpus[cpu.index()].cluster as usize == number;
            ClusterSpeed {
                cpus: all().filter(is_here).collect(),
                capacity: cluster.capacity,
                smt_share: cluster.smt_share,
                khz: cluster.points.iter().map(|point| point.khz).collect(),
                point: match cluster.governor {
                    Governor::Fixed { point } => point as usize,
                    Governor::Schedutil { .. } => 0,
                },
                cap: u32::MAX,
                governor: cluster.governor,
            }
        };
        let mut speeds = Speeds {
            cpus: all().map(cpu).collect(),
            clusters: machine.clusters.iter().enumerate().map(cluster).collect(),
            changed: VecDeque::new(),
            frequencies: VecDeque::new(),
        };
        all().for_each(|cpu| speeds.recompute(cpu));
        speeds.changed.clear();
        speeds
    }

    pub(crate) fn speed(&self, cpu: Cpu) -> u32 {
        self.cpus[cpu.index()].speed
    }

    /// How long the CPU takes to wake up after so much idling.
    pub(crate) fn exit_latency(&self, cpu: Cpu, idle: Nanos) -> Nanos {
        let reached = |(residency, _): &&(Nanos, Nanos)| *residency <= idle;
        let deepest = self.cpus[cpu.index()].exits.iter().rfind(reached);
        deepest.map_or(Nanos::ZERO, |(_, exit)| *exit)
    }

    /// The CPU went from idle to busy, or back.
    pub(crate) fn set_busy(&mut self, cpu: Cpu, busy: bool, now: Nanos) {
        let _ = now;
        self.cpus[cpu.index()].busy = busy;
        for sibling in self.cpus[cpu.index()].siblings.clone() {
            self.recompute(sibling);
        }
        self.recompute(cpu);
    }

    /// A tick of a busy CPU.
    pub(crate) fn tick(&mut self, cpu: Cpu, now: Nanos) {
        let _ = (cpu, now);
    }

    /// The cluster of this CPU may not run faster than this.
    pub(crate) fn cap(&mut self, cpu: Cpu, khz: u32, now: Nanos) {
        let _ = now;
        let number = self.cpus[cpu.index()].cluster;
        let cluster = &mut self.clusters[number];
        cluster.cap = khz;
        if let Governor::Fixed { point } = cluster.governor {
            let allowed = cluster.khz.iter().rposition(|&point| point <= khz);
            cluster.point = (point as usize).min(allowed.unwrap_or(0));
        }
        self.frequencies
            .push_back((cpu, cluster.khz[cluster.point]));
        for cpu in self.clusters[number].cpus.clone() {
            self.recompute(cpu);
        }
    }

    fn recompute(&mut self, cpu: Cpu) {
        let this = &self.cpus[cpu.index()];
        let cluster = &self.clusters[this.cluster];
        let top = *cluster
            .khz
            .last()
            .expect("a cluster has an operating point");
        let full = u64::from(FULL) * u64::from(cluster.capacity) / 1024;
        let mut speed = full * u64::from(cluster.khz[cluster.point]) / u64::from(top.max(1));
        if this
            .siblings
            .iter()
            .any(|other| self.cpus[other.index()].busy)
        {
            speed = speed * u64::from(cluster.smt_share) / 1024;
        }
        let speed = (speed as u32).max(1);
        if speed != self.cpus[cpu.index()].speed {
            self.cpus[cpu.index()].speed = speed;
            self.changed.push_back(cpu);
        }
    }

    /// A CPU whose speed has changed since it was last named here.
    pub(crate) fn take_changed(&mut self) -> Option<(Cpu, u32)> {
        let cpu = self.changed.pop_front()?;
        Some((cpu, self.speed(cpu)))
    }

    /// A cluster's first CPU and its new frequency.
    pub(crate) fn take_frequency(&mut self) -> Option<(Cpu, u32)> {
        self.frequencies.pop_front()
    }
}
