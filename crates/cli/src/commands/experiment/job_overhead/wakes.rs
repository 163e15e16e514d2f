//! Wake-ups: which threads send them, and which were for nothing.

use console::Failure;
use event::{KernelEventKind, Left, Nanos, Task};
use sim::{Sim, SimConfig, SimReport};
use workload::busy::Busy;

use super::subject::{
    BATCHES, ENTRIES, INSTRUCTIONS, LINES, MACHINE, POLICY, SystemUnderTest, frames, graph_for,
    machine, reading,
};
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] =
    &[&PIECE, &WORKERS, &BATCHES, &ENTRIES, &INSTRUCTIONS, &LINES];
/// Pieces that are long enough to tell a worker that ran one from a worker that found none.
const PIECE: ChosenValue = ChosenValue {
    name: "wake-piece",
    about: "a piece where wake-ups are counted",
    unit: ValueUnit::Micros,
    chosen: 5.0,
    others: &[2.0, 10.0, 20.0],
    why: "long enough to tell a worker that ran one from a worker that found none",
};
pub(super) const WORKERS: ChosenValue = ChosenValue {
    name: "wake-workers",
    about: "workers where wake-ups are counted",
    unit: ValueUnit::Of("workers"),
    chosen: 15.0,
    others: &[3.0, 7.0, 31.0],
    why: "a core for each thread",
};

/// Wake-ups of workers.
#[derive(Clone, Copy, Default)]
struct Wakes {
    by_main: f64,
    by_workers: f64,
    /// Of both: the worker slept again without having run as long as a piece takes.
    useless: f64,
}

impl Wakes {
    fn of(report: &SimReport, frames: f64, piece: Nanos) -> Wakes {
        let threads = report.threads.len();
        // Of each thread: since when it has been running, and for how long since it was woken.
        let (mut since, mut ran) = (vec![None; threads], vec![Nanos::ZERO; threads]);
        let mut woken = vec![false; threads];
        let (mut by_main, mut by_workers, mut useless) = (0u32, 0u32, 0u32);
        for event in &report.trace {
            match event.what {
                KernelEventKind::Waking {
                    task: Task(task),
                    by,
                    ..
                } if task > 0 => {
                    match by {
                        Some(Task(0)) => by_main += 1,
                        Some(_) => by_workers += 1,
                        None => {}
                    }
                    (woken[task as usize], ran[task as usize]) = (true, Nanos::ZERO);
                }
                KernelEventKind::Switch { prev, state, next } => {
                    if let Some(Task(next)) = next {
                        since[next as usize] = Some(event.time);
                    }
                    let Some(prev) = prev.map(|Task(prev)| prev as usize) else {
                        continue;
                    };
                    if let Some(since) = since[prev].take() {
                        ran[prev] += event.time - since;
                    }
                    let sleeps = matches!(state, Left::Sleeping | Left::Blocked);
                    if sleeps && std::mem::take(&mut woken[prev]) && ran[prev] < piece {
                        useless += 1;
                    }
                }
                _ => {}
            }
        }
        Wakes {
            by_main: f64::from(by_main) / frames,
            by_workers: f64::from(by_workers) / frames,
            useless: f64::from(useless) / frames,
        }
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let [old, _, new, _] = sent(effort, findings)?;
    findings.claims.extend([
        Claim::source(
            "001-q",
            "The main thread wakes fewer workers in 2022.2 than in 2017.3",
            "Job scheduler; 2022.2 job scheduler, below the loop",
        )
        .is(
            Expect::LessThan(old.by_main),
            new.by_main,
            "wake-ups by the main thread a frame",
        )
        .note("signals to workers that are awake wake none and are not counted"),
        Claim::source(
            "001-r",
            "Workers are woken for nothing where others have taken the work",
            "Thread-signaling overhead",
        )
        .is(
            Expect::MoreThan(0.0),
            old.useless,
            "useless wake-ups a frame",
        )
        .note(format!(
            "2017.3, of {:.0}; pieces of {}, {}",
            old.by_main + old.by_workers,
            effort.time(&PIECE),
            WORKERS.words(effort.value(&WORKERS))
        )),
    ]);
    Ok(())
}

fn sent(effort: &Effort, findings: &mut Findings) -> Result<[Wakes; 4], Failure> {
    let count = effort.of(2, 10);
    let (piece, workers) = (effort.time(&PIECE), effort.value(&WORKERS) as usize);
    let wakes = lab::each("wake-ups", &SystemUnderTest::ALL, |&system| {
        let mut done = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(machine(effort), POLICY, effort.seed)
        };
        let graph = graph_for(system, piece, effort)?;
        let system = (system, reading(effort));
        let report = Sim::run(config, |sim| {
            done = frames(&sim, system, workers, graph, count, Busy::NONE, || ()).map(drop);
        });
        lab::sound("wake-ups", &report)?;
        done.map(|()| Wakes::of(&report, f64::from(count), piece))
    })?;
    let title =
        format!("Wake-ups of workers a frame, pieces of {piece}, {workers} workers on {MACHINE}");
    let columns = [
        "job system",
        "by the main thread",
        "by workers",
        "for nothing",
    ];
    let mut table = Table::new(title, columns);
    let mut bars = Vec::new();
    for (system, wakes) in SystemUnderTest::ALL.iter().zip(&wakes) {
        table.row([
            system.name().into(),
            wakes.by_main.into(),
            wakes.by_workers.into(),
            wakes.useless.into(),
        ]);
        let by = [
            ("by the main thread", wakes.by_main),
            ("by workers", wakes.by_workers),
        ];
        for (kind, (who, value)) in by
            .into_iter()
            .chain([("for nothing", wakes.useless)])
            .enumerate()
        {
            bars.push(PlotBar {
                name: format!("{}: {who}", system.name()),
                value,
                kind,
            });
        }
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "wakes",
        title: "Wake-ups of workers in a frame".into(),
        picture: PlotShape::Bars {
            unit: "wake-ups a frame",
            bars,
        },
    });
    wakes
        .try_into()
        .map_err(|_| Failure::failed("four job systems"))
}
