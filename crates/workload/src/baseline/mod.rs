//! Three job systems to compare with, after source 001.
//!
//! The source (Unity, "Improving job system performance scaling in 2022.2, part 2: overhead", 2023)
//! describes three versions of one job system and what each costs. They are built here from that
//! description, each as plain as the description is, so that its costs can be measured on the machine
//! at hand and predicted on simulated ones. They run the same graphs with the same [`Bodies`] and
//! checksums as [`GraphScene`](crate::graph::GraphScene), and nothing else: there is no interface for
//! jobs of one's own.
//!
//! | | queues | workers are woken by | dependencies are handled by the thread that |
//! |---|---|---|---|
//! | `unity-2017.3` | one, and one stack | the main thread, each of them | takes a job not ready |
//! | `unity-2021.3` | the same | the main thread one, that one the next | the same |
//! | `unity-2022.2` | one per thread, stealing | as 2021.3 | ends the last of them |
//!
//! Each choice says whether it is the source's or ours. For all three:
//! - Ours: a job is scheduled and signalled at once. The source has batches that are flushed when the
//!   main thread waits, and does not say whether its measurements used them: [`BaselineReading`] has both.
//! - Ours: the main thread helps while it waits: it takes whatever job a worker would, and if there is none
//!   it looks again without sleeping, with a pause instruction in between. Source 000 shows both on a version
//!   of the same job system ("asks UnityMain to pick it up", "looks like a busy wait"); no source says
//!   whether it was so in each of these versions.
//! - Ours: a job belongs to a graph that is known beforehand, so nothing is allocated in a frame.
//!
//! Every word that threads share is the platform's, so that a simulated machine charges what its cache
//! line costs; words that many threads write have lines of their own.
//!
//! Jobs may schedule jobs ([`JobsBySystem`]): a job of a tree then schedules those that depend on it when its
//! own body is done, as the last thing it does, and the thread that runs it signals as the main thread would.
//!
//! Left out: the C# side, safety checks, priorities.

mod global;
mod ring;
mod semaphore;
mod stack;
mod stealing;

use std::fmt;
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Ordering, Padded, Platform, Polling, SpawnError, Thread, ThreadSpec};

use crate::busy::Busy;
use crate::graph::{Bodies, JobGraph};
use crate::scene::WrongFrame;
use global::{Global, Signals};
use stealing::Stealing;

/// One of the job systems of source 001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaselineKind {
    /// A queue, a stack and a semaphore for all; the main thread wakes every worker.
    Unity2017_3,
    /// The same, but workers wake each other ("as of 2021.3.14f1").
    Unity2021_3,
    /// A queue and a futex for each thread, stealing; workers wake each other.
    Unity2022_2,
}

impl BaselineKind {
    /// All of them, oldest first.
    pub const ALL: [BaselineKind; 3] = [
        BaselineKind::Unity2017_3,
        BaselineKind::Unity2021_3,
        BaselineKind::Unity2022_2,
    ];

    /// Its name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            BaselineKind::Unity2017_3 => "unity-2017.3",
            BaselineKind::Unity2021_3 => "unity-2021.3",
            BaselineKind::Unity2022_2 => "unity-2022.2",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<BaselineKind> {
        BaselineKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

impl fmt::Display for BaselineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the source leaves open and can be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct BaselineReading {
    /// Jobs go into a list, and are flushed when the main thread waits: all of them at once, with a signal
    /// to as many workers as can help. The source has such batches and does not say whether its
    /// measurements used them.
    pub batched: bool,
    /// 2022.2 has an entry of a queue for each piece of a parallel job, as 2017.3 has a ticket, and no
    /// blocks.
    pub by_piece: bool,
    /// Who schedules which jobs, and into which queue.
    pub scheduled: JobsBySystem,
}

/// Who schedules the jobs of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum JobsBySystem {
    /// The main thread, all of them.
    #[default]
    ByMain,
    /// The main thread those that depend on nothing, and each job those that depend on it, which so depend on
    /// nothing else. In 2022.2 they go into the queue of the thread that runs the job.
    ByJobs,
    /// The same, but in 2022.2 into the main thread's queue, with which the source compares it.
    ByJobsToMain,
}

/// A job system, as the scene and the worker threads see it.
trait Baseline: Send + Sync {
    /// Main thread: a frame begins, all jobs of the one before are over.
    fn begin(&self, frame: u64);
    /// Main thread: schedules a job of the frame; wakes nobody if [`signal`](Baseline::signal) does.
    fn schedule(&self, job: u32);
    /// Main thread: jobs with this many pieces were scheduled.
    fn signal(&self, pieces: u32);
    /// Main thread: returns when the job is over, and helps meanwhile.
    fn wait(&self, job: u32);
    /// Main thread: all jobs of the frame are over.
    fn end(&self);
    /// The life of a worker thread.
    fn work(&self, worker: usize);
    /// Makes all workers return.
    fn quit(&self);
}

fn system<P: Polling>(
    kind: BaselineKind,
    reading: BaselineReading,
    common: Common<P>,
) -> Arc<dyn Baseline> {
    match kind {
        BaselineKind::Unity2017_3 => Arc::new(Global::new(common, Signals::ByMain)),
        BaselineKind::Unity2021_3 => Arc::new(Global::new(common, Signals::Chained)),
        BaselineKind::Unity2022_2 => Arc::new(Stealing::new(common, reading.by_piece)),
    }
}

/// The parts that the job systems share.
struct Common<P: Platform> {
    platform: P,
    bodies: Arc<Bodies>,
    workers: usize,
    /// Into whose queue jobs are scheduled.
    scheduled: JobsBySystem,
    /// By job: those that it schedules; none where the main thread schedules all.
    children: Vec<Vec<u32>>,
    /// The frame being run; read by all threads, written once a frame.
    frame: Padded<P::AtomicU64>,
    quitting: Padded<P::AtomicU32>,
}

impl<P: Platform> Common<P> {
    fn new(platform: P, bodies: Arc<Bodies>, workers: usize, scheduled: JobsBySystem) -> Common<P> {
        let jobs = bodies.graph().jobs();
        let mut children = vec![Vec::new(); jobs.len()];
        if scheduled != JobsBySystem::ByMain {
            for (job, node) in (0u32..).zip(jobs) {
                assert!(
                    node.deps.len() < 2 && node.pieces() == 1,
                    "{:?} is no job of a tree",
                    node.label
                );
                if let [parent] = node.deps[..] {
                    children[parent as usize].push(job);
                }
            }
        }
        Common {
            platform,
            bodies,
            workers,
            scheduled,
            children,
            frame: Padded(P::on_own_lines(|| P::AtomicU64::new(0))),
            quitting: Padded(P::on_own_lines(|| P::AtomicU32::new(0))),
        }
    }

    fn pieces(&self, job: u32) -> u32 {
        self.bodies.graph().jobs()[job as usize].pieces()
    }

    /// The jobs that the job system has to see that they are over before this one begins.
    fn deps(&self, job: u32) -> &[u32] {
        match self.scheduled {
            JobsBySystem::ByMain => &self.bodies.graph().jobs()[job as usize].deps,
            // They are over when the job is scheduled.
            JobsBySystem::ByJobs | JobsBySystem::ByJobsToMain => &[],
        }
    }

    /// Runs pieces of a job of this frame.
    fn run(&self, job: u32, pieces: std::ops::Range<u32>) {
        // Relaxed: it was written before the job was published.
        let frame = self.frame.load(Ordering::Relaxed);
        let charge = |work| self.platform.charge(work);
        self.bodies.run(frame, job, pieces, charge);
    }

    fn is_quitting(&self) -> bool {
        // Relaxed: looked at after a signal, which orders it.
        self.quitting.load(Ordering::Relaxed) != 0
    }

    fn quit(&self) {
        self.quitting.store(1, Ordering::Relaxed);
    }
}

/// A graph that is run once per frame by one of the job systems of source 001.
///
/// ```
/// use platform::Os;
/// use paceline_workload::baseline::{BaselineKind, BaselineScene};
/// use paceline_workload::busy::Busy;
/// use paceline_workload::graph::Generator;
///
/// let graph = Generator { jobs: 50, ..Generator::default() }.generate()?;
/// let mut scene = BaselineScene::new(BaselineKind::Unity2022_2, graph, Os, 2, Busy::NONE)?;
/// for _ in 0..3 {
///     scene.run();
///     scene.verify()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropping it ends the worker threads and waits for them, but not while panicking.
pub struct BaselineScene<P: Platform> {
    kind: BaselineKind,
    batched: bool,
    /// The main thread schedules all jobs.
    by_main: bool,
    system: Arc<dyn Baseline>,
    threads: Vec<P::Thread>,
    bodies: Arc<Bodies>,
    sinks: Vec<u32>,
    /// The number of the last frame; 0 before the first.
    frame: u64,
    /// The main thread's observations at the last frame's sync points.
    observed: u64,
}

impl<P: Polling> BaselineScene<P> {
    /// A scene of this graph, with `workers` worker threads beside the calling one; bodies compute with
    /// `busy`.
    ///
    /// The source has as many workers as logical CPUs, minus one. Without workers the main thread runs
    /// everything while it waits.
    ///
    /// # Errors
    /// If the system refuses a thread.
    ///
    /// # Panics
    /// With more than 65 000 workers.
    pub fn new(
        kind: BaselineKind,
        graph: JobGraph,
        platform: P,
        workers: usize,
        busy: Busy,
    ) -> Result<BaselineScene<P>, SpawnError> {
        BaselineScene::with(
            BaselineReading::default(),
            kind,
            graph,
            platform,
            workers,
            busy,
        )
    }

    /// The same, with the source read so.
    ///
    /// # Errors
    /// As [`new`](BaselineScene::new).
    ///
    /// # Panics
    /// As [`new`](BaselineScene::new), and if jobs schedule jobs and the graph is not made of trees of single
    /// jobs, or has sync points.
    pub fn with(
        reading: BaselineReading,
        kind: BaselineKind,
        graph: JobGraph,
        platform: P,
        workers: usize,
        busy: Busy,
    ) -> Result<BaselineScene<P>, SpawnError> {
        assert!(workers <= semaphore::MAX_WORKERS, "{workers} workers");
        let sinks = graph.sinks();
        let bodies = Arc::new(Bodies::new(graph, busy));
        let scheduled = reading.scheduled;
        let by_main = scheduled == JobsBySystem::ByMain;
        assert!(
            by_main || bodies.graph().syncs().is_empty(),
            "jobs that jobs schedule have no sync points"
        );
        let common = Common::new(platform.clone(), Arc::clone(&bodies), workers, scheduled);
        let mut scene = BaselineScene {
            kind,
            batched: reading.batched,
            by_main,
            system: system(kind, reading, common),
            threads: Vec::with_capacity(workers),
            bodies,
            sinks,
            frame: 0,
            observed: 0,
        };
        for worker in 0..workers {
            let spec = ThreadSpec {
                name: format!("worker {worker}"),
                ..ThreadSpec::default()
            };
            let system = Arc::clone(&scene.system);
            let thread = platform.spawn(spec, Box::new(move || system.work(worker)))?;
            scene.threads.push(thread);
        }
        Ok(scene)
    }

    /// The job system's kind.
    pub fn kind(&self) -> BaselineKind {
        self.kind
    }

    /// The graph.
    pub fn graph(&self) -> &JobGraph {
        self.bodies.graph()
    }

    /// Runs the next frame and returns when all its jobs are over.
    pub fn run(&mut self) {
        self.run_timed(|| Nanos::ZERO);
    }

    /// As [`run`](BaselineScene::run); how long the main thread took to schedule its jobs and to signal them,
    /// its waits left out. `now` is the time, and is read at the begin and around each wait.
    pub fn run_timed(&mut self, now: impl Fn() -> Nanos) -> Nanos {
        self.frame += 1;
        self.observed = 0;
        let (mut spent, mut since) = (Nanos::ZERO, now());
        self.system.begin(self.frame);
        let graph = self.bodies.graph();
        let mut syncs = graph.syncs().iter().peekable();
        let mut batch = Vec::new();
        for (job, node) in (0u32..).zip(graph.jobs()) {
            if self.by_main || node.deps.is_empty() {
                batch.push(job);
            }
            let mut sync = syncs.next_if(|sync| sync.after == job);
            if sync.is_some() || !self.batched {
                self.flush(&mut batch);
            }
            while let Some(at) = sync {
                spent += now() - since;
                self.system.wait(at.wait_for);
                self.observed = self.bodies.observe_also(self.observed, at.wait_for);
                since = now();
                sync = syncs.next_if(|sync| sync.after == job);
            }
        }
        self.flush(&mut batch);
        spent += now() - since;
        self.sinks.iter().for_each(|&sink| self.system.wait(sink));
        self.system.end();
        spent
    }

    /// Schedules these jobs, and signals what they are.
    fn flush(&self, batch: &mut Vec<u32>) {
        let jobs = self.bodies.graph().jobs();
        let pieces: u32 = batch.iter().map(|&job| jobs[job as usize].pieces()).sum();
        for job in batch.drain(..) {
            self.system.schedule(job);
        }
        if pieces > 0 {
            self.system.signal(pieces);
        }
    }

    /// Whether the last frame was run correctly; its checksum if it was.
    ///
    /// # Errors
    /// If a job was left out or ran too early.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let got = self.bodies.checksum(self.observed);
        WrongFrame::check(self.frame, got, self.bodies.expected(self.frame))
    }
}

impl<P: Platform> Drop for BaselineScene<P> {
    fn drop(&mut self) {
        self.system.quit();
        if std::thread::panicking() {
            return;
        }
        for thread in self.threads.drain(..) {
            // A worker panics only where the job system is broken, and then it has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
