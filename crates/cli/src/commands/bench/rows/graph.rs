//! `graph`: source 001's frame.

use event::Nanos;
use platform::Os;
use workload::graph::{Generator, GraphScene, JobGraph, Labels};

use super::rayon_graph::RayonGraph;
use super::{Row, nanos, short};
use crate::commands::bench::case::Case;
use crate::commands::bench::pools;
use crate::commands::bench::session::{Contestant, Sample, Setup, interleave};
use crate::commands::bench::target::{Bound, Target};
use crate::commands::bench::who::Who;
use crate::failure::Failure;

pub(super) const ROW: Row = Row {
    name: "graph",
    title: "500 jobs with dependencies, pieces of 0.5, 1 and 5 µs",
    means: "The generated frame of source 001: 500 jobs, half of them parallel with 1 to 100 pieces, \
            each after 0 to 10 others, ten sync points of the main thread. A run is a fresh pool, one \
            frame to warm up, then frames one after the other; a run's time is its median frame. \
            Targets are for the worst of ten runs. Every frame's checksum is compared with that of a \
            serial run. rayon has no dependencies: there a counter per job is counted down by its \
            predecessors, the last of which spawns it, parallel jobs are adaptive `iter::split`s \
            of the range of pieces, and the main thread's sync points are continuations.",
    measure,
};

/// One size of the row.
struct Size {
    piece: Nanos,
    frames: usize,
    /// The speed-up that the worst run should reach on two threads.
    target: f64,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let size = |piece, frames, target| Size {
        piece: Nanos(piece),
        frames,
        target,
    };
    let sizes = [
        size(500, 21, 1.8),
        size(1_000, 11, 1.9),
        size(5_000, 5, 1.95),
    ];
    sizes.iter().map(|size| measure_size(setup, size)).collect()
}

fn measure_size(setup: &mut Setup, size: &Size) -> Result<Case, Failure> {
    let (threads, runs) = (setup.threads, setup.size(10, 1));
    let frames = setup.size(size.frames, 1);
    let generator = Generator {
        piece: size.piece,
        jobs: setup.size(500, 40),
        ..Generator::default()
    };
    let graph = generator.generate().map_err(Failure::failed)?;
    let scene = |graph: &JobGraph| GraphScene::new(graph.clone(), setup.busy, Labels::OfKinds);
    let (mut alone, mut ours) = (scene(&graph), scene(&graph));
    let (mut theirs, mut member) = (
        RayonGraph::new(graph.clone(), setup.busy),
        RayonGraph::new(graph, setup.busy),
    );
    let serial = move || {
        run(frames, || {
            let time = nanos(|| alone.run_serial(&Os));
            alone.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        })
    };
    let paceline = move || {
        let js = pools::paceline(threads)?;
        run(frames, || {
            let time = nanos(|| ours.run(&js));
            ours.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        })
    };
    let mut subjects = vec![
        Contestant::new(Who::Serial, serial),
        Contestant::new(Who::Paceline, paceline),
    ];
    if setup.peers {
        let rayon = move || rayon_run(&pools::rayon(threads)?, &mut theirs, frames);
        let member = move || {
            pools::on_own_thread(|| rayon_run(&pools::rayon_member(threads)?, &mut member, frames))
        };
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
    }
    let samples = interleave(setup, ROW.name, runs, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("pieces of {}", short(size.piece));
    let mut case = Case::new(ROW.name, label, "µs per frame", samples);
    if setup.peers {
        case = case.with_cannot(Who::Chili, "joins only, no dependencies");
    }
    Ok(case.with_target(|case| {
        let both = case.median(Who::Serial).zip(case.spread(Who::Paceline));
        let worst = both.map(|(serial, ours)| serial / ours.max);
        Target::new(
            setup,
            "speed-up of the worst run",
            Bound::AtLeast(size.target),
            worst,
        )
    }))
}

fn rayon_run(pool: &rayon::ThreadPool, graph: &mut RayonGraph, frames: usize) -> Sample {
    run(frames, || {
        let time = nanos(|| graph.run(pool));
        graph.verify()?;
        Ok(time)
    })
}

/// The median of some frames in microseconds, after one that does not count.
fn run(frames: usize, mut frame: impl FnMut() -> Result<f64, String>) -> Sample {
    frame()?;
    let mut times = (0..frames)
        .map(|_| frame())
        .collect::<Result<Vec<f64>, String>>()?;
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![times[times.len() / 2] / 1e3])
}
