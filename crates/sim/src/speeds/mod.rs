//! The speed of each CPU, the time it takes to wake up, and the energy that this costs.
//!
//! A CPU's speed is its capacity, times its frequency over the highest one, times the share that is left to
//! it while other hardware threads of its core are busy. Frequencies belong to clusters: a governor asks for
//! an operating point; a cap from outside and the temperature limit how high it may be.
//!
//! Governors and temperatures are looked at when a CPU goes idle or busy and at ticks, never in between: as
//! in a kernel, a CPU without events does nothing.
//!
//! Energy is power times time: that of its operating point for each core that computes, that of its idle
//! state for each that does not. A core with two busy threads uses as much as one with one. Caches, memory
//! and buses are left out.
//!
//! Invariants
//! - Integers only: equal calls give equal answers on every machine.
//! - `now` never goes back from one call to the next.
//! - A change of a cluster's power first settles its energy up to that moment.

mod decay;
mod heat;
mod idle;
mod pelt;
mod schedutil;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use event::{Cpu, Nanos};

use crate::machine::{Governor, Machine, OperatingPoint};
use crate::quantity::FULL;
use crate::report::ClusterUse;
use heat::Heat;
use idle::Ladder;
use pelt::Pelt;

/// Femtojoules, microwatts times nanoseconds, in a microjoule.
const FEMTO_PER_MICRO: u128 = 1_000_000_000;

/// The speeds of a run.
#[derive(Debug)]
pub(crate) struct Speeds {
    cpus: Vec<CpuState>,
    cores: Vec<CoreState>,
    clusters: Vec<ClusterState>,
    changed: VecDeque<Cpu>,
    frequencies: VecDeque<(Cpu, u32)>,
}

#[derive(Debug)]
struct CpuState {
    cluster: usize,
    core: usize,
    busy: bool,
    speed: u32,
    pelt: Pelt,
}

#[derive(Debug)]
struct CoreState {
    threads: Vec<Cpu>,
    cluster: usize,
    busy: usize,
    /// The time up to which its energy has been counted.
    settled: Nanos,
    idle_since: Nanos,
}

#[derive(Debug)]
struct ClusterState {
    name: String,
    cpus: Vec<Cpu>,
    cores: Vec<usize>,
    capacity: u32,
    smt_percent: Vec<u32>,
    points: Vec<OperatingPoint>,
    khz: Vec<u32>,
    governor: Governor,
    /// The operating point that the governor asks for, since when, and the point that the cluster runs at.
    wanted: usize,
    wanted_since: Option<Nanos>,
    point: usize,
    /// The highest point that the cap from outside allows.
    cap: usize,
    ladder: Ladder,
    heat: Option<Heat>,
    femtojoules: u128,
    busy: Vec<Nanos>,
    idle: Nanos,
}

impl Speeds {
    /// All CPUs have just begun to idle.
    pub(crate) fn new(machine: &Machine) -> Speeds {
        let all = || (0..machine.cpus.len() as u32).map(Cpu);
        let mut speeds = Speeds {
            cpus: Vec::new(),
            cores: Vec::new(),
            clusters: Vec::new(),
            changed: VecDeque::new(),
            frequencies: VecDeque::new(),
        };
        for cluster in &machine.clusters {
            speeds.clusters.push(ClusterState::new(cluster));
        }
        let mut numbers = Vec::new();
        for cpu in all() {
            let spec = machine.cpus[cpu.index()];
            let cluster = spec.cluster as usize;
            let known = numbers.iter().position(|&number| number == spec.core);
            let core = known.unwrap_or(numbers.len());
            if known.is_none() {
                numbers.push(spec.core);
                speeds.cores.push(CoreState::new(cluster));
                speeds.clusters[cluster].cores.push(core);
            }
            speeds.cores[core].threads.push(cpu);
            speeds.clusters[cluster].cpus.push(cpu);
            speeds.cpus.push(CpuState {
                cluster,
                core,
                busy: false,
                speed: FULL,
                pelt: Pelt::default(),
            });
        }
        for cpu in all() {
            speeds.recompute(cpu);
        }
        speeds.changed.clear();
        speeds
    }

    /// The speed of the CPU, as a fraction of [`FULL`]; at least 1.
    pub(crate) fn speed(&self, cpu: Cpu) -> u32 {
        self.cpus[cpu.index()].speed
    }

    /// The time the CPU takes to wake up after idling for `idle`.
    pub(crate) fn exit_latency(&self, cpu: Cpu, idle: Nanos) -> Nanos {
        let cluster = self.cpus[cpu.index()].cluster;
        self.clusters[cluster].ladder.exit_latency(idle)
    }

    /// The CPU went from idle to busy, or back.
    pub(crate) fn set_busy(&mut self, cpu: Cpu, busy: bool, now: Nanos) {
        let CpuState { cluster, core, .. } = self.cpus[cpu.index()];
        if self.cpus[cpu.index()].busy == busy {
            return;
        }
        self.settle_core(core, now);
        self.track(cpu, now);
        if let (Governor::Schedutil { half_life, .. }, false) =
            (self.clusters[cluster].governor, busy)
        {
            self.cpus[cpu.index()].pelt.rest(half_life);
        }
        self.cpus[cpu.index()].busy = busy;
        let state = &mut self.cores[core];
        if busy {
            state.busy += 1;
        } else {
            state.busy -= 1;
        }
        if state.busy == 0 {
            state.idle_since = now;
        }
        for thread in 0..self.cores[core].threads.len() {
            self.recompute(self.cores[core].threads[thread]);
        }
        self.govern(cluster, now);
    }

    /// A tick of a busy CPU.
    pub(crate) fn tick(&mut self, cpu: Cpu, now: Nanos) {
        self.govern(self.cpus[cpu.index()].cluster, now);
    }

    /// The cluster of this CPU may not run faster than `khz` from now on. Its slowest point is always
    /// allowed.
    pub(crate) fn cap(&mut self, cpu: Cpu, khz: u32, now: Nanos) {
        let number = self.cpus[cpu.index()].cluster;
        let cluster = &mut self.clusters[number];
        cluster.cap = cluster
            .khz
            .iter()
            .rposition(|&point| point <= khz)
            .unwrap_or(0);
        self.govern(number, now);
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

    /// The use of each cluster up to now, in the order of the machine.
    pub(crate) fn usage(&mut self, now: Nanos) -> Vec<ClusterUse> {
        for number in 0..self.clusters.len() {
            self.settle(number, now);
            let cluster = &mut self.clusters[number];
            if let Some(heat) = &mut cluster.heat {
                heat.follow(now, cluster.femtojoules);
            }
        }
        let clusters = self.clusters.iter();
        clusters.map(ClusterState::usage).collect()
    }

    /// Asks the governor and the thermometer, and changes to another point if they say so.
    fn govern(&mut self, number: usize, now: Nanos) {
        if self.clusters[number]
            .heat
            .as_ref()
            .is_some_and(|heat| heat.is_due(now))
        {
            self.settle(number, now);
            let cluster = &mut self.clusters[number];
            if let Some(heat) = &mut cluster.heat {
                heat.look(now, cluster.femtojoules);
            }
        }
        self.ask_governor(number, now);
        let cluster = &self.clusters[number];
        let cool = cluster.heat.as_ref().map_or(usize::MAX, Heat::allowed);
        let point = cluster.wanted.min(cluster.cap).min(cool);
        if point == cluster.point {
            return;
        }
        self.settle(number, now);
        let cpus = self.clusters[number].cpus.len();
        for index in 0..cpus {
            self.track(self.clusters[number].cpus[index], now);
        }
        self.clusters[number].point = point;
        for index in 0..cpus {
            self.recompute(self.clusters[number].cpus[index]);
        }
        let cluster = &self.clusters[number];
        if let Some(first) = cluster.cpus.first() {
            self.frequencies.push_back((*first, cluster.khz[point]));
        }
    }

    /// Lets schedutil choose, if it has not just done so.
    fn ask_governor(&mut self, number: usize, now: Nanos) {
        let cluster = &self.clusters[number];
        let Governor::Schedutil { rate_limit, .. } = cluster.governor else {
            return;
        };
        if cluster
            .wanted_since
            .is_some_and(|since| now - since < rate_limit)
        {
            return;
        }
        let mut utilization = 0;
        for index in 0..self.clusters[number].cpus.len() {
            let cpu = self.clusters[number].cpus[index];
            self.track(cpu, now);
            utilization = utilization.max(self.cpus[cpu.index()].pelt.utilization());
        }
        let cluster = &mut self.clusters[number];
        let wanted = schedutil::point_for(utilization, cluster.capacity, &cluster.khz);
        if wanted != cluster.wanted {
            cluster.wanted = wanted;
            cluster.wanted_since = Some(now);
        }
    }

    /// Follows the utilization of a CPU up to now, if the governor uses it.
    fn track(&mut self, cpu: Cpu, now: Nanos) {
        let state = &mut self.cpus[cpu.index()];
        let cluster = &self.clusters[state.cluster];
        if let Governor::Schedutil { half_life, .. } = cluster.governor {
            let speed = state.busy.then(|| cluster.speed_alone());
            state.pelt.advance(now, speed, half_life);
        }
    }

    /// Counts the energy of a cluster up to now.
    fn settle(&mut self, number: usize, now: Nanos) {
        for index in 0..self.clusters[number].cores.len() {
            self.settle_core(self.clusters[number].cores[index], now);
        }
    }

    fn settle_core(&mut self, number: usize, now: Nanos) {
        let core = &mut self.cores[number];
        let cluster = &mut self.clusters[core.cluster];
        let passed = now - core.settled;
        if core.busy > 0 {
            let power = cluster.points[cluster.point].microwatts;
            cluster.femtojoules += u128::from(power) * u128::from(passed.0);
            cluster.busy[cluster.point] += passed;
        } else {
            let (from, to) = (core.settled - core.idle_since, now - core.idle_since);
            cluster.femtojoules += cluster.ladder.femtojoules(from, to);
            cluster.idle += passed;
        }
        core.settled = now;
    }

    fn recompute(&mut self, cpu: Cpu) {
        let state = &self.cpus[cpu.index()];
        let cluster = &self.clusters[state.cluster];
        let others = self.cores[state.core].busy - usize::from(state.busy);
        let mut speed = u64::from(cluster.speed_alone());
        if others > 0
            && let Some(last) = cluster.smt_percent.last()
        {
            let percent = cluster.smt_percent.get(others - 1).unwrap_or(last);
            speed = speed * u64::from(*percent) / 100;
        }
        let speed = (speed as u32).max(1);
        if speed != state.speed {
            self.cpus[cpu.index()].speed = speed;
            self.changed.push_back(cpu);
        }
    }
}

impl CoreState {
    fn new(cluster: usize) -> CoreState {
        CoreState {
            threads: Vec::new(),
            cluster,
            busy: 0,
            settled: Nanos::ZERO,
            idle_since: Nanos::ZERO,
        }
    }
}

impl ClusterState {
    fn new(cluster: &crate::machine::Cluster) -> ClusterState {
        let highest = cluster.points.len() - 1;
        let first = match cluster.governor {
            Governor::Fixed { point } => point as usize,
            Governor::Schedutil { .. } => 0,
        };
        ClusterState {
            name: cluster.name.clone(),
            cpus: Vec::new(),
            cores: Vec::new(),
            capacity: cluster.capacity,
            smt_percent: cluster.smt_percent.clone(),
            khz: cluster.points.iter().map(|point| point.khz).collect(),
            governor: cluster.governor,
            wanted: first,
            wanted_since: None,
            point: first,
            cap: highest,
            ladder: Ladder::new(&cluster.idle_states),
            heat: cluster
                .thermal
                .map(|spec| Heat::new(spec, cluster.points.len())),
            femtojoules: 0,
            busy: vec![Nanos::ZERO; cluster.points.len()],
            idle: Nanos::ZERO,
            points: cluster.points.clone(),
        }
    }

    /// The speed of a CPU of this cluster whose core does nothing else.
    fn speed_alone(&self) -> u32 {
        let full = u64::from(FULL) * u64::from(self.capacity) / 1024;
        let top = self.khz.last().copied().unwrap_or(1).max(1);
        (full * u64::from(self.khz[self.point]) / u64::from(top)) as u32
    }

    fn usage(&self) -> ClusterUse {
        let microjoules = self.femtojoules / FEMTO_PER_MICRO;
        ClusterUse {
            name: self.name.clone(),
            microjoules: microjoules.min(u128::from(u64::MAX)) as u64,
            busy: self
                .khz
                .iter()
                .copied()
                .zip(self.busy.iter().copied())
                .collect(),
            idle: self.idle,
            hottest_millidegrees: self.heat.as_ref().map(Heat::hottest_millidegrees),
        }
    }
}
