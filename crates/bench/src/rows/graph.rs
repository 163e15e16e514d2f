//! `graph`: source 001's frame.

use console::Failure;
use event::Nanos;
use platform::Os;
use workload::busy::Busy;
use workload::graph::{Bodies, BuiltScene, Generator, GraphScene, JobGraph, Labels};

use super::counted_graph::{CountedGraph, Scopes};
use crate::case::Case;
use crate::pools;
use crate::row::{Row, check, nanos, short};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::target::{Bound, Target};
use crate::tbb::Tbb;
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "graph",
    title: "500 jobs with dependencies, pieces of 0.5, 1 and 5 µs",
    means: "The generated frame of source 001: 500 jobs, half of them parallel with 1 to 100 pieces, \
            each after 0 to 10 others, ten sync points of the main thread. A run is a fresh pool, one \
            frame to warm up, then frames one after the other; a run's time is its median frame. \
            Targets are for the worst of ten runs. Every frame's checksum is compared with that of a \
            serial run. rayon and bevy_tasks have no dependencies: there a counter per job is counted \
            down by its predecessors, the last of which spawns it, and the main thread's sync points are \
            continuations. Parallel jobs are adaptive `iter::split`s of the range of pieces on rayon, \
            and a task per thread on bevy_tasks. oneTBB has a flow graph of `continue_node`s, built once \
            per run, whose parallel jobs are a `parallel_for` and whose sync points are nodes. *built \
            once* is the same with Paceline, once per run, too.",
    measure,
};

/// One size of the row.
struct GraphSize {
    piece: Nanos,
    frames: usize,
    /// The targets for the speed-up of the worst run on two threads: of jobs that are scheduled each frame,
    /// and of the graph that is built once.
    scheduled: f64,
    built: f64,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let size = |piece, frames, [scheduled, built]: [f64; 2]| GraphSize {
        piece: Nanos(piece),
        frames,
        scheduled,
        built,
    };
    let sizes = [
        size(500, 21, [1.8, 1.88]),
        size(1_000, 11, [1.9, 1.93]),
        size(5_000, 5, [1.95, 1.97]),
    ];
    sizes.iter().map(|size| measure_size(setup, size)).collect()
}

fn measure_size(setup: &mut Setup, size: &GraphSize) -> Result<Case, Failure> {
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
    let counted = || CountedGraph::new(graph.clone(), setup.busy, threads);
    let (mut rayons, mut members, mut bevys) = (counted(), counted(), counted());
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
    let (again, busy) = (graph.clone(), setup.busy);
    let built = move || built_run(threads, again.clone(), busy, frames);
    let mut subjects = vec![
        Contestant::new(Who::Serial, serial),
        Contestant::new(Who::Paceline, paceline),
        Contestant::new(Who::PacelineBuilt, built),
    ];
    if setup.peers {
        let rayon = move || counted_run(&pools::rayon(threads)?, &mut rayons, frames);
        let member = move || {
            let pool = || pools::rayon_member(threads);
            pools::on_own_thread(|| counted_run(&pool()?, &mut members, frames))
        };
        let bevy = move || counted_run(&pools::bevy(threads), &mut bevys, frames);
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
        subjects.push(Contestant::new(Who::Bevy, bevy));
    }
    if let Some(tbb) = setup.tbb.clone() {
        tbb.load(&graph, setup.busy).map_err(Failure::Failed)?;
        let mut remote = TbbGraph::new(tbb, graph, threads);
        let tbb = move || remote.run(frames);
        subjects.push(Contestant::new(Who::Tbb, tbb));
    }
    let samples = interleave(setup, ROW.name, runs, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("pieces of {}", short(size.piece));
    let mut case = Case::new(ROW.name, label, "µs per frame", samples);
    if setup.peers {
        case = case.with_cannot(Who::Chili, "joins only, no dependencies");
    }
    Ok(judged(setup, size, case))
}

/// The case with its targets.
fn judged(setup: &Setup, size: &GraphSize, case: Case) -> Case {
    let worst = |who: Who, label: &str, least: f64| {
        let both = case.median(Who::Serial).zip(case.spread(who));
        let worst = both.map(|(serial, ours)| serial / ours.max);
        Target::new(setup, label, Bound::AtLeast(least), worst)
    };
    let best_peer = case.best_peer().map(|(_, median)| median);
    let to_peer = case.median(Who::PacelineBuilt).zip(best_peer);
    let to_peer = to_peer.map(|(ours, best)| ours / best);
    let targets = [
        worst(Who::Paceline, "speed-up of the worst run", size.scheduled),
        worst(
            Who::PacelineBuilt,
            "built once: speed-up of the worst run",
            size.built,
        ),
        Target::new(setup, "built once / best peer", Bound::AtMost(1.0), to_peer),
    ];
    let with = |case: Case, target| case.with_target(|_| target);
    targets.into_iter().fold(case, with)
}

/// A run of the graph that is built once.
fn built_run(threads: usize, graph: JobGraph, busy: Busy, frames: usize) -> Sample {
    let js = pools::paceline(threads)?;
    let mut scene = BuiltScene::new(&js, graph, busy);
    run(frames, || {
        let time = nanos(|| scene.run());
        scene.verify().map_err(|wrong| wrong.to_string())?;
        Ok(time)
    })
}

fn counted_run(pool: &impl Scopes, graph: &mut CountedGraph, frames: usize) -> Sample {
    run(frames, || {
        let time = nanos(|| graph.run(pool));
        graph.verify()?;
        Ok(time)
    })
}

/// The graph that the runner of oneTBB has loaded.
struct TbbGraph {
    tbb: Tbb,
    /// Only for the checksums.
    bodies: Bodies,
    threads: usize,
    frame: u64,
}

impl TbbGraph {
    fn new(tbb: Tbb, graph: JobGraph, threads: usize) -> TbbGraph {
        TbbGraph {
            tbb,
            bodies: Bodies::new(graph, Busy::NONE),
            threads,
            frame: 1,
        }
    }

    /// One run: a frame to warm up, then `frames` more.
    fn run(&mut self, frames: usize) -> Sample {
        let told = self
            .tbb
            .frames_of_graph(self.threads, self.frame, frames + 1)?;
        let mut told = told.into_iter();
        run(frames, || {
            let (time, sum) = told.next().ok_or("a frame is missing")?;
            check(sum, self.bodies.expected(self.frame))?;
            self.frame += 1;
            Ok(time.0 as f64)
        })
    }
}

/// The median of `frames` frames in microseconds, after one that does not count.
fn run(frames: usize, mut frame: impl FnMut() -> Result<f64, String>) -> Sample {
    frame()?;
    let mut times = (0..frames)
        .map(|_| frame())
        .collect::<Result<Vec<f64>, String>>()?;
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![times[times.len() / 2] / 1e3])
}
