//! `order`: graphs in which it matters which job is begun first.

use console::Failure;
use paceline::Lane;
use platform::Os;
use workload::busy::Busy;
use workload::graph::{BuiltScene, GraphScene, JobGraph, Labels, named};

use super::counted_graph::CountedGraph;
use crate::case::Case;
use crate::pools;
use crate::row::{Row, nanos};
use crate::session::{Contestant, Sample, Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "order",
    title: "graphs in which it matters which job is begun first",
    means: "`late-chain`, made for it: a chain of long jobs among as much other work, first in no order that \
            a job system uses. `gitoxide-build`, measured: the units of a release build. A run is a fresh \
            pool, eight frames from which the order is learned, then frames one after the other; a run's \
            time is its median frame. *critical first* is a graph that is built once and begins the job with \
            the longest way ahead; *built once* is the same in the order of work-stealing, and *in a queue* \
            with all jobs in one queue, oldest first. The bound is that of any order: the greater of the \
            critical path and of the work for each thread. Every frame's checksum is compared with that of a \
            serial run.",
    measure,
};

/// Frames before those that count.
const LEARNING: usize = 8;

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for name in ["late-chain", "gitoxide-build"] {
        let graph = named(name).ok_or_else(|| Failure::Failed(format!("no graph {name}")))?;
        cases.push(measure_graph(setup, name, &graph)?);
    }
    Ok(cases)
}

fn measure_graph(setup: &mut Setup, name: &str, graph: &JobGraph) -> Result<Case, Failure> {
    let (threads, runs, frames) = (setup.threads, setup.size(10, 1), setup.size(11, 1));
    let busy = setup.busy;
    let mut alone = GraphScene::new(graph.clone(), busy, Labels::OfKinds);
    let serial = move || {
        run(frames, || {
            let time = nanos(|| alone.run_serial(&Os));
            alone.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        })
    };
    let built = |who: Who| {
        let graph = graph.clone();
        Contestant::new(who, move || {
            built_run(threads, graph.clone(), busy, frames, who)
        })
    };
    let mut subjects = vec![
        Contestant::new(Who::Serial, serial),
        built(Who::PacelineCritical),
        built(Who::PacelineBuilt),
        built(Who::PacelineQueue),
    ];
    if setup.peers {
        let mut rayons = CountedGraph::new(graph.clone(), busy, threads);
        let mut bevys = CountedGraph::new(graph.clone(), busy, threads);
        let rayon = move || {
            let pool = pools::rayon(threads)?;
            run(frames, || {
                let time = nanos(|| rayons.run(&pool));
                rayons.verify()?;
                Ok(time)
            })
        };
        let bevy = move || {
            let pool = pools::bevy(threads);
            run(frames, || {
                let time = nanos(|| bevys.run(&pool));
                bevys.verify()?;
                Ok(time)
            })
        };
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::Bevy, bevy));
    }
    let samples = interleave(setup, ROW.name, runs, subjects)?;
    let samples = samples.into_iter().map(Samples::only);
    let case = Case::new(ROW.name, name.to_owned(), "µs per frame", samples);
    Ok(judged(setup, graph, case))
}

/// The case with its target. The bound is in time of this machine: the part of the serial time that the
/// critical path is, or that each thread gets.
fn judged(setup: &Setup, graph: &JobGraph, case: Case) -> Case {
    let measure = graph.measure();
    let speed_up = measure.speedup_at_most(setup.threads as u32);
    let times = case
        .median(Who::Serial)
        .zip(case.median(Who::PacelineCritical));
    let ratio = times.map(|(serial, ours)| ours / (serial / speed_up));
    let what = "critical first / least possible";
    let target = Target::new(setup, what, Bound::AtMost(1.05), ratio);
    let best = case.best_peer().map(|(_, median)| median);
    let to_peer = case.median(Who::PacelineCritical).zip(best);
    let to_peer = to_peer.map(|(ours, best)| ours / best);
    let what = "critical first / best peer";
    let peers = Target::new(setup, what, Bound::AtMost(1.0), to_peer);
    case.with_target(|_| target).with_target(|_| peers)
}

fn built_run(threads: usize, graph: JobGraph, busy: Busy, frames: usize, who: Who) -> Sample {
    let js = pools::paceline(threads)?;
    let mut scene = BuiltScene::new(&js, graph, busy);
    scene.critical_first(who == Who::PacelineCritical);
    run(frames, || {
        let time = nanos(|| match who {
            Who::PacelineQueue => js.in_lane(Lane::Frame, || scene.run()),
            _ => scene.run(),
        });
        scene.verify().map_err(|wrong| wrong.to_string())?;
        Ok(time)
    })
}

/// The median of some frames in microseconds, after those that do not count.
fn run(frames: usize, mut frame: impl FnMut() -> Result<f64, String>) -> Sample {
    let times = (0..LEARNING + frames).map(|_| frame());
    let times = times.collect::<Result<Vec<f64>, String>>()?;
    let mut times = times[LEARNING..].to_vec();
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![times[times.len() / 2] / 1e3])
}
