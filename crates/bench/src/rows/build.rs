//! `build`: graphs of many jobs without work: what it costs to build them, and to run them.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use workload::busy::Busy;
use workload::graph::{Bodies, BuiltScene, Generator, GraphScene, JobGraph, Labels};

use super::counted_graph::{CountedGraph, Scopes};
use crate::case::Case;
use crate::pools;
use crate::row::{Row, nanos};
use crate::session::{Contestant, Sample, Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "build",
    title: "graphs of 500 and 50 000 jobs without work",
    means: "Single jobs, each after 0 to 4 earlier ones, drawn as in source 001. A body takes no time but \
            that of a hash of what it depends on. *build*: the time to declare the graph, to check and build \
            it, and to drop it, for each job. *run*: the time of a frame for each job, on one pool: of the \
            graph that is built once, of the same jobs scheduled anew each frame, and of the peers' graphs \
            of row `graph`, which are built beforehand, too. A run's time is the median of its frames, and \
            every frame's checksum is compared with that of a serial run.",
    measure,
};

/// The jobs of a graph, and the frames of a run.
struct BuildSize {
    jobs: u32,
    frames: usize,
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let sizes = [
        BuildSize {
            jobs: setup.size(500, 40),
            frames: setup.size(101, 1),
        },
        BuildSize {
            jobs: setup.size(50_000, 80),
            frames: setup.size(3, 1),
        },
    ];
    let mut cases = Vec::new();
    for size in sizes {
        let generator = Generator {
            jobs: size.jobs,
            parallel_fraction: 0.0,
            deps: 0..=4,
            sync_every: 0,
            piece: Nanos::ZERO,
            ..Generator::default()
        };
        let graph = generator.generate().map_err(Failure::failed)?;
        cases.push(measure_build(setup, &graph, &size)?);
        cases.push(measure_run(setup, &graph, &size)?);
    }
    Ok(cases)
}

fn measure_build(setup: &mut Setup, graph: &JobGraph, size: &BuildSize) -> Result<Case, Failure> {
    let rounds = setup.size(15, 1);
    let js = pools::paceline(setup.threads).map_err(Failure::Failed)?;
    let bodies = Arc::new(Bodies::new(graph.clone(), Busy::NONE));
    let build = || {
        let time = nanos(|| drop(BuiltScene::of(&js, Arc::clone(&bodies))));
        Ok(vec![time / f64::from(size.jobs)])
    };
    let subjects = vec![Contestant::new(Who::PacelineBuilt, build)];
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let label = format!("build of {} jobs", size.jobs);
    let samples = samples.into_iter().map(Samples::only);
    Ok(Case::new(ROW.name, label, "ns per job", samples))
}

fn measure_run(setup: &mut Setup, graph: &JobGraph, size: &BuildSize) -> Result<Case, Failure> {
    let (rounds, threads) = (setup.size(15, 1), setup.threads);
    let per_job = |sample: Sample| {
        let micros = sample?;
        Ok(micros
            .iter()
            .map(|time| time * 1e3 / f64::from(size.jobs))
            .collect())
    };
    let js = pools::paceline(threads).map_err(Failure::Failed)?;
    let scene = || GraphScene::new(graph.clone(), Busy::NONE, Labels::OfKinds);
    let (mut alone, mut anew) = (scene(), scene());
    let mut built = BuiltScene::new(&js, graph.clone(), Busy::NONE);
    let counted = || CountedGraph::new(graph.clone(), Busy::NONE, threads);
    let (mut rayons, mut members, mut bevys) = (counted(), counted(), counted());
    let js = &js;
    let serial = move || {
        per_job(frames(size, || {
            let time = nanos(|| alone.run_serial(js.platform()));
            alone.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        }))
    };
    let paceline = move || {
        per_job(frames(size, || {
            let time = nanos(|| anew.run(js));
            anew.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        }))
    };
    let once = move || {
        per_job(frames(size, || {
            let time = nanos(|| built.run());
            built.verify().map_err(|wrong| wrong.to_string())?;
            Ok(time)
        }))
    };
    let mut subjects = vec![
        Contestant::new(Who::Serial, serial),
        Contestant::new(Who::Paceline, paceline),
        Contestant::new(Who::PacelineBuilt, once),
    ];
    if setup.peers {
        let rayon = move || per_job(counted_run(&pools::rayon(threads)?, &mut rayons, size));
        let member = move || {
            let pool = || pools::rayon_member(threads);
            per_job(pools::on_own_thread(|| {
                counted_run(&pool()?, &mut members, size)
            }))
        };
        let bevy = move || per_job(counted_run(&pools::bevy(threads), &mut bevys, size));
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
        subjects.push(Contestant::new(Who::Bevy, bevy));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let label = format!("run of {} jobs", size.jobs);
    let samples = samples.into_iter().map(Samples::only);
    let case = Case::new(ROW.name, label, "ns per job", samples);
    let best = case.best_peer().map(|(_, median)| median);
    let ratio = case.median(Who::PacelineBuilt).zip(best);
    let ratio = ratio.map(|(ours, best)| ours / best);
    let target = Target::new(setup, "built once / best peer", Bound::AtMost(1.0), ratio);
    Ok(case.with_target(|_| target))
}

fn counted_run(pool: &impl Scopes, graph: &mut CountedGraph, size: &BuildSize) -> Sample {
    frames(size, || {
        let time = nanos(|| graph.run(pool));
        graph.verify()?;
        Ok(time)
    })
}

/// The median of some frames in microseconds, after one that does not count.
fn frames(size: &BuildSize, mut frame: impl FnMut() -> Result<f64, String>) -> Sample {
    frame()?;
    let mut times = (0..size.frames)
        .map(|_| frame())
        .collect::<Result<Vec<f64>, String>>()?;
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![times[times.len() / 2] / 1e3])
}
