//! oneTBB, which is C++: a program of its own (`peers/tbb`) does the work of each row and says how
//! long it took. `cargo xtask peers` builds it; without it, everything else is measured.
//!
//! A sample means the same as for everybody: a fresh pool, warmed up, results checked here. What the
//! program cannot know, such as how many steps a piece of work has, it is told.

mod find;
mod paced;
mod runner;

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event::Nanos;
use platform::{Os, Platform, Treatment};
use workload::busy::{Busy, chain};
use workload::graph::JobGraph;

use crate::failure::Failure;
use runner::Runner;

pub(super) use paced::{Paced, PacedWait};

/// What the runner says first, before its version: which requests it understands.
const GREETING: &str = "paceline-peer 1 oneTBB ";
/// No sample takes longer, apart from sleeping that it was told to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runner; every clone speaks to the same one, one request at a time.
#[derive(Clone)]
pub(super) struct Tbb {
    runner: Arc<Mutex<Runner>>,
    version: Arc<str>,
}

/// The time of something that was repeated.
pub(super) struct Timed {
    pub(super) time: Nanos,
    /// The result of the run that warmed up.
    pub(super) first: u64,
    /// The sum of the results of those that were timed.
    pub(super) sum: u64,
}

/// Starts the runner. `Ok(Err(why))`: there is none that can be used, which is no failure.
///
/// # Errors
/// If the environment names a runner that is not there.
pub(super) fn start() -> Result<Result<Tbb, String>, Failure> {
    let Some(program) = find::runner()? else {
        return Ok(Err(find::NOT_BUILT.into()));
    };
    let started = Runner::start(&program).and_then(Tbb::greet);
    Ok(started.map_err(|why| format!("{why}: run `cargo xtask peers` again")))
}

impl Tbb {
    /// Makes sure that the runner is of our kind and computes what we compute.
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

    /// The runner's main thread, and those that its next pool starts, are treated like this from now on; what
    /// undoes it.
    pub(super) fn treat(&self, how: &Treatment) -> Result<Treatment, String> {
        // The first thread of a process has its number.
        let thread = u64::from(self.lock().process());
        let done = Os.treat(thread, how);
        done.map_err(|refused| refused.to_string())
    }

    /// Spawns so many empty tasks, so many times; the first result is the count of a run that
    /// counts.
    pub(super) fn spawn(&self, threads: usize, jobs: u32, repeats: u32) -> Result<Timed, String> {
        let request = format!("spawn threads={threads} jobs={jobs} repeats={repeats}");
        let [time, first] = self.numbers(&request, Duration::ZERO)?;
        Ok(Timed {
            time: Nanos(time),
            first,
            sum: 0,
        })
    }

    /// The n-th Fibonacci number by fork and join.
    pub(super) fn join(&self, threads: usize, n: u32, repeats: u32) -> Result<Timed, String> {
        self.timed(&format!("join threads={threads} n={n} repeats={repeats}"))
    }

    /// Loops over items of so many steps; the result is the sum of their indices.
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
            node.deps.iter().for_each(|dep| {
                let _ = write!(text, " {dep}");
            });
        }
        for sync in syncs {
            let _ = write!(text, "\nsync {} {}", sync.after, sync.wait_for);
        }
        let [] = self.numbers(&text, Duration::ZERO)?;
        Ok(())
    }

    /// Runs frames of the loaded graph on one pool, numbered from `first`: the time and the
    /// checksum of each.
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

    /// Makes the pool that [`submit`](Tbb::submit) uses, until it is dropped.
    pub(super) fn open(&self, threads: usize) -> Result<OpenPool, String> {
        let [] = self.numbers(&format!("open threads={threads}"), Duration::ZERO)?;
        Ok(OpenPool(self.clone()))
    }

    /// Sends a request; exactly N numbers.
    fn numbers<const N: usize>(&self, request: &str, sleeps: Duration) -> Result<[u64; N], String> {
        let numbers = self.ask(request, sleeps)?;
        let count = numbers.len();
        numbers
            .try_into()
            .map_err(|_| format!("the runner gives {count} numbers instead of {N}"))
    }

    /// Sends a request for which the runner also has to sleep or to take time.
    fn ask(&self, request: &str, sleeps: Duration) -> Result<Vec<u64>, String> {
        self.lock().ask(request, PATIENCE + sleeps)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Runner> {
        // A panic between two lines leaves nothing that would be wrong later: answers are checked.
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pool of the runner that stays open, asleep.
pub(super) struct OpenPool(Tbb);

impl OpenPool {
    /// Sleeps, submits one task, computes: how long submitting kept the caller, and how long after
    /// its beginning the task started.
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
