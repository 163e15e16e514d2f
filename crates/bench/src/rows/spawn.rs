//! `spawn`: empty jobs, each through a queue.

use std::sync::atomic::{AtomicU32, Ordering};

use bevy_tasks::TaskPool;
use console::Failure;
use paceline::JobSystem;
use platform::Os;

use crate::case::Case;
use crate::pools;
use crate::row::{Row, check, nanos};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::tbb::Tbb;
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "spawn",
    title: "100 000 empty jobs, each through a queue",
    means: "A scope in which the calling thread spawns 100 000 jobs that do nothing; the time from \
            the scope's beginning to its end, per job. A counting run on the same pool before each \
            sample checks that every job runs once. oneTBB runs them in a `task_group`.",
    measure,
};

/// A pool that can run jobs of their own.
trait Spawns {
    /// Runs the body `count` times, each time as a job, and returns when all are over.
    fn spawn_all(&self, count: u32, body: &(impl Fn() + Sync));
}

impl Spawns for JobSystem<Os> {
    fn spawn_all(&self, count: u32, body: &(impl Fn() + Sync)) {
        self.scope(|scope| {
            for _ in 0..count {
                scope.spawn(|_| body());
            }
        });
    }
}

impl Spawns for rayon::ThreadPool {
    fn spawn_all(&self, count: u32, body: &(impl Fn() + Sync)) {
        self.scope(|scope| {
            for _ in 0..count {
                scope.spawn(|_| body());
            }
        });
    }
}

impl Spawns for TaskPool {
    fn spawn_all(&self, count: u32, body: &(impl Fn() + Sync)) {
        self.scope(|scope| {
            for _ in 0..count {
                scope.spawn(async { body() });
            }
        });
    }
}

#[derive(Clone, Copy)]
struct SpawnSize {
    jobs: u32,
    repeats: u32,
}

fn sample(pool: &impl Spawns, size: SpawnSize) -> Sample {
    let count = AtomicU32::new(0);
    pool.spawn_all(size.jobs, &|| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    check(count.into_inner(), size.jobs)?;
    let time = nanos(|| {
        for _ in 0..size.repeats {
            pool.spawn_all(size.jobs, &|| ());
        }
    });
    Ok(vec![time / f64::from(size.jobs * size.repeats)])
}

fn tbb_sample(tbb: &Tbb, threads: usize, size: SpawnSize) -> Sample {
    let timed = tbb.spawn(threads, size.jobs, size.repeats)?;
    check(timed.first, u64::from(size.jobs))?;
    let time = timed.time.0 as f64;
    Ok(vec![time / f64::from(size.jobs * size.repeats)])
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let (threads, rounds) = (setup.threads, setup.size(25, 2));
    let real = SpawnSize {
        jobs: 100_000,
        repeats: 3,
    };
    let quick = SpawnSize {
        jobs: 1_000,
        repeats: 1,
    };
    let size = setup.size(real, quick);
    let paceline = move || sample(&pools::paceline(threads)?, size);
    let mut subjects = vec![Contestant::new(Who::Paceline, paceline)];
    if setup.peers {
        let rayon = move || sample(&pools::rayon(threads)?, size);
        let member = move || pools::on_own_thread(|| sample(&pools::rayon_member(threads)?, size));
        subjects.push(Contestant::new(Who::Rayon, rayon));
        let bevy = move || sample(&pools::bevy(threads), size);
        subjects.push(Contestant::new(Who::RayonMember, member));
        subjects.push(Contestant::new(Who::Bevy, bevy));
    }
    if let Some(tbb) = setup.tbb.clone() {
        let tbb = move || tbb_sample(&tbb, threads, size);
        subjects.push(Contestant::new(Who::Tbb, tbb));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let mut case = Case::new(ROW.name, "", "ns per job", samples);
    if setup.peers {
        case = case.with_cannot(Who::Chili, "joins only");
    }
    Ok(vec![case.with_target(|case| case.to_best_peer(setup, 0.5))])
}
