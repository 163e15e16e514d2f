//! Recordings of the simulator's own.

use event::{Cpu, Nanos};
use sim::scenario::{Scenario, run};
use sim::{Machine, SimConfig};
use trace::{Clock, CpuFacts, Mark, MarkKind, Names, Origin, Recording, Thread, Wakers};

/// The recording of a scenario's run, in which measured stretches are slices.
pub(crate) fn record(scenario: &Scenario, machine: &Machine, policy: &str, seed: u64) -> Recording {
    let mut config = SimConfig::on(machine.clone(), policy, seed);
    config.until = scenario.until.unwrap_or(Nanos::MAX);
    config.trace = true;
    config.quota = scenario.cpu_quota();
    let ran = run(scenario, config);
    let plans = scenario.threads.iter();
    let plans = plans.flat_map(|plan| std::iter::repeat_n(plan, plan.count));
    let everywhere: Vec<Cpu> = (0..machine.cpus.len() as u32).map(Cpu).collect();
    let threads = plans.zip(ran.report.threads.iter()).zip(0..);
    let threads = threads.map(|((plan, thread), number)| {
        let attr = plan.attr();
        let priority = if attr.discipline.is_realtime() {
            trace::realtime(attr.priority)
        } else {
            trace::nice(attr.nice)
        };
        let mask = plan.cpus.iter().map(|&cpu| Cpu(cpu)).collect::<Vec<_>>();
        Thread {
            priority,
            tid: Some(number + 1),
            allowed: Some(if mask.is_empty() {
                everywhere.clone()
            } else {
                mask
            }),
            ..Thread::new(event::Task(number), thread.name.clone(), None)
        }
    });
    let mut names = Names::default();
    let mut marks: Vec<Mark> = Vec::new();
    for slice in &ran.measured {
        let on = event::Task(slice.thread as u32);
        let name = names.number(&slice.name);
        for (time, what) in [
            (slice.begin, MarkKind::Begin(name)),
            (slice.end, MarkKind::End),
        ] {
            marks.push(Mark { time, on, what });
        }
    }
    marks.sort_by_key(|mark| mark.time);
    Recording {
        marks,
        names,
        origin: Origin {
            clock: Clock::Virtual,
            wakers: Wakers::Decided,
            ..Origin::default()
        },
        threads: threads.collect(),
        cpus: everywhere
            .iter()
            .map(|&cpu| CpuFacts {
                cpu,
                capacity: Some(machine.cluster(cpu).capacity),
                max_khz: None,
            })
            .collect(),
        kernel: ran.report.trace,
        ..Recording::default()
    }
}
