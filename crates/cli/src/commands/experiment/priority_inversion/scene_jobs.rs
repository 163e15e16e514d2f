//! The jobs of the scene, and the job system that runs them.

use console::Failure;
use event::Nanos;
use paceline::{Builder, Grain, Lane, Role};
use platform::{CpuSet, Platform};
use sim::scenario::{Phase, Scenario};
use sim::{Machine, Sim};

use super::remedy::thread;

/// The cores that the program's threads may use.
const CORES: std::ops::RangeInclusive<u32> = 4..=7;

/// A job of the scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SceneJob {
    work: Nanos,
    /// The main thread of the scene waits for it, or does it itself.
    is_awaited: bool,
}

/// The work of each worker, and of the main thread before the wait is over.
pub(super) fn jobs(scene: &Scenario) -> Vec<SceneJob> {
    let of_thread = |name: &str, is_awaited: bool| {
        let works = thread(scene, name).phases.iter().filter_map(work);
        let jobs = works.map(|work| SceneJob { work, is_awaited });
        jobs.collect::<Vec<_>>()
    };
    let mut jobs = of_thread("Job worker 1", false);
    jobs.extend(of_thread("Job worker 2", false));
    jobs.extend(of_thread("Job worker 3", true));
    jobs.extend(of_thread("UnityMain", true).into_iter().take(1));
    jobs
}

fn work(phase: &Phase) -> Option<Nanos> {
    match phase {
        Phase::Work(span) => Some(span.least),
        _ => None,
    }
}

/// How the job system is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SceneUse {
    /// The jobs that the main thread waits for are in the frame's lane: the program knows them.
    AwaitedFirst,
    /// It does not say so, and they are scheduled last.
    InOrder,
    /// The main thread waits for all jobs.
    AllAwaited,
}

/// The same jobs as ranges of the job system, on the cores that the program's threads may use; when the main
/// thread's wait is over.
pub(super) fn on_paceline(
    sim: &Sim,
    start: Nanos,
    jobs: &[SceneJob],
    piece: Nanos,
    way: SceneUse,
) -> Result<Nanos, Failure> {
    let cpus: CpuSet = CORES.collect();
    let js = Builder::with_platform(sim.clone())
        .workers(3)
        .cpus(cpus)
        .build();
    let js = js.map_err(|error| Failure::failed(error.to_string()))?;
    // As in the scene, where the main thread has the same cores as the workers.
    let _main = js.adopt(Role::Main);
    let mut awaited = Vec::new();
    for &SceneJob { work, is_awaited } in jobs {
        let job = js.job("RasterizeJob");
        let job = match (way, is_awaited) {
            (SceneUse::AwaitedFirst, true) => job.lane(Lane::Frame),
            _ => job,
        };
        let job = job.schedule(move |cx| {
            let pieces = work.0.div_ceil(piece.0) as usize;
            cx.parallel_for(0..pieces, Grain::Auto, |part, cx| {
                cx.work(Nanos(piece.0 * part.len() as u64));
            });
        });
        if is_awaited || way == SceneUse::AllAwaited {
            awaited.push(job);
        }
    }
    js.flush();
    sim.sleep_until(start);
    js.wait(js.job("frame").after_all(&awaited).schedule(|_| ()));
    Ok(sim.now())
}

/// Whether the cores that are there can do all of this work by then, if they do nothing else and do it at
/// their highest clocks, and have a fiftieth of their time left: the last pieces do not end together.
pub(super) fn fits(scene: &Scenario, machine: &Machine, by: Nanos) -> bool {
    let work: u64 = jobs(scene).iter().map(|job| job.work.0).sum();
    let audio: u64 = thread(scene, "audio")
        .phases
        .iter()
        .filter_map(self::work)
        .map(|work| work.0)
        .sum();
    let done = |cpu: u32| {
        let cluster = machine.cpus[cpu as usize].cluster as usize;
        there(scene, cpu, by).0 * u64::from(machine.clusters[cluster].capacity) / 1024
    };
    CORES.map(done).sum::<u64>() * 49 / 50 >= work + audio
}

/// For how long until then this core is there.
fn there(scene: &Scenario, cpu: u32, by: Nanos) -> Nanos {
    let mut changes: Vec<(Nanos, bool)> = Vec::new();
    for change in &scene.changes {
        if change.offline.contains(&cpu) {
            changes.push((change.at, false));
        }
        if change.online.contains(&cpu) {
            changes.push((change.at, true));
        }
    }
    changes.sort_unstable();
    let (mut is_there, mut since, mut sum) = (true, Nanos::ZERO, Nanos::ZERO);
    for (at, comes) in changes.into_iter().chain([(by, false)]) {
        let at = at.min(by);
        if is_there {
            sum += at - since;
        }
        (is_there, since) = (comes, at);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::scene::scene_on;
    use super::*;
    use crate::commands::experiment::lab::{self, Effort};

    /// Goal: the jobs are the scene's, and the bound counts the cores that are there. Method: the scene as
    /// chosen: one job of worker 1 and of the main thread, two each of the others; when each core is there;
    /// an instant that is too early, and one that is not.
    #[test]
    fn work_fits_where_cores_are_there() {
        let scene = scene_on("galaxy-s22-exynos", &Effort::quick(1));
        let awaited = jobs(&scene).iter().filter(|job| job.is_awaited).count();
        assert_eq!((jobs(&scene).len(), awaited), (6, 3));
        let by = Nanos::from_millis(10);
        let of = |cpu| there(&scene, cpu, by).0 / 1_000;
        assert_eq!([7, 4, 6, 5].map(of), [10_000, 1_300, 4_600, 7_900]);
        let machine = lab::machine("galaxy-s22-exynos");
        assert!(!fits(&scene, &machine, Nanos::from_millis(5)));
        assert!(fits(&scene, &machine, Nanos::from_millis(12)));
    }
}
