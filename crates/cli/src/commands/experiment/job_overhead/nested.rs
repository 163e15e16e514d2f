//! Jobs that schedule jobs: what it costs where all threads share a queue, and where each has its own.

use console::Failure;
use event::Nanos;
use paceline::{Builder, WaitPolicy};
use platform::Platform as _;
use sim::{Sim, SimConfig};
use workload::baseline::{BaselineKind, BaselineReading, BaselineScene, JobsBySystem};
use workload::busy::Busy;
use workload::graph::{JobGraph, TreeScene};

use super::subject::{INSTRUCTIONS, LINES, MACHINE, POLICY, SystemUnderTest, jobs, machine};
use super::wakes::WORKERS;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&CHILDREN, &WORKERS, &INSTRUCTIONS, &LINES];
const CHILDREN: ChosenValue = ChosenValue {
    name: "children",
    about: "jobs that a job schedules",
    unit: ValueUnit::Of("jobs"),
    chosen: 2.0,
    others: &[3.0, 8.0, 32.0],
    why: "a divided range is a tree of halves",
};
/// The article's pieces, and longer ones.
const PIECES: [Nanos; 3] = [Nanos(500), Nanos(1_000), Nanos(5_000)];

const OLD: SystemUnderTest = SystemUnderTest::Baseline(BaselineKind::Unity2017_3);
const NEW: SystemUnderTest = SystemUnderTest::Baseline(BaselineKind::Unity2022_2);
const TO_OWN: JobsBySystem = JobsBySystem::ByJobs;
const TO_MAIN: JobsBySystem = JobsBySystem::ByJobsToMain;
const SYSTEMS: [(SystemUnderTest, JobsBySystem, &str); 5] = [
    (OLD, TO_OWN, "unity-2017.3, into the one queue"),
    (
        SystemUnderTest::Baseline(BaselineKind::Unity2021_3),
        TO_OWN,
        "unity-2021.3, into the one queue",
    ),
    (NEW, TO_MAIN, "unity-2022.2, into the main thread's queue"),
    (NEW, TO_OWN, "unity-2022.2, into the thread's own queue"),
    (SystemUnderTest::Paceline, TO_OWN, "paceline"),
];

/// A tree of jobs of this length on a job system.
#[derive(Clone, Copy)]
struct NestedTrial {
    piece: Nanos,
    system: SystemUnderTest,
    scheduled: JobsBySystem,
    name: &'static str,
}

/// What it costs, a frame.
#[derive(Clone, Copy)]
struct NestedCost {
    frame: f64,
    /// Lines that travelled, a job.
    moved: f64,
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let workers = effort.value(&WORKERS) as usize;
    let trial = |piece| {
        SYSTEMS.map(|(system, scheduled, name)| NestedTrial {
            piece,
            system,
            scheduled,
            name,
        })
    };
    let all: Vec<NestedTrial> = PIECES.into_iter().flat_map(trial).collect();
    let costs = lab::each("jobs of jobs", &all, |trial| trial.run(workers, effort))?;
    let title = format!(
        "A tree of {} jobs, each of which schedules {} others, on {MACHINE} with {workers} workers; the main \
         thread schedules the first",
        jobs(effort),
        effort.value(&CHILDREN)
    );
    let columns = [
        "a job takes",
        "job system",
        "a frame, µs",
        "times as fast as one thread",
        "cache lines moved, a job",
    ];
    let mut table = Table::new(title, columns);
    for (trial, cost) in all.iter().zip(&costs) {
        let serial = trial.piece.0 as f64 * f64::from(jobs(effort));
        table.row([
            trial.piece.into(),
            trial.name.into(),
            (cost.frame / 1e3).into(),
            (serial / cost.frame).into(),
            cost.moved.into(),
        ]);
    }
    findings.tables.push(table);
    let moved = |piece, system, scheduled| {
        let mut found = all.iter().zip(&costs).filter(|(trial, _)| {
            (trial.piece, trial.system, trial.scheduled) == (piece, system, scheduled)
        });
        found.next().map_or(f64::NAN, |(_, cost)| cost.moved)
    };
    findings.claims.push(claim(&moved));
    Ok(())
}

fn claim(moved: &dyn Fn(Nanos, SystemUnderTest, JobsBySystem) -> f64) -> Claim {
    let [piece, others @ ..] = PIECES;
    let less = |piece| {
        (
            Expect::LessThan(moved(piece, NEW, TO_MAIN)),
            moved(piece, NEW, TO_OWN),
        )
    };
    let (expected, found) = less(piece);
    let claim = Claim::source(
        "001-hc",
        "Jobs that a job schedules go into the worker's own queue, not into the main thread's, which reduces \
         memory traffic",
        "2022.2 job scheduler, above the loop",
    )
    .is(expected, found, "cache lines moved, a job")
    .note("2022.2 against itself with the main thread's queue");
    let claim = others.into_iter().fold(claim, |claim, piece| {
        let (expected, found) = less(piece);
        claim.varied("a job takes", piece.to_string(), expected, found)
    });
    claim.varied(
        "compared with",
        "2017.3",
        Expect::LessThan(moved(piece, OLD, TO_OWN)),
        found,
    )
}

impl NestedTrial {
    fn run(&self, workers: usize, effort: &Effort) -> Result<NestedCost, Failure> {
        let frames = effort.of(4, 20);
        let instructions = match effort.way(&INSTRUCTIONS) {
            0 => self.system.instructions(),
            _ => Nanos::ZERO,
        };
        let children = effort.value(&CHILDREN) as u32;
        let tree = JobGraph::tree(jobs(effort), children, self.piece + instructions);
        let tree = tree.map_err(|error| Failure::failed(error.to_string()))?;
        let config = SimConfig::on(machine(effort), POLICY, effort.seed);
        let mut took = Err(Failure::failed("the simulated program did not run"));
        let report = Sim::run(config, |sim| {
            took = self.frames(&sim, workers, tree, frames);
        });
        lab::sound("jobs of jobs", &report)?;
        // The first frame, which starts threads, moves lines, too.
        let run_jobs = f64::from((frames + 1) * jobs(effort));
        Ok(NestedCost {
            frame: took?.0 as f64 / f64::from(frames),
            moved: report.moved_lines as f64 / run_jobs,
        })
    }

    /// The time of so many frames after a first one.
    fn frames(
        &self,
        sim: &Sim,
        workers: usize,
        tree: JobGraph,
        frames: u32,
    ) -> Result<Nanos, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
        let mut begin = Nanos::ZERO;
        match self.system {
            SystemUnderTest::Baseline(kind) => {
                let reading = BaselineReading {
                    scheduled: self.scheduled,
                    ..BaselineReading::default()
                };
                let scene =
                    BaselineScene::with(reading, kind, tree, sim.clone(), workers, Busy::NONE);
                let mut scene = scene.map_err(Failure::failed)?;
                for frame in 0..=frames {
                    if frame == 1 {
                        begin = sim.now();
                    }
                    scene.run();
                    scene.verify().map_err(|error| failed(&error))?;
                }
            }
            SystemUnderTest::Paceline => {
                let js = Builder::with_platform(sim.clone())
                    .workers(workers)
                    .wait_policy(WaitPolicy::Adaptive);
                let js = js.build().map_err(|error| failed(&error))?;
                let mut scene = TreeScene::new(tree, Busy::NONE);
                for frame in 0..=frames {
                    if frame == 1 {
                        begin = sim.now();
                    }
                    scene.run(&js);
                    scene.verify().map_err(|error| failed(&error))?;
                }
            }
        }
        Ok(sim.now() - begin)
    }
}
