//! The graph of source 001, and the job systems that run it.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use paceline::{Builder, WaitPolicy};
use platform::Polling;
use sim::Machine;
use workload::baseline::{BaselineKind, BaselineReading, BaselineScene, JobsBySystem};
use workload::busy::Busy;
use workload::graph::{Generator, GraphScene, JobGraph, Labels};
use workload::{Scene, Unwatched};

use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::lab::{self, Effort};

pub(super) const MACHINE: &str = "ryzen-3950x";
pub(super) const POLICY: &str = "eevdf-6.6";

/// The job system to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemUnderTest {
    Baseline(BaselineKind),
    Paceline,
}

impl SystemUnderTest {
    pub(super) const ALL: [SystemUnderTest; 4] = [
        SystemUnderTest::Baseline(BaselineKind::Unity2017_3),
        SystemUnderTest::Baseline(BaselineKind::Unity2021_3),
        SystemUnderTest::Baseline(BaselineKind::Unity2022_2),
        SystemUnderTest::Paceline,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            SystemUnderTest::Baseline(kind) => kind.name(),
            SystemUnderTest::Paceline => "paceline",
        }
    }

    /// What it computes for a piece beside its accesses to shared memory, which is free in simulations.
    ///
    /// Measured: with no workers and pieces of 0.5 us a Xeon with 2 CPUs took 46, 48, 9 and 28 ns a piece
    /// more than the pieces alone (`experiment job-overhead --real`, November 2026: 0.915, 0.912, 0.982 and
    /// 0.947 times as fast), and the simulated machine takes 22, 23, 3 and 9 ns.
    pub(super) fn instructions(self) -> Nanos {
        Nanos(match self {
            SystemUnderTest::Baseline(BaselineKind::Unity2017_3) => 24,
            SystemUnderTest::Baseline(BaselineKind::Unity2021_3) => 25,
            SystemUnderTest::Baseline(BaselineKind::Unity2022_2) => 6,
            SystemUnderTest::Paceline => 19,
        })
    }
}

pub(super) const BATCHES: ChosenValue = ChosenValue {
    name: "batches",
    about: "when 2017.3 and 2021.3 hear of a job",
    unit: ValueUnit::Ways(&["at once", "in batches, flushed at waits"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the article has both, and does not say which its measurements are of",
};
pub(super) const ENTRIES: ChosenValue = ChosenValue {
    name: "entries",
    about: "what 2022.2 puts into its queues",
    unit: ValueUnit::Ways(&["a block for each thread", "each piece"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the article does not say",
};

pub(super) const INSTRUCTIONS: ChosenValue = ChosenValue {
    name: "instructions",
    about: "what a job system computes between its accesses to shared memory",
    unit: ValueUnit::Ways(&["as one real thread needed for a piece", "free"]),
    chosen: 0.0,
    others: &[1.0],
    why: "the simulator counts accesses alone; with 24, 25, 6 and 19 ns a piece the rows without workers are \
          a real thread's",
};
pub(super) const LINES: ChosenValue = ChosenValue {
    name: "lines",
    about: "how long a cache line travels, in parts of the published latencies",
    unit: ValueUnit::Of("%"),
    chosen: 100.0,
    others: &[20.0, 50.0],
    why: "two real threads that do nothing but count one word up need a fifth of what is simulated",
};

/// The machine of the article.
pub(super) fn machine(effort: &Effort) -> Arc<Machine> {
    let mut machine = lab::machine(MACHINE);
    let lines = &mut Arc::make_mut(&mut machine).lines;
    let travels = [
        &mut lines.core,
        &mut lines.module,
        &mut lines.cache,
        &mut lines.node,
        &mut lines.remote,
    ];
    for travel in travels {
        travel.0 = (travel.0 as f64 * effort.value(&LINES) / 100.0) as u64;
    }
    machine
}

/// How the article is read in this run.
pub(super) fn reading(effort: &Effort) -> BaselineReading {
    BaselineReading {
        batched: effort.way(&BATCHES) == 1,
        by_piece: effort.way(&ENTRIES) == 1,
        scheduled: JobsBySystem::ByMain,
    }
}

/// A graph of the article's kind: with seed 1 the one that the page is about.
pub(super) fn graph(piece: Nanos, effort: &Effort) -> Result<JobGraph, Failure> {
    let generator = Generator {
        seed: effort.seed,
        piece,
        jobs: jobs(effort),
        ..Generator::default()
    };
    generator
        .generate()
        .map_err(|error| Failure::failed(error.to_string()))
}

/// The same graph for this job system on the simulated machine, where what it computes for a piece is a part
/// of the piece.
pub(super) fn graph_for(
    system: SystemUnderTest,
    piece: Nanos,
    effort: &Effort,
) -> Result<JobGraph, Failure> {
    let instructions = match effort.way(&INSTRUCTIONS) {
        0 => system.instructions(),
        _ => Nanos::ZERO,
    };
    graph(piece + instructions, effort)
}

/// The article's number, but in a quick run.
pub(super) fn jobs(effort: &Effort) -> u32 {
    effort.of(200, 500)
}

/// The time of the graph on one thread without a job system.
pub(super) fn serial(graph: &JobGraph) -> Nanos {
    Nanos(graph.jobs().iter().map(|job| job.work().0).sum())
}

/// Frames on a job system, as the article is read, with `workers` workers, each checked against a serial
/// run; gives the time of each. `step` is called after each.
pub(super) fn frames<P: Polling>(
    platform: &P,
    (system, reading): (SystemUnderTest, BaselineReading),
    workers: usize,
    graph: JobGraph,
    count: u32,
    busy: Busy,
    mut step: impl FnMut(),
) -> Result<Vec<Nanos>, Failure> {
    let mut times = Vec::new();
    match system {
        SystemUnderTest::Baseline(kind) => {
            let scene = BaselineScene::with(reading, kind, graph, platform.clone(), workers, busy);
            let mut scene = scene.map_err(Failure::failed)?;
            for _ in 0..count {
                let begin = platform.now();
                scene.run();
                times.push(platform.now() - begin);
                scene.verify().map_err(Failure::failed)?;
                step();
            }
        }
        SystemUnderTest::Paceline => {
            let js = Builder::with_platform(platform.clone());
            let js = js
                .workers(workers)
                .wait_policy(WaitPolicy::Adaptive)
                .build();
            let js = js.map_err(|error| Failure::failed(error.to_string()))?;
            let mut scene = GraphScene::new(graph, busy, Labels::OfKinds);
            for _ in 0..count {
                scene.clear();
                let begin = platform.now();
                let done = scene.run_watched(&js, &js, &mut Unwatched);
                done.map_err(|error| Failure::failed(error.to_string()))?;
                times.push(platform.now() - begin);
                scene.verify().map_err(Failure::failed)?;
                step();
            }
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::chosen::ValueSet;

    /// Goal: the seed reaches the graph. Method: two seeds, and one of them again.
    #[test]
    fn another_seed_is_another_graph() {
        let of = |seed| {
            let effort = Effort::quick(seed);
            let graph = graph(Nanos(500), &effort).expect("the parameters are in range");
            let jobs = graph.jobs().iter();
            jobs.map(|job| (job.work().0, job.deps.to_vec()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Goal: what a job system computes is a part of its pieces; lines that travel faster do so everywhere.
    /// Method: a graph as chosen and with free instructions; the machine with lines of a fifth.
    #[test]
    fn instructions_and_lines_have_a_price() {
        let effort = Effort::quick(1);
        let with = |name, number| Effort {
            set: Some(ValueSet { name, number }),
            ..effort
        };
        let work = |effort: &Effort| {
            let graph = graph_for(SystemUnderTest::Paceline, Nanos(500), effort);
            serial(&graph.expect("the parameters are in range")).0 as f64
        };
        let (dear, free) = (work(&effort), work(&with("instructions", 1.0)));
        assert!(
            (dear / free - 519.0 / 500.0).abs() < 1e-9,
            "{dear} and {free}"
        );
        let (all, fifth) = (machine(&effort).lines, machine(&with("lines", 20.0)).lines);
        assert_eq!(
            (all.core.0 / 5, all.node.0 / 5),
            (fifth.core.0, fifth.node.0)
        );
        assert_eq!((all.hit, all.rmw), (fifth.hit, fifth.rmw));
    }
}
