//! What a job system is doing, as data and in sentences: [`Report`]. It is read in
//! [`work::report`](crate::work); here are its types, what follows from them ([`outlook`], [`verdict`]) and
//! its text ([`text`]).
//!
//! Nothing here knows a platform, so it is compiled once.

mod outlook;
pub(crate) mod text;
mod verdict;

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use platform::Lane;

use crate::store::{JobId, Label, Map};

/// What a job system is doing at this moment, and what holds it up; from
/// [`JobSystem::report`](crate::JobSystem::report).
///
/// Everything else runs on while a report is made. So each fact in it was true at some moment of the call,
/// and no fact is made of two jobs or two threads; but two facts may be of two moments. What changed again
/// and again while it was read is left out and counted ([`changing`](Report::changing)).
///
/// Its text, by [`Display`](fmt::Display), is for people: the [verdict](Report::verdict), then jobs, threads
/// and queues, on a few dozen lines at most. Equal jobs are counted together.
///
/// ```
/// use std::time::Duration;
/// let js = paceline::Builder::new().workers(1).build().unwrap();
/// let loaded = js.event("loaded");
/// let draw = js.job("draw").after(&loaded).schedule(|_| ());
/// let report = std::thread::scope(|threads| {
///     threads.spawn(|| js.wait(draw));
///     let report = loop {
///         let report = js.report();
///         if report.waits().any(|(_, wait)| wait.job.label.name == "draw") {
///             break report;
///         }
///     };
///     loaded.complete();
///     report
/// });
/// let verdict = report.verdict.join("\n");
/// assert!(verdict.contains("for 'draw'"), "{verdict}");
/// assert!(verdict.contains("which waits for event 'loaded'"), "{verdict}");
/// println!("{report}");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What holds the program up, or that nothing does: a sentence a line, the most important one first.
    pub verdict: Vec<String>,
    /// The jobs that are not over.
    pub jobs: Vec<LiveJob>,
    /// The workers, and the program's own threads that have used the job system.
    pub threads: Vec<LiveThread>,
    /// How many workers there are to be, as [`JobSystem::workers`](crate::JobSystem::workers).
    pub workers: usize,
    /// The length of the queue for tickets that did not fit the queue of a thread. A ticket stands for a job
    /// that is ready; some are stale, and a job may have several.
    pub injector: usize,
    /// The length of the queues of jobs that go before others: frame jobs, and jobs of graphs with
    /// [`critical_first`](crate::BuiltGraph::critical_first).
    pub front: usize,
    /// The length of the queues of lanes beside the normal one: those with a share
    /// ([`Builder::shares`](crate::Builder::shares)), and that of later frames ([`Frame`](crate::Frame)).
    pub beside: usize,
    /// The length of the queue of background jobs.
    pub backlog: usize,
    /// How many jobs and threads are left out, because they changed while they were read.
    pub changing: usize,
    /// This process is a fork of the one that made the job system. Its threads stayed there, and locks may be
    /// held here for ever: nothing was read.
    pub is_forked: bool,
}

/// A job by its name, in a [`Report`]. Shown as its label.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let gate = js.event("gate");
/// let draw = js.job("draw").after(&gate).schedule(|_| ());
/// let report = js.report();
/// let draw = report.jobs.iter().find(|job| job.id == draw).unwrap();
/// assert_eq!((draw.waits_for[0].id, draw.waits_for[0].label.name), (gate.id(), "gate"));
/// # gate.complete();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NamedJob {
    /// The job.
    pub id: JobId,
    /// Its name and the line that made it.
    pub label: Label,
}

impl fmt::Display for NamedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.label.fmt(f)
    }
}

/// A job that is not over, in a [`Report`].
///
/// ```
/// use paceline::{JobKind, JobState};
/// let js = paceline::JobSystem::new();
/// let gate = js.event("gate");
/// let gate_now = &js.report().jobs[0];
/// assert_eq!((gate_now.kind, gate_now.state), (JobKind::Event, JobState::Waiting));
/// # gate.complete();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveJob {
    /// The job.
    pub id: JobId,
    /// Its name and the line that made it.
    pub label: Label,
    /// What sort of job it is.
    pub kind: JobKind,
    /// How far it is.
    pub state: JobState,
    /// The jobs without whose end it does not go on. While it is [`Waiting`](JobState::Waiting) these are its
    /// predecessors, and of a scope its jobs. While it runs, it is the job that its thread waits for in the
    /// middle of it; of a loop, if all participants wait. Of a future that is pending it is what it awaits by
    /// handles: it may go on without some of that.
    pub waits_for: Vec<NamedJob>,
    /// The wait in the middle of it ends by itself at some time.
    pub has_deadline: bool,
    /// It is a future that has been polled, and waits to be woken.
    pub is_pending: bool,
    /// Its lane ([`NewJob::lane`](crate::NewJob::lane)), or the one that it was raised to by waits. It says
    /// nothing of an event, a combination or a scope.
    pub lane: Lane,
    /// The thread slot of the thread that alone may run it ([`NewJob::pinned_to`](crate::NewJob::pinned_to)).
    pub pinned_to: Option<usize>,
    /// The scope that it belongs to.
    pub scope: Option<JobId>,
}

/// What sort of job it is; of a [`LiveJob`].
///
/// ```
/// use paceline::JobKind;
/// let js = paceline::JobSystem::new();
/// js.scope(|_| assert_eq!(js.report().jobs[0].kind, JobKind::Scope));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum JobKind {
    /// A closure that is called once, or the half of a join that another thread may run.
    Body,
    /// A loop that several threads may share.
    Loop,
    /// An event that is not completed.
    Event,
    /// A future ([`JobSystem::spawn_future`](crate::JobSystem::spawn_future)).
    Future,
    /// A job without a body that is over when others are: a combination, or an event that is completed.
    Combination,
    /// A scope.
    Scope,
    /// A run of a graph that is built once ([`BuiltGraph`](crate::BuiltGraph)).
    Graph {
        /// How many of its nodes are not over. Those that nothing holds back are jobs; the others are not,
        /// and are not listed.
        nodes_left: usize,
    },
}

/// How far a job is; of a [`LiveJob`].
///
/// ```
/// use paceline::JobState;
/// let js = paceline::Builder::new().workers(0).build().unwrap();
/// let job = js.schedule(|_| ());
/// assert_eq!(js.report().jobs[0].state, JobState::Ready);
/// js.wait(job);
/// assert!(js.report().jobs.is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum JobState {
    /// Something holds it back: [`LiveJob::waits_for`], its own completion (an event), its closure (a scope),
    /// or a thread that is just making or releasing it.
    Waiting,
    /// Nothing holds it back, and no thread has begun with it.
    Ready,
    /// A thread runs it.
    Running {
        /// The thread slot of that thread. `None` if the thread has only just begun.
        thread: Option<usize>,
    },
    /// Threads share it, or may do so.
    Open {
        /// How many threads take part.
        participants: usize,
    },
}

/// A thread that works for a job system or has used it, in a [`Report`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let names = js.job("names").run(|cx| {
///     let report = cx.report();
///     let me = report.threads.iter().find(|thread| thread.slot == cx.worker()).unwrap();
///     me.runs.iter().map(|job| job.label.name).collect::<Vec<_>>()
/// });
/// assert_eq!(names.wait(), ["names"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveThread {
    /// Its thread slot, as [`Context::worker`](crate::Context::worker).
    pub slot: usize,
    /// Whether it is a worker.
    pub kind: LiveThreadKind,
    /// Its name, if the system has one for it. Some systems cut names (Linux: 15 bytes).
    pub name: Option<String>,
    /// What it does.
    pub activity: Activity,
    /// The jobs that it is in the middle of, in no order. More than one only if it runs one inside a wait of
    /// another.
    pub runs: Vec<NamedJob>,
    /// Its innermost wait. With [`Activity::Runs`] it runs something inside of that wait.
    pub wait: Option<LiveWait>,
    /// The length of its queue of tickets.
    pub queue: usize,
    /// The length of its queue of tickets from outside any job.
    pub inbox: usize,
}

/// Whether a thread is a worker; of a [`LiveThread`].
///
/// ```
/// use paceline::LiveThreadKind;
/// let js = paceline::Builder::new().workers(0).build().unwrap();
/// js.enter(|cx| assert_eq!(cx.report().threads[0].kind, LiveThreadKind::Outside));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LiveThreadKind {
    /// A worker.
    Worker,
    /// A spare, which works while all workers are blocked in waits, or one has made way.
    Spare,
    /// A thread of the program's.
    Outside,
}

/// What a thread does; of a [`LiveThread`].
///
/// ```
/// use paceline::Activity;
/// let js = paceline::Builder::new().workers(0).build().unwrap();
/// js.enter(|cx| assert_eq!(cx.report().threads[0].activity, Activity::Outside));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Activity {
    /// It is in the middle of a job, and does not wait.
    Runs,
    /// It waits for a job: parked, or spinning.
    Waits,
    /// A worker that rests in the middle of a background job, at a
    /// [`checkpoint`](crate::Context::checkpoint), while a spare does more urgent work.
    MakesWay,
    /// A worker that looks for work, spins for want of it, or is between two jobs.
    Searches,
    /// A worker that sleeps until there is work.
    Sleeps,
    /// A spare that is not needed.
    Rests,
    /// A thread of the program's that is in code of its own.
    Outside,
}

/// A wait for a job, of a [`LiveThread`].
///
/// ```
/// use std::time::Duration;
/// let js = paceline::JobSystem::new();
/// let gate = js.event("gate");
/// let id = gate.id();
/// let report = std::thread::scope(|threads| {
///     threads.spawn(|| js.wait_timeout(id, Duration::from_secs(60)));
///     let report = loop {
///         let report = js.report();
///         if report.waits().any(|(_, wait)| wait.lasted.is_some()) {
///             break report;
///         }
///     };
///     gate.complete();
///     report
/// });
/// let (_, wait) = report.waits().next().unwrap();
/// assert!(wait.time_left.unwrap() <= Duration::from_secs(60));
/// println!("called at {}", wait.site.unwrap());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveWait {
    /// The job.
    pub job: NamedJob,
    /// For how long it has had nothing to run. `None` if the wait has not rested yet: then nothing more is
    /// known of it.
    pub lasted: Option<Duration>,
    /// The time until it gives up. `None` if it does not.
    pub time_left: Option<Duration>,
    /// Where the program called it. `None` if it is part of another call: the end of a scope, join or loop.
    pub site: Option<&'static Location<'static>>,
}

impl Report {
    /// The threads that are in a wait, and what they wait for.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// for (thread, wait) in js.report().waits() {
    ///     println!("{thread} waits for {}", wait.job);
    /// }
    /// ```
    pub fn waits(&self) -> impl Iterator<Item = (&LiveThread, &LiveWait)> {
        let threads = self.threads.iter();
        threads.filter_map(|thread| Some((thread, thread.wait.as_ref()?)))
    }

    /// A report of a fork's child, where nothing may be read.
    pub(crate) fn of_fork() -> Report {
        Report {
            is_forked: true,
            verdict: vec![
                "this process is a fork of the one that made the job system, whose threads and jobs stayed \
                 there"
                    .to_owned(),
            ],
            ..Report::empty()
        }
    }

    /// A report in which nothing is.
    pub(crate) fn empty() -> Report {
        Report {
            verdict: Vec::new(),
            jobs: Vec::new(),
            threads: Vec::new(),
            workers: 0,
            injector: 0,
            front: 0,
            beside: 0,
            backlog: 0,
            changing: 0,
            is_forked: false,
        }
    }

    /// Completes a report whose facts are filled in. `confirm`: reads a job again; whether it still waits for
    /// the other one.
    pub(crate) fn conclude(&mut self, confirm: impl Fn(JobId, JobId) -> bool) {
        self.fill_in_scopes();
        self.fill_in_threads();
        self.verdict = verdict::of(self, &confirm);
    }

    /// A scope waits for its jobs.
    fn fill_in_scopes(&mut self) {
        let places = places(&self.jobs);
        for index in 0..self.jobs.len() {
            let job = &self.jobs[index];
            let child = job.named();
            if let Some(scope) = job.scope.and_then(|scope| places.get(&scope)) {
                self.jobs[*scope].waits_for.push(child);
            }
        }
    }

    /// A thread runs what says that it is run by that thread.
    fn fill_in_threads(&mut self) {
        for job in &self.jobs {
            if let JobState::Running { thread: Some(slot) } = job.state
                && let Some(thread) = self.threads.iter_mut().find(|thread| thread.slot == slot)
            {
                thread.runs.push(job.named());
            }
        }
        for thread in &mut self.threads {
            let rests = matches!(thread.activity, Activity::Waits | Activity::MakesWay);
            if !thread.runs.is_empty() && !rests {
                thread.activity = Activity::Runs;
            }
        }
    }
}

/// The place of each job in the list.
fn places(jobs: &[LiveJob]) -> Map<JobId, usize> {
    let places = jobs.iter().enumerate();
    places.map(|(place, job)| (job.id, place)).collect()
}

impl LiveJob {
    /// The job by its name, as others that wait for it have it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let draw = js.job("draw").after(&gate).schedule(|_| ());
    /// let report = js.report();
    /// let find = |id| report.jobs.iter().find(|job| job.id == id).unwrap();
    /// assert_eq!(find(draw).waits_for, [find(gate.id()).named()]);
    /// # gate.complete();
    /// ```
    pub fn named(&self) -> NamedJob {
        NamedJob {
            id: self.id,
            label: self.label,
        }
    }
}
