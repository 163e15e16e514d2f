//! The work in a stretch of time in which a thread ran: its length, times the CPU's speed, less what a known
//! kernel took from it.
//!
//! Of most recordings nothing is known of the kernel's costs, and they count as work. A simulated kernel
//! takes a switch's time, and that of continuing on another CPU, before the task goes on, and each tick's
//! time from the task that it interrupts. What is left of these when a task loses its CPU again is paid when
//! it has one.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};
use sim::Machine;
use trace::timeline::{State, Stay, Timeline, Who};

/// The unit of capacities: the fastest CPU has it.
const FASTEST: u32 = 1024;

/// The costs of a kernel, and the speeds of CPUs.
pub(super) struct Costs {
    switch: Nanos,
    migrate: Nanos,
    tick: Nanos,
    tick_cost: Nanos,
    /// By CPU: its capacity, and the most there is.
    speeds: BTreeMap<Cpu, (u32, u32)>,
    /// Ends of runs at ticks, after which the tick came to the next task: by CPU.
    late_ticks: Vec<(Cpu, Nanos)>,
}

impl Costs {
    /// Those of a known machine, else none but the speeds.
    pub(super) fn new(timeline: &Timeline, machine: Option<&Machine>) -> Costs {
        let capacities = timeline.cpus().into_iter();
        let capacities: BTreeMap<Cpu, u32> = capacities
            .map(|cpu| (cpu, timeline.capacity(cpu).unwrap_or(FASTEST).max(1)))
            .collect();
        let most = capacities.values().copied().max().unwrap_or(FASTEST);
        let speeds = capacities.into_iter();
        let mut costs = Costs {
            switch: Nanos::ZERO,
            migrate: Nanos::ZERO,
            tick: Nanos::ZERO,
            tick_cost: Nanos::ZERO,
            speeds: speeds
                .map(|(cpu, capacity)| (cpu, (capacity, most)))
                .collect(),
            late_ticks: Vec::new(),
        };
        if let Some(machine) = machine {
            let kernel = &machine.kernel;
            (costs.switch, costs.migrate) = (kernel.switch, kernel.migrate);
            (costs.tick, costs.tick_cost) = (kernel.tick, kernel.tick_cost);
            costs.find_late_ticks(timeline);
        }
        costs
    }

    /// A task that falls asleep at the very time of a tick does so first, and the tick takes its time from
    /// the task that comes next.
    fn find_late_ticks(&mut self, timeline: &Timeline) {
        if self.tick == Nanos::ZERO {
            return;
        }
        for cpu in timeline.cpus() {
            for (_, end, who) in timeline.runs(cpu) {
                let Who::Task(task) = who else { continue };
                if end.0 % self.tick.0 != 0 {
                    continue;
                }
                let mut after = timeline.stays_within(task, end, end + Nanos(1));
                if after.any(|stay| stay.begin == end && stay.state.is_asleep()) {
                    self.late_ticks.push((cpu, end));
                }
            }
        }
        self.late_ticks.sort_unstable();
    }

    /// The ticks that took time in a stretch, its ends as they are given: how many, and when the last one
    /// came.
    fn ticks(
        &self,
        cpu: Cpu,
        (begin, end): (Nanos, Nanos),
        stay: Stay,
        is_preempted: bool,
    ) -> (u64, Nanos) {
        if self.tick == Nanos::ZERO {
            return (0, begin);
        }
        let length = self.tick.0;
        // One at the end counts if the task lost its CPU by it.
        let counts_end = end == stay.end && is_preempted;
        let last = if counts_end {
            end.0 / length
        } else {
            end.0.saturating_sub(1) / length
        };
        let mut count = last.saturating_sub(begin.0 / length);
        if begin == stay.begin && self.late_ticks.binary_search(&(cpu, begin)).is_ok() {
            count += 1;
        }
        // One at a point inside comes before what the task does there, or after it: then it is the next
        // part's.
        if begin > stay.begin && begin.0 % length == 0 && begin < end {
            count += 1;
        }
        (count, Nanos(last * length).max(begin))
    }
}

/// A thread's runs, one after the other.
#[derive(Default)]
pub(super) struct Run {
    cpu: Option<Cpu>,
    stay: Option<(Stay, bool)>,
    /// What the kernel still has to take from the thread.
    owed: Nanos,
}

impl Run {
    /// The thread gets a CPU.
    pub(super) fn begin(
        &mut self,
        costs: &Costs,
        (_, cpu): (Task, Cpu),
        stay: Stay,
        is_preempted: bool,
    ) {
        let moved = self.cpu.is_some_and(|before| before != cpu);
        let moving = if moved { costs.migrate } else { Nanos::ZERO };
        self.owed += costs.switch + moving;
        self.cpu = Some(cpu);
        self.stay = Some((stay, is_preempted));
        debug_assert_eq!(stay.state, State::Running(cpu));
    }

    /// A part of its time that is no work of its own.
    pub(super) fn skip(&mut self, from: Nanos, to: Nanos) {
        self.pay(to - from);
    }

    /// The kernel takes what it is owed from a stretch of time: how much that is.
    fn pay(&mut self, passed: Nanos) -> Nanos {
        let taken = self.owed.min(passed);
        self.owed = self.owed - taken;
        taken
    }

    /// The work in a part of its time.
    pub(super) fn work(&mut self, costs: &Costs, from: Nanos, to: Nanos) -> Nanos {
        let (Some(cpu), Some((stay, is_preempted))) = (self.cpu, self.stay) else {
            return Nanos::ZERO;
        };
        let (ticks, last) = costs.ticks(cpu, (from, to), stay, is_preempted);
        // What the last tick takes is owed from its time on: it may be paid after this part only.
        self.owed += Nanos(costs.tick_cost.0 * ticks.saturating_sub(1));
        let before = self.pay(last - from);
        self.owed += Nanos(costs.tick_cost.0 * ticks.min(1));
        let after = self.pay(to - last);
        let passed = (to - from) - before - after;
        match costs.speeds.get(&cpu) {
            Some((speed, most)) if speed != most => {
                let work = u128::from(passed.0) * u128::from(*speed) / u128::from(*most);
                Nanos(work as u64)
            }
            _ => passed,
        }
    }
}
