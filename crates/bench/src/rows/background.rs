//! `background`: the frames of row `frame` while long jobs without a deadline want the same threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use console::Failure;
use event::Nanos;
use paceline::{Builder, Context, JobSystem};
use workload::busy::Busy;

use super::frame_pools::{Common, Framed, Pool, contestants, four_millis};
use super::load::{by_round, mean_of, p99_of};
use super::loops::Serial;
use crate::case::{Case, Picture};
use crate::frame_loop::{FrameLoop, Frames, Pieces};
use crate::pools;
use crate::row::Row;
use crate::session::{Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "background",
    title: "the frames of row `frame`, with 8 endless jobs of 20 ms behind them",
    means: "As row `frame`, while eight jobs of 20 ms of computing each, in steps of 100 µs, want the same \
            threads; for each that ends there is another one. 5 runs of 100 frames each, on fresh pools, \
            each after 10 frames to warm up. The mean and p99 are of all 500 frames of a subject and stand \
            in the column of medians; least and worst are those of a run. *paceline*: background jobs with \
            a checkpoint after each step. *half of the workers*: without checkpoints, and at most half of \
            the workers, rounded up, run them: the frames have what is left, which with two threads is the \
            calling thread. *rayon* has one pool for both, *two pools* one of as many threads for the \
            frames and one of one thread for the jobs. A thread that sleeps between gives the pool new \
            jobs, since a rayon worker runs what its own job has spawned before all that comes from \
            outside: no frame would ever begin. Controls, which are not judged: *nothing behind*, the same \
            frames alone; *neither*, background jobs without checkpoints and without a limit. *serial* is \
            the calling thread alone, with nothing behind it; *a busy thread beside* is the same while a \
            plain thread does the steps, which is what the kernel makes of two busy threads. What the \
            jobs get is counted in steps.",
    measure,
};

/// The long jobs.
const JOBS: usize = 8;
/// A job's steps, of [`STEP`] each.
const STEPS: usize = 200;
const STEP: Nanos = Nanos::from_micros(100);

const SUBJECTS: [Who; 6] = [
    Who::Serial,
    Who::SerialBeside,
    Who::Paceline,
    Who::PacelineAlone,
    Who::PacelineHalf,
    Who::PacelineUnasked,
];

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let frames = setup.size(four_millis(100, 10), four_millis(4, 1));
    let mut all = SUBJECTS.to_vec();
    if setup.peers {
        all.extend([Who::Rayon, Who::RayonTwoPools]);
    }
    let subjects = contestants(setup, &all, frames, sample);
    let samples = interleave(setup, ROW.name, setup.size(5, 1), subjects)?;
    let times: Vec<(Who, Vec<Vec<f64>>)> = samples.iter().map(by_round).collect();
    let shares = samples.iter().filter(|samples| has_jobs(samples.who));
    let shares = shares.map(|samples| (samples.who, samples.of[0].clone()));

    let mean = Case::pooled(ROW.name, "mean", "ms", &times, mean_of).with_picture(Picture::Tails);
    let p99 = Case::pooled(ROW.name, "p99", "ms", &times, p99_of)
        .with_picture(Picture::None)
        .with_target(|case| {
            case.ratio(
                setup,
                "nothing behind",
                case.median(Who::PacelineAlone),
                1.25,
            )
        })
        .with_target(|case| {
            let ours = case.median(Who::PacelineHalf);
            let got = ours
                .zip(case.median(Who::Serial))
                .map(|(ours, one)| ours / one);
            Target::new(
                setup,
                "half of the workers / serial",
                Bound::AtMost(1.25),
                got,
            )
        });
    let cores = Case::new(ROW.name, "what the jobs get", "CPUs", shares)
        .with_picture(Picture::None)
        .with_target(|case| {
            let ours = case.median(Who::Paceline);
            let most = case.median(Who::PacelineUnasked);
            let got = ours.zip(most).map(|(ours, most)| ours / most);
            Target::new(setup, "paceline / neither", Bound::AtLeast(0.75), got)
        });
    Ok(vec![mean, p99, cores])
}

/// Whether long jobs run beside this subject's frames.
fn has_jobs(who: Who) -> bool {
    !matches!(who, Who::Serial | Who::PacelineAlone)
}

/// The CPUs that the jobs got, and the frames in milliseconds.
fn sample(who: Who, common: &Common, frames: &FrameLoop) -> Result<Vec<f64>, String> {
    let jobs = Arc::new(Jobs::new(common.busy, who == Who::Paceline));
    let begun = Instant::now();
    let (ran, took) = match who {
        Who::Serial => (frames.run(&Pool(Serial), common.busy)?, begun.elapsed()),
        Who::SerialBeside => std::thread::scope(|scope| {
            scope.spawn(|| jobs.keep_busy());
            jobs.beside(&Pool(Serial), frames)
        })?,
        Who::Rayon | Who::RayonTwoPools => beside_rayon(who, common, frames, &jobs)?,
        _ => beside_paceline(who, common, frames, &jobs)?,
    };
    let steps = jobs.steps.load(Relaxed) as f64;
    let share = steps * STEP.0 as f64 / took.as_nanos() as f64;
    let millis = ran.lasted.iter().map(|nanos| nanos / 1e6);
    Ok(std::iter::once(share).chain(millis).collect())
}

fn beside_paceline(
    who: Who,
    common: &Common,
    frames: &FrameLoop,
    jobs: &Arc<Jobs>,
) -> Result<(Frames, Duration), String> {
    let workers = common.threads - 1;
    let mut builder = Builder::new().workers(workers);
    if who == Who::PacelineHalf {
        builder = builder.background_at_most(workers.div_ceil(2).max(1));
    }
    let js: JobSystem = builder.build().map_err(|error| error.to_string())?;
    let pool = Pool(Framed(js));
    if has_jobs(who) {
        for _ in 0..JOBS {
            let jobs = jobs.clone();
            let bake = pool.0.0.job("bake").background();
            bake.schedule(move |cx| jobs.run_in_paceline(cx));
        }
    }
    jobs.beside(&pool, frames)
}

fn beside_rayon(
    who: Who,
    common: &Common,
    frames: &FrameLoop,
    jobs: &Arc<Jobs>,
) -> Result<(Frames, Duration), String> {
    let pool = Pool(pools::rayon(common.threads)?);
    let second = (who == Who::RayonTwoPools)
        .then(|| pools::rayon(1))
        .transpose()?;
    let target = second.as_ref().unwrap_or(&pool.0);
    std::thread::scope(|scope| {
        scope.spawn(|| jobs.feed(target));
        jobs.beside(&pool, frames)
    })
}

/// The long jobs of a run, and what they have done.
struct Jobs {
    busy: Busy,
    has_checkpoints: bool,
    is_over: AtomicBool,
    /// How many are scheduled or run.
    alive: AtomicUsize,
    steps: AtomicU64,
}

impl Jobs {
    fn new(busy: Busy, has_checkpoints: bool) -> Jobs {
        Jobs {
            busy,
            has_checkpoints,
            is_over: AtomicBool::new(false),
            alive: AtomicUsize::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// Runs the frames beside them, then ends them. Returns how long the frames took, with the pauses.
    fn beside(&self, pool: &dyn Pieces, frames: &FrameLoop) -> Result<(Frames, Duration), String> {
        let begun = Instant::now();
        let before = self.steps.load(Relaxed);
        let ran = frames.run(pool, self.busy);
        let (took, steps) = (begun.elapsed(), self.steps.load(Relaxed) - before);
        self.is_over.store(true, Relaxed);
        while self.alive.load(Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.steps.store(steps, Relaxed);
        Ok((ran?, took))
    }

    /// The steps of a job. Returns whether it is to be scheduled again.
    fn work(&self, after_step: impl Fn()) -> bool {
        for step in 0..STEPS {
            if self.is_over.load(Relaxed) {
                return false;
            }
            self.busy.spin_for(STEP, step as u64);
            self.steps.fetch_add(1, Relaxed);
            after_step();
        }
        true
    }

    /// Does steps in the calling thread until the run is over.
    fn keep_busy(&self) {
        self.alive.fetch_add(1, Relaxed);
        while self.work(|| ()) {}
        self.alive.fetch_sub(1, Relaxed);
    }

    fn run_in_paceline(self: Arc<Jobs>, cx: &Context<'_>) {
        self.alive.fetch_add(1, Relaxed);
        let goes_on = self.work(|| {
            if self.has_checkpoints {
                cx.checkpoint();
            }
        });
        if goes_on {
            let jobs = self.clone();
            cx.job("bake").schedule(move |cx| jobs.run_in_paceline(cx));
        }
        self.alive.fetch_sub(1, Relaxed);
    }

    /// Keeps so many jobs in the pool, from outside of it.
    fn feed(self: &Arc<Jobs>, pool: &rayon::ThreadPool) {
        while !self.is_over.load(Relaxed) {
            while self.alive.load(Relaxed) < JOBS {
                self.alive.fetch_add(1, Relaxed);
                let jobs = self.clone();
                pool.spawn(move || {
                    jobs.work(|| ());
                    jobs.alive.fetch_sub(1, Relaxed);
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every subject runs its frames, and the jobs beside them are counted and end. Method: frames and
    /// steps that take no time, on two and three threads.
    #[test]
    fn every_subject_runs_frames_and_jobs() {
        let frames = FrameLoop {
            piece: Nanos::ZERO,
            period: Nanos::from_micros(500),
            ..four_millis(20, 1)
        };
        for who in SUBJECTS.into_iter().chain([Who::Rayon, Who::RayonTwoPools]) {
            for threads in [2, 3] {
                let sample = sample(who, &Common::plain(threads), &frames).unwrap();
                assert_eq!(sample.len(), 21, "{who:?}");
                assert_eq!(sample[0] > 0.0, has_jobs(who), "{who:?}");
            }
        }
    }
}
