//! The reason why a wait did not end with a job that has run.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{ScheduleError, with_name};
use crate::limits::RECORDS_MAX;
use crate::store::{JobId, Label};

/// The reason why a wait did not end with a job that has run; from
/// [`JobSystem::try_wait`](crate::JobSystem::try_wait) and [`Job::try_wait`](crate::Job::try_wait).
///
/// ```
/// use paceline::{JobSystem, WaitError};
/// let js = JobSystem::new();
/// let load = js.job("load").schedule(|_| panic!("no such file"));
/// let draw = js.job("draw").after(load).schedule(|_| ());
/// match js.try_wait(draw) {
///     Err(WaitError::Cancelled { cause, .. }) => assert_eq!(cause.name, "load"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[non_exhaustive]
pub enum WaitError {
    /// The job panicked.
    Panicked {
        /// The job.
        label: Label,
        /// The panic's message.
        message: Arc<str>,
        /// The panic's payload, for the first wait that asks; it is given out once.
        payload: Option<Box<dyn Any + Send>>,
    },
    /// The job never ran, because one it depends on failed.
    Cancelled {
        /// The job.
        label: Label,
        /// The job or event that failed first.
        cause: Label,
        /// Its message, if it was a panic.
        message: Option<Arc<str>>,
        /// Whether it is an event that was dropped without being completed.
        is_abandoned: bool,
        /// Whether it is a job that was called off ([`CancelToken`](crate::CancelToken)).
        is_called_off: bool,
    },
    /// The job did not begin, because its token was cancelled before
    /// ([`NewJob::cancelled_by`](crate::NewJob::cancelled_by)).
    CalledOff {
        /// The job.
        label: Label,
    },
    /// The wait can never end: the awaited job cannot finish before the waiting one has.
    Deadlock {
        /// The jobs of the cycle, starting with the one that waits. Each waits for the next one, the last for
        /// the first.
        cycle: Vec<Label>,
    },
    /// The id belongs to another job system.
    Foreign {
        /// The id.
        id: JobId,
    },
    /// This process is the child of a `fork`; the workers stayed with the parent. (No thread runs the jobs of
    /// a scope that was open at the fork. The child does not come to its end, and has to leave by `_exit` or
    /// `exec`.)
    Forked,
    /// An event was dropped without being completed.
    Abandoned {
        /// The event.
        label: Label,
    },
    /// The job failed, and the reason is forgotten: only those of the last 4096 failures are kept. When so
    /// many others have failed since, it may be forgotten that it failed: then a wait is `Ok`, and jobs after
    /// it run. Of a job with a handle it is never forgotten.
    Forgotten,
    /// The job system was shut down before the job could run.
    ShutDown,
    /// The waiting thread could not enter the job system, for this reason.
    Refused(ScheduleError),
}

impl WaitError {
    /// Raises the failure on behalf of the program's code that waits here: the job's own panic, if its
    /// payload is there, or a panic with this error's text.
    #[cold]
    #[track_caller]
    pub(crate) fn raise(self) -> ! {
        match self {
            WaitError::Panicked {
                payload: Some(payload),
                ..
            } => std::panic::resume_unwind(payload),
            error => panic!("{error}"),
        }
    }

    /// The payload of the job's panic, if no wait has taken it.
    pub(crate) fn into_payload(self) -> Option<Box<dyn Any + Send>> {
        match self {
            WaitError::Panicked { payload, .. } => payload,
            _ => None,
        }
    }
}

impl From<ScheduleError> for WaitError {
    fn from(error: ScheduleError) -> WaitError {
        match error {
            ScheduleError::Forked => WaitError::Forked,
            ScheduleError::Foreign { id } => WaitError::Foreign { id },
            ScheduleError::ShutDown => WaitError::ShutDown,
            other => WaitError::Refused(other),
        }
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::Panicked { label, message, .. } => {
                write!(f, "job {label} panicked: {message}")
            }
            WaitError::Cancelled {
                label,
                cause,
                message,
                is_abandoned,
                is_called_off,
                ..
            } => {
                write!(f, "job {label} was cancelled, because ")?;
                match message {
                    Some(message) => write!(f, "{cause} panicked: {message}"),
                    None if *is_abandoned => abandoned(f, cause),
                    None if *is_called_off => called_off(f, cause),
                    None => write!(f, "{cause} failed"),
                }
            }
            WaitError::CalledOff { label } => called_off(f, label),
            WaitError::Abandoned { label } => abandoned(f, label),
            WaitError::Deadlock { cycle } => {
                f.write_str("this wait can never end: ")?;
                circle(f, cycle)
            }
            WaitError::Foreign { id } => write!(
                f,
                "{id:?} belongs to another job system; wait for it on the one that made it"
            ),
            WaitError::Forked => f.write_str(
                "this process is a fork of the one that made the job system, and its workers \
                 stayed there; make a new job system in the child",
            ),
            WaitError::Refused(error) => error.fmt(f),
            WaitError::Forgotten => write!(
                f,
                "the job failed, and the reason is forgotten: only those of the last {RECORDS_MAX} failures \
                 are kept; wait for it earlier"
            ),
            WaitError::ShutDown => f.write_str("the job system was shut down before the job ran"),
        }
    }
}

/// Which job waits for which, around a circle.
pub(super) fn circle(f: &mut fmt::Formatter<'_>, labels: &[Label]) -> fmt::Result {
    for label in labels {
        write!(f, "{label} waits for ")?;
    }
    match labels.first() {
        Some(first) => write!(f, "{first}"),
        None => f.write_str("itself"),
    }
}

fn abandoned(f: &mut fmt::Formatter<'_>, event: &Label) -> fmt::Result {
    write!(f, "event {event} was dropped without being completed")
}

fn called_off(f: &mut fmt::Formatter<'_>, job: &Label) -> fmt::Result {
    write!(f, "job {job} was called off")
}

impl fmt::Debug for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_name(f, "WaitError", self)
    }
}

impl std::error::Error for WaitError {}
