//! What the main thread pays to schedule jobs and to signal them, with the job systems as they are built.

use console::Failure;
use event::{KernelEventKind, Nanos, Task};
use paceline::{Builder, Grain, WaitPolicy};
use platform::Platform as _;
use sim::{Sim, SimConfig, SimReport};
use workload::baseline::{BaselineKind, BaselineReading, BaselineScene};
use workload::busy::Busy;
use workload::graph::{Generator, JobGraph};

use super::subject::{LINES, MACHINE, POLICY, SystemUnderTest, machine};
use super::wakes::WORKERS;
use crate::commands::experiment::chosen::ChosenValue;
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&WORKERS, &LINES];
/// As many as two for each worker, and a parallel one for each worker.
const SHAPES: [JobShape; 2] = [
    JobShape {
        name: "32 single jobs",
        jobs: 32,
        pieces: 1,
    },
    JobShape {
        name: "8 parallel jobs of 16 pieces",
        jobs: 8,
        pieces: 16,
    },
];
const PIECE: Nanos = Nanos::from_micros(1);
/// Long enough for all of them, and for workers to fall asleep.
const PAUSE: Nanos = Nanos::from_millis(1);

/// Jobs that depend on nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct JobShape {
    name: &'static str,
    jobs: u32,
    pieces: u32,
}

impl JobShape {
    fn graph(self, seed: u64) -> Result<JobGraph, Failure> {
        let generator = Generator {
            seed,
            jobs: self.jobs,
            parallel_fraction: if self.pieces > 1 { 1.0 } else { 0.0 },
            pieces: self.pieces..=self.pieces,
            deps: 0..=0,
            sync_every: 0,
            piece: PIECE,
        };
        let graph = generator.generate();
        graph.map_err(|error| Failure::failed(error.to_string()))
    }
}

/// Which job system, and how it is told of jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SignalTrial {
    shape: JobShape,
    system: SystemUnderTest,
    /// Signalled when all are scheduled, not after each.
    batched: bool,
}

/// What it costs.
#[derive(Clone, Copy)]
struct SignalCost {
    /// In ns of the main thread, a job.
    main: f64,
    /// Wake-ups by the main thread, a job.
    wakes: f64,
}

/// How long it took the main thread, in which part of the run.
#[derive(Clone, Copy, Default)]
struct SignalRounds {
    main: Nanos,
    since: Nanos,
    until: Nanos,
}

impl SignalRounds {
    fn since(since: Nanos) -> SignalRounds {
        SignalRounds {
            since,
            ..SignalRounds::default()
        }
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let workers = effort.value(&WORKERS) as usize;
    let mut all = Vec::new();
    for shape in SHAPES {
        for system in SystemUnderTest::ALL {
            // The source says of 2022.2 that a job is scheduled, and nothing of batches.
            let is_new = system == SystemUnderTest::Baseline(BaselineKind::Unity2022_2);
            let batches = if is_new { &[false][..] } else { &[false, true] };
            all.extend(batches.iter().map(|&batched| SignalTrial {
                shape,
                system,
                batched,
            }));
        }
    }
    let costs = lab::each("signals", &all, |trial| trial.run(workers, effort))?;
    let title = format!(
        "What the main thread pays to schedule jobs for {workers} sleeping workers on {MACHINE}, the job \
         systems as they are built"
    );
    let columns = [
        "jobs",
        "job system",
        "signalled after",
        "main thread, ns a job",
        "ns a wake-up",
        "wake-ups by it a job",
    ];
    let mut table = Table::new(title, columns);
    for (trial, cost) in all.iter().zip(&costs) {
        table.row([
            trial.shape.name.into(),
            trial.system.name().into(),
            if trial.batched {
                "all of them"
            } else {
                "each job"
            }
            .into(),
            cost.main.into(),
            (cost.wakes > 0.0).then(|| cost.main / cost.wakes).into(),
            cost.wakes.into(),
        ]);
    }
    findings.tables.push(table);
    let main = |shape: JobShape, system, batched| {
        let wanted = SignalTrial {
            shape,
            system,
            batched,
        };
        let found = all.iter().zip(&costs).find(|(trial, _)| **trial == wanted);
        found.map_or(f64::NAN, |(_, cost)| cost.main)
    };
    let at_once = |shape, kind| main(shape, SystemUnderTest::Baseline(kind), false);
    findings.claims.push(claim(&at_once));
    let single = |system| [false, true].map(|batched| main(SHAPES[0], system, batched));
    let old = single(SystemUnderTest::Baseline(BaselineKind::Unity2017_3));
    let ours = single(SystemUnderTest::Paceline);
    findings.notes.push(batches_in_words(old, ours));
    Ok(())
}

/// What batches change for whole job systems, where 001-s is about a semaphore alone. Each has the main
/// thread's time for a single job, in nanoseconds: signalled after each, and after all of them.
fn batches_in_words(old: [f64; 2], ours: [f64; 2]) -> String {
    let [old, ours] = [old, ours]
        .map(|[each, all]| format!("{} ns a job and {} in batches", short(each), short(all)));
    format!(
        "What batches save a semaphore (001-s) they do not save the whole job systems, whose main thread \
         pays, for single jobs: 2017.3 {old}, since it wakes every sleeper once either way; Paceline {ours}, \
         since a batch wakes every sleeper at once, and a job alone wakes one, which wakes the next."
    )
}

fn claim(main: &dyn Fn(JobShape, BaselineKind) -> f64) -> Claim {
    let [old, new] = [BaselineKind::Unity2017_3, BaselineKind::Unity2022_2];
    let [single, parallel] = SHAPES;
    Claim::source(
        "001-hb",
        "In 2022.2 waking workers costs the main thread less",
        "2022.2 job scheduler, last paragraph",
    )
    .is(
        Expect::LessThan(main(single, old)),
        main(single, new),
        "ns of the main thread a job",
    )
    .varied(
        "jobs",
        parallel.name,
        Expect::LessThan(main(parallel, old)),
        main(parallel, new),
    )
    .note("single jobs, signalled one by one, for workers that sleep; against 2017.3")
}

impl SignalTrial {
    fn run(self, workers: usize, effort: &Effort) -> Result<SignalCost, Failure> {
        let rounds = effort.of(4, 20);
        let graph = self.shape.graph(effort.seed)?;
        let mut spent = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(machine(effort), POLICY, effort.seed)
        };
        let report = Sim::run(config, |sim| {
            spent = match self.system {
                SystemUnderTest::Baseline(kind) => {
                    let reading = BaselineReading {
                        batched: self.batched,
                        ..BaselineReading::default()
                    };
                    by_baseline(&sim, (kind, reading), workers, graph, rounds)
                }
                SystemUnderTest::Paceline => self.by_paceline(&sim, workers, rounds),
            };
        });
        lab::sound("signals", &report)?;
        let spent = spent?;
        let jobs = f64::from(rounds * self.shape.jobs);
        Ok(SignalCost {
            main: spent.main.0 as f64 / jobs,
            wakes: wakes_by_main(&report, spent) / jobs,
        })
    }

    fn by_paceline(self, sim: &Sim, workers: usize, rounds: u32) -> Result<SignalRounds, Failure> {
        let js = Builder::with_platform(sim.clone())
            .workers(workers)
            .wait_policy(WaitPolicy::Passive);
        let js = js
            .build()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let mut spent = SignalRounds::default();
        // The first round starts threads.
        for round in 0..=rounds {
            let rest = sim.now() + PAUSE;
            sim.sleep_until(rest);
            if round == 1 {
                spent = SignalRounds::since(sim.time());
            }
            let begin = sim.time();
            for _ in 0..self.shape.jobs {
                if self.shape.pieces == 1 {
                    js.job("job").schedule(|cx| cx.work(PIECE));
                } else {
                    let pieces = self.shape.pieces as usize;
                    js.job("job")
                        .schedule_for(0..pieces, Grain::Auto, |part, cx| {
                            cx.work(Nanos(PIECE.0 * part.len() as u64));
                        });
                }
                if !self.batched {
                    js.flush();
                }
            }
            js.flush();
            spent.main += sim.time() - begin;
        }
        let rest = sim.now() + PAUSE;
        sim.sleep_until(rest);
        spent.until = sim.time();
        Ok(spent)
    }
}

/// The same for one of the article's job systems.
fn by_baseline(
    sim: &Sim,
    (kind, reading): (BaselineKind, BaselineReading),
    workers: usize,
    graph: JobGraph,
    rounds: u32,
) -> Result<SignalRounds, Failure> {
    let scene = BaselineScene::with(reading, kind, graph, sim.clone(), workers, Busy::NONE);
    let mut scene = scene.map_err(Failure::failed)?;
    let mut spent = SignalRounds::default();
    for round in 0..=rounds {
        let rest = sim.now() + PAUSE;
        sim.sleep_until(rest);
        if round == 1 {
            spent = SignalRounds::since(sim.time());
        }
        spent.main += scene.run_timed(|| sim.time());
        scene.verify().map_err(Failure::failed)?;
    }
    spent.until = sim.time();
    Ok(spent)
}

/// Of workers.
fn wakes_by_main(report: &SimReport, rounds: SignalRounds) -> f64 {
    let by_main = report.trace.iter().filter(|event| {
        let is_by_main = |kind: &KernelEventKind| match kind {
            KernelEventKind::Waking {
                task: Task(task),
                by: Some(Task(0)),
                ..
            } => *task > 0,
            _ => false,
        };
        let counts = (rounds.since..rounds.until).contains(&event.time);
        counts && is_by_main(&event.what)
    });
    by_main.count() as f64
}
