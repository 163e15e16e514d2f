//! Running a program.

use std::collections::BTreeMap;

use event::{Cpu, KernelEvent, KernelEventKind, Nanos, Task};
use sim::scenario::run;
use sim::{Perturb, SimConfig};

use crate::program::{Program, Stretch};

/// What a run of a program was like.
#[derive(Clone, Debug)]
pub struct Played {
    /// By stretch: when its thread came to its two points; none: it did not.
    pub points: Vec<Option<(Nanos, Nanos)>>,
    /// By thread: how long it ran in the time that was recorded.
    pub ran: Vec<Nanos>,
    /// The kernel's events. Behind [`Program::until`] threads end.
    pub kernel: Vec<KernelEvent>,
}

/// Runs a program. Seed 0 is the run without chance; with others the ticks come up to half a tick late, each
/// by an amount of its own, which is what nothing in a recording tells.
///
/// # Panics
/// If there is no policy of the program's name, or it does not take one of the threads.
pub fn play(program: &Program, seed: u64) -> Played {
    let scenario = program.scenario();
    let mut config = SimConfig::on(program.machine.clone(), &program.policy, seed);
    config.trace = true;
    config.quota = scenario.cpu_quota();
    config.hints = config.is_listened_to();
    if seed > 0 {
        config.perturb = Perturb {
            tick_late_max: Nanos(program.machine.kernel.tick.0 / 2),
            ..Perturb::default()
        };
    }
    let ran = run(&scenario, config);
    let mut points = vec![None; program.stretches.len()];
    for measured in &ran.measured {
        let at =
            (measured.name.strip_prefix(Stretch::WORD)).and_then(|at| at.parse::<usize>().ok());
        if let Some(point) = at.and_then(|at| points.get_mut(at)) {
            *point = Some((measured.begin, measured.end));
        }
    }
    Played {
        points,
        ran: ran_until(program.length, &ran.report.trace, program.threads.len()),
        kernel: ran.report.trace,
    }
}

/// How long each thread ran until a time.
fn ran_until(end: Nanos, events: &[KernelEvent], threads: usize) -> Vec<Nanos> {
    let mut ran = vec![Nanos::ZERO; threads];
    let mut on: BTreeMap<Cpu, (Option<Task>, Nanos)> = BTreeMap::new();
    let mut add = |(task, since): (Option<Task>, Nanos), until: Nanos| {
        if let Some(time) = task.and_then(|task| ran.get_mut(task.index())) {
            *time += until.min(end) - since.min(end);
        }
    };
    for event in events {
        if let KernelEventKind::Switch { next, .. } = event.what
            && let Some(before) = on.insert(event.cpu, (next, event.time))
        {
            add(before, event.time);
        }
    }
    for last in on.into_values() {
        add(last, end);
    }
    ran
}
