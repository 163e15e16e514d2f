//! `sim`: the speed of the simulator.

use std::sync::Arc;

use console::Failure;
use platform::{Atomic, Machine as _, Memory, Ordering, Platform, Thread, ThreadSpec};
use sim::{Machine, Outcome, Sim, SimConfig};
use workload::busy::Busy;
use workload::graph::{Generator, GraphScene, JobGraph, Labels};

use crate::case::{Case, Picture};
use crate::row::{Row, check, nanos};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "sim",
    title: "simulated atomic operations, and a simulated frame of 500 jobs on 32 CPUs",
    means: "A million additions by as many threads as the machine has CPUs, each to a word of its own and \
            every 64th to one that all share, on a simulated machine with its costs of cache lines, under \
            `eevdf-6.18`; the host's time per addition, and the sums are checked. Then source 001's frame \
            (500 jobs with pieces of 0.5 µs) by 31 workers and the main thread on `ryzen-3950x` under \
            `eevdf-6.6`: the host's time per frame, checksums compared, nothing recorded.",
    measure,
};

/// Machines with few and with many CPUs.
const MACHINES: [&str; 2] = ["vm-2", "ryzen-3950x"];
const FRAME_MACHINE: &str = "ryzen-3950x";

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for name in MACHINES {
        let machine = machine(name)?;
        let adds = setup.size(1_000_000, 20_000);
        let subject = Contestant::new(Who::Paceline, move || count(&machine, adds));
        let label = format!("additions on {name}");
        cases.push(
            case(setup, label, "ns per addition", 10, subject)?.with_target(|case| {
                let rate = case.median(Who::Paceline).map(|nanos| 1e3 / nanos);
                Target::new(setup, "additions a second", Bound::AtLeast(20.0), rate)
                    .in_unit("million")
            }),
        );
    }
    let machine = machine(FRAME_MACHINE)?;
    let graph = Generator {
        jobs: setup.size(500, 40),
        ..Generator::default()
    };
    let graph = graph.generate().map_err(Failure::failed)?;
    let frames = setup.size(10, 1);
    let subject = Contestant::new(Who::Paceline, move || frame(&machine, &graph, frames));
    let label = format!("frame on {FRAME_MACHINE}");
    cases.push(
        case(setup, label, "ms per frame", 10, subject)?.with_target(|case| {
            let worst = case.spread(Who::Paceline).map(|spread| spread.max);
            Target::new(setup, "the worst run", Bound::AtMost(100.0), worst).in_unit("ms")
        }),
    );
    Ok(cases)
}

fn machine(name: &str) -> Result<Arc<Machine>, Failure> {
    Machine::named(name).map(Arc::new).map_err(Failure::failed)
}

fn case(
    setup: &mut Setup,
    label: String,
    unit: &'static str,
    rounds: usize,
    subject: Contestant<'_>,
) -> Result<Case, Failure> {
    let rounds = setup.size(rounds, 1);
    let samples = interleave(setup, ROW.name, rounds, vec![subject])?;
    let samples = samples.into_iter().map(|samples| samples.only());
    Ok(Case::new(ROW.name, label, unit, samples).with_picture(Picture::None))
}

/// The host's time for one of `adds` additions.
fn count(machine: &Arc<Machine>, adds: u64) -> Sample {
    let config = SimConfig::on(Arc::clone(machine), "eevdf-6.18", 1);
    let mut sum = (0, 0);
    let mut outcome = Outcome::Finished;
    let time = nanos(|| {
        let report = Sim::run(config, |sim| sum = add_everywhere(&sim, adds));
        outcome = report.outcome;
    });
    finished(&outcome)?;
    let (got, expected) = sum;
    check(got, expected)?;
    Ok(vec![time / adds as f64])
}

/// The shared word in the end, and its right value.
fn add_everywhere(sim: &Sim, adds: u64) -> (u64, u64) {
    const SHARED: u64 = 64;
    let shared = Arc::new(<Sim as Memory>::AtomicU64::new(0));
    let cpus = sim.topology().effective_parallelism() as u64;
    let each = adds / cpus;
    let theirs = Arc::clone(&shared);
    let body = move || {
        let own = <Sim as Memory>::AtomicU64::new(0);
        for step in 0..each {
            let word = if step % SHARED == 0 { &*theirs } else { &own };
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    let spawn = |_| sim.spawn(ThreadSpec::default(), Box::new(body.clone()));
    let threads: Vec<_> = (0..cpus).map(spawn).collect();
    for thread in threads.into_iter().flatten() {
        // A thread that panicked is missing in the sum.
        let _ = thread.join();
    }
    (shared.load(Ordering::Relaxed), cpus * each.div_ceil(SHARED))
}

/// The host's time for one of `frames` frames, after one to warm up.
fn frame(machine: &Arc<Machine>, graph: &JobGraph, frames: u32) -> Sample {
    let config = SimConfig::on(Arc::clone(machine), "eevdf-6.6", 1);
    let mut result = Err("the frames were not run".to_owned());
    let report = Sim::run(config, |sim| {
        result = frames_on(&sim, graph.clone(), frames)
    });
    finished(&report.outcome)?;
    Ok(vec![result? / 1e6 / f64::from(frames)])
}

fn frames_on(sim: &Sim, graph: JobGraph, frames: u32) -> Result<f64, String> {
    let workers = sim.topology().effective_parallelism() - 1;
    let builder = paceline::Builder::with_platform(sim.clone()).workers(workers);
    let js = builder.build().map_err(|error| error.to_string())?;
    let mut scene = GraphScene::new(graph, Busy::NONE, Labels::OfKinds);
    let mut time = 0.0;
    for number in 0..=frames {
        let took = nanos(|| scene.run(&js));
        scene.verify().map_err(|wrong| wrong.to_string())?;
        time += if number > 0 { took } else { 0.0 };
    }
    Ok(time)
}

fn finished(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Finished => Ok(()),
        other => Err(format!("the simulated run ended otherwise: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the row measures its description: every thread adds its share, and a frame is run and checked.
    /// Method: 3200 additions on 2 and on 32 CPUs, and one frame of 40 jobs.
    #[test]
    fn small_sizes_give_numbers() {
        for name in MACHINES {
            let machine = machine(name).unwrap();
            let config = SimConfig::on(Arc::clone(&machine), "eevdf-6.18", 1);
            let mut sum = (0, 0);
            Sim::run(config, |sim| sum = add_everywhere(&sim, 3_200)).expect_finished();
            let of_each = 3_200 / machine.cpus.len() as u64;
            let expected = machine.cpus.len() as u64 * of_each.div_ceil(64);
            assert_eq!(sum, (expected, expected), "{name}");
        }
        let generator = Generator {
            jobs: 40,
            ..Generator::default()
        };
        let machine = machine(FRAME_MACHINE).unwrap();
        let sample = frame(&machine, &generator.generate().unwrap(), 1).unwrap();
        assert!(sample[0] > 0.0);
    }
}
