//! The errors of a job system, and the reports that it gives to hooks.

mod wait;

use std::fmt;
use std::sync::Arc;

use platform::{CpuSet, SignalError, SpawnError};

use crate::access::AccessError;
use crate::access::MissingItems;
use crate::store::{JobId, Label};

pub use wait::WaitError;

/// The value, or a panic that says why there is none, at the place of the caller.
#[track_caller]
#[inline]
pub(crate) fn or_panic<T, E: fmt::Display>(result: Result<T, E>) -> T {
    // No closure: the caller's place does not reach into one.
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// What `unwrap` shows of an error: its sentence, after the name of its type.
pub(crate) fn with_name(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    error: &dyn fmt::Display,
) -> fmt::Result {
    write!(f, "{name}({error})")
}

/// The reason why a job could not be scheduled; from [`NewJob::try_schedule`](crate::NewJob::try_schedule).
///
/// ```
/// use paceline::{Builder, ScheduleError};
/// let js = Builder::new().workers(0).max_jobs(1).build().unwrap();
/// let error = loop {
///     if let Err(error) = js.job("one more").try_schedule(|_| ()) {
///         break error;
///     }
/// };
/// assert_eq!(error, ScheduleError::Full { max_jobs: 1 });
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// All slots hold live jobs.
    Full {
        /// The limit, from [`Builder::max_jobs`](crate::Builder::max_jobs).
        max_jobs: u32,
    },
    /// All thread slots for outside threads are taken by threads that have called the job system and not
    /// ended.
    TooManyThreads {
        /// The limit, from [`Builder::max_threads`](crate::Builder::max_threads).
        max_threads: usize,
    },
    /// There is no room for a further unfinished dependency.
    TooManyEdges,
    /// A dependency belongs to another job system.
    Foreign {
        /// The id.
        id: JobId,
    },
    /// This process is the child of a `fork`; see [`WaitError::Forked`].
    Forked,
    /// The sink of this job system made the call, while the calling thread was recording an event.
    InSink,
    /// The calling thread is ending, and has given its thread slot back. (Not on Unix, where that is the last
    /// thing that a thread does.)
    ThreadEnds,
    /// The job system has ended. Only handles are left of it.
    ShutDown,
    /// A range has more items than the limit, 2³² − 1.
    TooLong {
        /// Its number of items.
        items: usize,
    },
    /// The thread that the job is pinned to ([`NewJob::pinned_to`](crate::NewJob::pinned_to)) takes no such
    /// jobs any more, or belongs to another job system.
    NoSuchThread,
    /// A loop is pinned to a thread. Its parts are for all threads.
    PinnedLoop,
    /// A run of a graph has data that is shorter than a job declares.
    MissingItems(Box<MissingItems>),
    /// It declares data that it must not touch, as things are.
    Access(AccessError),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Full { max_jobs } => write!(
                f,
                "{max_jobs} jobs are waiting or running, the limit of this job system; wait for \
                 some, or raise max_jobs"
            ),
            ScheduleError::TooManyThreads { max_threads } => {
                write!(
                    f,
                    "more than {max_threads} outside threads have called this job system and not ended; \
                     raise max_threads"
                )
            }
            ScheduleError::TooManyEdges => f.write_str(
                "too many unfinished dependencies for this job system; combine some, or raise max_jobs",
            ),
            ScheduleError::Foreign { id } => write!(
                f,
                "{id:?} belongs to another job system; a job can only depend on jobs of its own"
            ),
            ScheduleError::Forked => WaitError::Forked.fmt(f),
            ScheduleError::InSink => f.write_str(
                "a sink cannot call the job system whose event it is recording; hand the event to another \
                 thread",
            ),
            ScheduleError::ThreadEnds => f.write_str(
                "this thread is ending: a destructor of one of its thread-locals cannot use the job system",
            ),
            ScheduleError::ShutDown => {
                f.write_str("the job system has ended, and its handles can schedule nothing more")
            }
            ScheduleError::TooLong { items } => {
                write!(
                    f,
                    "a range of {items} items is too long; cut it into parts below 2^32"
                )
            }
            ScheduleError::NoSuchThread => f.write_str(
                "the thread that the job is pinned to has dropped its PinnedThread, or is of another \
                 job system",
            ),
            ScheduleError::PinnedLoop => f.write_str(
                "a loop cannot be pinned to a thread; pin a job that goes through the items itself",
            ),
            ScheduleError::MissingItems(missing) => missing.fmt(f),
            ScheduleError::Access(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_name(f, "ScheduleError", self)
    }
}

impl std::error::Error for ScheduleError {}

/// The reason why a dependency could not be added; from
/// [`JobSystem::add_dependency`](crate::JobSystem::add_dependency).
///
/// ```
/// use paceline::{GraphError, JobSystem};
/// let js = JobSystem::new();
/// let (done, next) = (js.schedule(|_| ()), js.schedule(|_| ()));
/// js.wait(done);
/// assert_eq!(js.add_dependency(done, next), Err(GraphError::TooLate { id: done, label: None }));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The job has already started or finished; it can wait for nothing any more. Scopes and runs of graphs
    /// have started when there is an id for them.
    TooLate {
        /// The job that was to wait.
        id: JobId,
        /// Its label, if it is not over.
        label: Option<Label>,
    },
    /// The dependency would close a cycle.
    Cycle {
        /// The jobs of the cycle. Each waits for the next one, the last for the first.
        cycle: Vec<Label>,
    },
    /// There is no room for a further unfinished dependency.
    TooManyEdges,
    /// The job that is to be completed by another one is no event.
    NoEvent {
        /// That job.
        id: JobId,
    },
    /// An id belongs to another job system.
    Foreign {
        /// The id.
        id: JobId,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::TooLate { id, label } => {
                match label {
                    Some(label) => write!(f, "job {label} has already started")?,
                    None => write!(f, "{id:?} is already over")?,
                }
                f.write_str(
                    "; give it its dependencies when scheduling, or hold it back with an event",
                )
            }
            GraphError::Cycle { cycle } => {
                f.write_str("this dependency closes a cycle: ")?;
                wait::circle(f, cycle)
            }
            GraphError::TooManyEdges => ScheduleError::TooManyEdges.fmt(f),
            GraphError::NoEvent { id } => {
                write!(f, "{id:?} is no event or latch, so no job completes it")
            }
            GraphError::Foreign { id } => {
                write!(f, "{id:?} belongs to another job system")
            }
        }
    }
}

impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_name(f, "GraphError", self)
    }
}

impl std::error::Error for GraphError {}

/// A panic that no wait reports: there was none for the job, nor for the first job to be cancelled because of
/// it that no further job depends on. Given to
/// [`Builder::on_unwaited_panic`](crate::Builder::on_unwaited_panic), once a panic.
///
/// ```
/// use paceline::{Builder, UnwaitedPanic};
/// let log = |panic: &UnwaitedPanic| eprintln!("{} panicked: {}", panic.label, panic.message);
/// let js = Builder::new().on_unwaited_panic(log).build().unwrap();
/// # let _ = js;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwaitedPanic {
    /// The job.
    pub label: Label,
    /// The panic's message.
    pub message: Arc<str>,
}

/// Work is ready that no thread may run: every worker waits inside a job, and no further spare can be
/// started. Given to [`Builder::on_stuck`](crate::Builder::on_stuck).
///
/// ```
/// use paceline::{Builder, Stuck};
/// let log = |stuck: &Stuck| eprintln!("{stuck}");
/// let js = Builder::new().max_spares(4).on_stuck(log).build().unwrap();
/// # let _ = js;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stuck {
    /// The number of workers that wait, spares included.
    pub waiting: usize,
    /// Why there is no further spare.
    pub why: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "all {} workers wait inside jobs while other work is ready, and no spare can be started: {}; \
             schedule with `after` instead of waiting inside of jobs, or raise max_spares",
            self.waiting, self.why
        )
    }
}

/// The reason why a job system could not be made or resized; from
/// [`Builder::build`](crate::Builder::build).
///
/// ```
/// use paceline::{BuildError, Builder};
/// let refused = Builder::new().workers(5000).build();
/// let Err(BuildError::OutOfRange { setting, range, .. }) = refused else {
///     panic!("so many are too many");
/// };
/// assert_eq!((setting, range), ("workers", (0, 1024)));
/// ```
#[non_exhaustive]
pub enum BuildError {
    /// A setting is out of its range.
    OutOfRange {
        /// The name of the setting.
        setting: &'static str,
        /// The value that was asked for.
        asked: u64,
        /// The least and the largest possible value.
        range: (u64, u64),
    },
    /// An environment variable has a value that cannot be read. The text names the variable and the values
    /// that it may have.
    Environment(String),
    /// None of the CPUs that workers are to run on may be used.
    NoCpu {
        /// The CPUs that were asked for.
        asked: CpuSet,
        /// The CPUs that may be used.
        usable: CpuSet,
    },
    /// A setting needs what is not part of this program: feature `adapt` is off.
    NotCompiledIn {
        /// The name of the setting.
        setting: &'static str,
    },
    /// The system refused a thread.
    Thread(SpawnError),
    /// The process cannot listen to the signal of [`Builder::report_on`](crate::Builder::report_on), or of
    /// `PACELINE_STUCK`.
    Signal(SignalError),
    /// This process is a fork of the one that made the job system, which cannot be resized here.
    Forked,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::OutOfRange {
                setting,
                asked,
                range: (low, high),
            } => {
                write!(f, "{setting} must be between {low} and {high}, not {asked}")
            }
            BuildError::Environment(text) => f.write_str(text),
            BuildError::NoCpu { asked, usable } => write!(
                f,
                "workers are to run on CPUs {asked} (Builder::cpus, PACELINE_CPUS), but only {usable} \
                 may be used: name one of these"
            ),
            BuildError::NotCompiledIn { setting } => write!(
                f,
                "{setting} needs adaptation to the machine, which is not compiled in: build with feature \
                 `adapt` of crate paceline, or leave the setting out"
            ),
            BuildError::Thread(error) => error.fmt(f),
            BuildError::Signal(error) => error.fmt(f),
            BuildError::Forked => WaitError::Forked.fmt(f),
        }
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_name(f, "BuildError", self)
    }
}

impl std::error::Error for BuildError {}
