//! oneTBB, which is C++: a program of its own (`peers/tbb`) does the work of each row and reports the time.
//! `cargo xtask peers` builds it. Without it, the other subjects are measured.
//!
//! A sample is the same as for every subject: a fresh pool, warmed up, results checked here. The requests
//! tell the program what it cannot know, such as the number of steps of a piece of work.

mod find;
mod paced;
mod runner;

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event::Nanos;
use platform::{Machine, Os, SchedParams};
use workload::busy::{Busy, chain};
use workload::graph::JobGraph;

use console::Failure;
use runner::Runner;

pub(super) use paced::{Paced, PacedWait};

/// The beginning of the runner's first line, before its version: the kind of requests that it understands.
const GREETING: &str = "paceline-peer 1 oneTBB ";
/// No sample takes longer, apart from sleep that it was asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runner. Every clone speaks to the same one, one request at a time.
#[derive(Clone)]
pub(super) struct Tbb {
    runner: Arc<Mutex<Runner>>,
    version: Arc<str>,
}

/// The time of repeated work.
pub(super) struct Timed {
    pub(super) time: Nanos,
    /// The result of the run that warmed up.
    pub(super) first: u64,
    /// The sum of the results of the timed runs.
    pub(super) sum: u64,
}

/// Starts the runner. `Ok(Err(why))`: there is no usable one, which is no failure.
///
/// # Errors
/// If the environment names a runner that does not exist.
pub(super) fn start() -> Result<Result<Tbb, String>, Failure> {
    let Some(program) = find::runner()? else {
        return Ok(Err(find::NOT_BUILT.into()));
    };
    let started = Runner::start(&program).and_then(Tbb::greet);
    Ok(started.map_err(|why| format!("{why}: run `cargo xtask peers` again")))
}

impl Tbb {
    /// Checks that the runner is of this version and that its computation is the same as ours.
    fn greet(mut runner: Runner) -> Result<Tbb, String> {
        let greeting = runner.listen("its start", PATIENCE)?;
        let Some(version) = greeting.strip_prefix(GREETING) else {
            return Err(format!("the runner is not of this version ({greeting:?})"));
        };
        let tbb = Tbb {
            runner: Arc::new(Mutex::new(runner)),
            version: version.into(),
        };
        match tbb.numbers("chain steps=1000 seed=42", Duration::ZERO)? {
            [result] if result == chain(1_000, 42) => Ok(tbb),
            _ => Err("the runner computes something else".into()),
        }
    }

    /// The version of the library that the runner has loaded.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Treats the runner's main thread, and those that its next pool starts, like this from now on. Returns
    /// the treatment that undoes it.
    pub(super) fn treat(&self, how: &SchedParams) -> Result<SchedParams, String> {
        // The first thread of a process has the number of the process.
        let thread = u64::from(self.lock().process());
        let done = Os.set_sched_params(thread, how);
        done.map_err(|refused| refused.to_string())
    }

    /// Spawns `jobs` empty tasks, `repeats` times. The first result is from a run that counts its tasks.
    pub(super) fn spawn(&self, threads: usize, jobs: u32, repeats: u32) -> Result<Timed, String> {
        let request = format!("spawn threads={threads} jobs={jobs} repeats={repeats}");
        let [time, first] = self.numbers(&request, Duration::ZERO)?;
        Ok(Timed {
            time: Nanos(time),
            first,
            sum: 0,
        })
    }

    /// Computes the n-th Fibonacci number by fork and join.
    pub(super) fn join(&self, threads: usize, n: u32, repeats: u32) -> Result<Timed, String> {
        self.timed(&format!("join threads={threads} n={n} repeats={repeats}"))
    }

    /// Loops over items of `steps` steps each. The result is the sum of their indices.
    pub(super) fn sum(
        &self,
        threads: usize,
        items: u64,
        steps: u64,
        repeats: u32,
    ) -> Result<Timed, String> {
        let size = format!("items={items} steps={steps} repeats={repeats}");
        self.timed(&format!("for threads={threads} {size}"))
    }

    fn timed(&self, request: &str) -> Result<Timed, String> {
        let [time, first, sum] = self.numbers(request, Duration::ZERO)?;
        Ok(Timed {
            time: Nanos(time),
            first,
            sum,
        })
    }

    /// Gives the runner the graph that [`frames_of_graph`](Tbb::frames_of_graph) runs.
    pub(super) fn load(&self, graph: &JobGraph, busy: Busy) -> Result<(), String> {
        let (jobs, syncs) = (graph.jobs(), graph.syncs());
        let mut text = format!("load jobs={} syncs={}", jobs.len(), syncs.len());
        for node in jobs {
            let steps = busy.steps(node.cost);
            // Writing to a string does not fail.
            let _ = write!(text, "\njob {} {steps}", node.pieces());
            for dep in &node.deps {
                let _ = write!(text, " {dep}");
            }
        }
        for sync in syncs {
            let _ = write!(text, "\nsync {} {}", sync.after, sync.wait_for);
        }
        let [] = self.numbers(&text, Duration::ZERO)?;
        Ok(())
    }

    /// Runs frames of the loaded graph on one pool, numbered from `first`. Returns the time and the checksum
    /// of each.
    pub(super) fn frames_of_graph(
        &self,
        threads: usize,
        first: u64,
        frames: usize,
    ) -> Result<Vec<(Nanos, u64)>, String> {
        let request = format!("graph threads={threads} first={first} frames={frames}");
        let numbers = self.ask(&request, Duration::ZERO)?;
        let (pairs, rest) = numbers.as_chunks();
        match (pairs.len() == frames, rest) {
            (true, []) => Ok(pairs
                .iter()
                .map(|&[time, sum]| (Nanos(time), sum))
                .collect()),
            _ => Err(format!("the runner tells of other than {frames} frames")),
        }
    }

    /// Makes a pool for [`submit`](OpenPool::submit), which is open until it is dropped.
    pub(super) fn open(&self, threads: usize) -> Result<OpenPool, String> {
        let [] = self.numbers(&format!("open threads={threads}"), Duration::ZERO)?;
        Ok(OpenPool(self.clone()))
    }

    /// Sends a request. The answer has to be N numbers.
    fn numbers<const N: usize>(&self, request: &str, sleeps: Duration) -> Result<[u64; N], String> {
        let numbers = self.ask(request, sleeps)?;
        let count = numbers.len();
        numbers
            .try_into()
            .map_err(|_| format!("the runner gives {count} numbers instead of {N}"))
    }

    /// Sends a request. The runner may sleep for the time `sleeps` in addition to its work.
    fn ask(&self, request: &str, sleeps: Duration) -> Result<Vec<u64>, String> {
        self.lock().ask(request, PATIENCE + sleeps)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Runner> {
        // A panic between two lines breaks nothing later: answers are checked.
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pool of the runner that stays open, asleep.
pub(super) struct OpenPool(Tbb);

impl OpenPool {
    /// Sleeps, submits one task, and computes. Returns how long the submission kept the caller, and how long
    /// after its beginning the task started.
    pub(super) fn submit(
        &self,
        sleep: Duration,
        steps: u64,
        patience: Nanos,
    ) -> Result<[Nanos; 2], String> {
        let (sleep_ns, patience) = (sleep.as_nanos(), patience.0);
        let request = format!("submit sleep={sleep_ns} steps={steps} patience={patience}");
        let numbers: [u64; 2] = self.0.numbers(&request, sleep)?;
        Ok(numbers.map(Nanos))
    }
}

impl Drop for OpenPool {
    fn drop(&mut self) {
        // A runner that has ended has no pool either.
        let _ = self.0.ask("close", Duration::ZERO);
    }
}
