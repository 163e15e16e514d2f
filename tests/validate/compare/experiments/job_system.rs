//! V12: the job system itself, on this machine and on the simulated one: frames of generated graphs with more
//! and fewer workers than there are CPUs. The question is which configuration is better than which.

use event::Nanos;
use paceline::Builder;
use platform::{Os, Platform};
use sim::{Sim, SimConfig, SimReport};
use workload::busy::Busy;
use workload::graph::{Generator, GraphScene, JobGraph, Labels};

use super::Lab;
use crate::compare::judge::{Bound, Row, median, ranking};
use crate::compare::real::pin;
use crate::compare::simulated::Simulator;

/// Beside the waiting thread, which runs jobs as well.
const WORKERS: [usize; 6] = [0, 1, 2, 3, 5, 8];
const GRAPHS: usize = 20;
/// Frames of a sample, and those before them that are not counted.
const FRAMES: usize = 9;
const WARM_UP: usize = 2;
/// Samples of each configuration, in turn with those of the others. A frame of the smallest graphs is 0.6 ms
/// long and has wake-ups of a tenth of that in it: with 15 frames each, two configurations that are alike
/// were up to 18 % apart.
const ROUNDS: usize = 9;
/// Samples of each configuration that are simulated, each with its own seed.
const SEEDS: u64 = 3;
/// Configurations that differ by less than this are alike.
const CLEAR: f64 = 0.15;

/// Small and large jobs, much and little that can be done at the same time.
fn graph(number: usize) -> JobGraph {
    let generator = Generator {
        seed: number as u64 + 1,
        jobs: 60,
        parallel_fraction: [0.5, 0.0, 0.25][number % 3],
        pieces: 1..=24,
        deps: 0..=[4, 2][number % 2],
        sync_every: 20,
        piece: Nanos::from_micros([20, 60, 25, 40][number % 4]),
    };
    generator.generate().expect("the parameters are in range")
}

/// How long frames of the graph take, in milliseconds.
fn frames<P: Platform>(platform: &P, graph: &JobGraph, busy: Busy, workers: usize) -> Vec<f64> {
    let builder = Builder::with_platform(platform.clone()).workers(workers);
    let js = builder.build().expect("so many workers can be had");
    let mut scene = GraphScene::new(graph.clone(), busy, Labels::OfKinds);
    let frame = |_| {
        let begin = platform.now();
        scene.run(&js);
        let took = platform.now() - begin;
        scene.verify().expect("every edge was kept");
        took.0 as f64 / 1e6
    };
    (0..WARM_UP + FRAMES).map(frame).skip(WARM_UP).collect()
}

/// The same, simulated, and how the run went.
pub(crate) fn simulate(
    simulator: &Simulator,
    graph: &JobGraph,
    workers: usize,
    seed: u64,
) -> (Vec<f64>, SimReport) {
    let mut times = Vec::new();
    let config = SimConfig::on(simulator.machine.clone(), "eevdf-6.18", seed);
    let report = Sim::run(config, |sim| {
        times = frames(&sim, graph, Busy::NONE, workers)
    });
    (times, report.expect_finished())
}

/// A run for the test of repetition.
pub(crate) fn example(simulator: &Simulator) -> u64 {
    simulate(simulator, &graph(0), 3, 1).1.trace_hash
}

/// The medians of the configurations, for a graph.
struct Medians {
    real: Vec<f64>,
    simulated: Vec<f64>,
}

fn medians(lab: &Lab, graph: &JobGraph) -> Result<Medians, String> {
    let mut real = vec![Vec::new(); WORKERS.len()];
    for _ in 0..lab.times(ROUNDS) {
        let frames = |workers| frames(&Os, graph, lab.machine.busy(), workers);
        let round = lab.quiet.piece(|| Ok(WORKERS.map(frames)))?;
        for (times, frames) in real.iter_mut().zip(round) {
            times.extend(frames);
        }
    }
    let middle = |times: &Vec<f64>| median(times).ok_or("no frames");
    let simulate = |workers, seed| simulate(&lab.simulator, graph, workers, seed).0;
    let simulated = WORKERS.map(|workers| {
        let samples = (1..=SEEDS).flat_map(|seed| simulate(workers, seed));
        samples.collect()
    });
    Ok(Medians {
        real: real.iter().map(middle).collect::<Result<_, _>>()?,
        simulated: simulated.iter().map(middle).collect::<Result<_, _>>()?,
    })
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    pin(&lab.machine.cpus())?;
    let graphs = lab.times(GRAPHS);
    let mut alike_percent = Vec::new();
    let (mut pairs, mut alike) = (0, 0);
    let mut otherwise = Vec::new();
    let mut errors = Vec::new();
    let mut of_workers = vec![(Vec::new(), Vec::new()); WORKERS.len()];
    for number in 0..graphs {
        let Medians { real, simulated } = medians(lab, &graph(number))?;
        let ranking = ranking(&real, &simulated, CLEAR);
        let same = ranking.pairs - ranking.otherwise.len();
        pairs += ranking.pairs;
        alike += same;
        if ranking.pairs > 0 {
            alike_percent.push(same as f64 / ranking.pairs as f64 * 100.0);
        }
        for (a, b) in ranking.otherwise {
            let (few, many) = (WORKERS[a], WORKERS[b]);
            let what =
                format!("graph {number}, ranked otherwise: with {many} workers, to with {few}");
            let row = Row::new(
                what,
                vec![real[b] / real[a]],
                Some(simulated[b] / simulated[a]),
            );
            otherwise.push(row);
        }
        for (index, (real, simulated)) in real.iter().zip(&simulated).enumerate() {
            errors.push((simulated / real - 1.0).abs() * 100.0);
            of_workers[index].0.push(*real);
            of_workers[index].1.push(*simulated);
        }
    }
    let total = if pairs == 0 {
        100.0
    } else {
        alike as f64 / pairs as f64 * 100.0
    };
    let what = format!(
        "pairs of configurations that differ by more than {:.0} % and are ranked alike, % of {pairs}",
        CLEAR * 100.0
    );
    let mut rows = vec![Row::new(what, vec![total], Some(100.0)).bounded(Bound::AtLeast(100.0))];
    rows.push(Row::new("the same by graph", alike_percent, Some(100.0)));
    for (workers, (real, simulated)) in WORKERS.into_iter().zip(of_workers) {
        let what = format!("a frame with {workers} workers, over the graphs, ms");
        rows.push(Row::medians(what, real, &simulated));
    }
    rows.push(Row::new(
        "the simulator's error of a median, %",
        errors,
        Some(0.0),
    ));
    rows.extend(otherwise);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the real job system runs on the simulated machine, a worker helps where jobs are
    /// independent, and too many of them are no disaster. Method: frames of three graphs with 0, 1 and 5
    /// workers; each is checked against a serial one.
    #[test]
    fn workers_help_on_the_simulated_machine() {
        let simulator = Simulator::vm_2();
        for number in [0, 1, 2] {
            let graph = graph(number);
            let middle = |workers| median(&simulate(&simulator, &graph, workers, 1).0).unwrap();
            let (alone, two, many) = (middle(0), middle(1), middle(5));
            assert!(two < alone * 0.9, "graph {number}: {alone} → {two}");
            assert!(many < alone * 1.1, "graph {number}: {alone} → {many}");
        }
    }
}
