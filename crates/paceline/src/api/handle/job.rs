//! [`Job`]: the handle of a job with a result.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use event::Nanos;

use super::owner::{Owner, Spent};
use crate::error::WaitError;
use crate::store::{Body, JobId, Ticket};

/// The handle of a job with a result, from [`NewJob::run`](crate::NewJob::run); of an event with a value,
/// from
/// [`JobSystem::event_with`](crate::JobSystem::event_with); or of a future that runs as a job, from
/// [`JobSystem::spawn_future`](crate::JobSystem::spawn_future).
///
/// The result is given once: by [`wait`](Job::wait), [`try_wait`](Job::try_wait) or
/// [`wait_timeout`](Job::wait_timeout); by awaiting the handle, or its [`outcome`](Job::outcome); or to a
/// successor, by [`then`](Job::then) or [`NewJob::with`](crate::NewJob::with). Dropping the handle detaches
/// the job, which runs all the same; its result is dropped when it is there. A handle keeps the job system's
/// memory, but not its workers.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let answer = js.job("answer").run(|_| 6 * 7);
/// assert_eq!(answer.wait(), 42);
/// ```
#[must_use = "dropping the handle throws the result away"]
pub struct Job<T> {
    pub(super) owner: Arc<dyn Owner>,
    id: JobId,
    /// The number that its waker is kept under, once it was polled.
    pub(super) waker: Option<u32>,
    _result: PhantomData<fn() -> T>,
}

impl<T> From<&Job<T>> for JobId {
    fn from(job: &Job<T>) -> JobId {
        job.id()
    }
}

impl<T> Job<T> {
    pub(crate) fn new(owner: Arc<dyn Owner>, id: JobId) -> Job<T> {
        Job {
            owner,
            id,
            waker: None,
            _result: PhantomData,
        }
    }

    /// The job's id, for dependencies and waits.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| 42);
    /// js.wait(js.job("draw").after(load.id()).schedule(|_| ()));
    /// assert!(load.is_done());
    /// ```
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether the job is over; as [`JobSystem::is_done`](crate::JobSystem::is_done). Never blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let load = js.job("load").after(gate.id()).run(|_| 42);
    /// assert!(!load.is_done());
    /// gate.complete();
    /// assert_eq!(load.wait(), 42);
    /// ```
    pub fn is_done(&self) -> bool {
        self.owner.is_over(self.id.ticket())
    }

    /// Waits for the job and gives its result. Meanwhile the thread runs what the job needs, as in
    /// [`JobSystem::wait`](crate::JobSystem::wait).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| vec![1, 2, 3]);
    /// assert_eq!(load.wait().len(), 3);
    /// ```
    ///
    /// # Panics
    /// With the job's own panic; with the reason if the job was cancelled or the wait can never end.
    #[track_caller]
    pub fn wait(self) -> T {
        match self.try_wait() {
            Ok(result) => result,
            Err(error) => error.raise(),
        }
    }

    /// As [`wait`](Job::wait), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let job = js.job("load").run(|_| -> u32 { panic!("no such file") });
    /// let error = job.try_wait().unwrap_err();
    /// assert!(error.to_string().ends_with("panicked: no such file"));
    /// ```
    ///
    /// # Errors
    /// If the job panicked or was cancelled, if the wait can never end, or in a fork's child.
    #[track_caller]
    pub fn try_wait(self) -> Result<T, WaitError> {
        let site = Location::caller();
        self.owner.wait(site, self.id.ticket(), Nanos::MAX)?;
        self.take()
    }

    /// Waits for the job, but not longer than `timeout`. Gives the result, or the handle back if the job is
    /// not over yet. [`JobSystem::wait_timeout`](crate::JobSystem::wait_timeout) says which jobs the thread
    /// runs meanwhile.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let job = js.job("job").after(gate.id()).run(|_| 42);
    /// let job = job.wait_timeout(Duration::from_millis(1)).unwrap().unwrap_err();
    /// gate.complete();
    /// assert_eq!(job.wait(), 42);
    /// ```
    ///
    /// # Errors
    /// As [`try_wait`](Job::try_wait).
    #[track_caller]
    pub fn wait_timeout(self, timeout: Duration) -> Result<Result<T, Job<T>>, WaitError> {
        let deadline = self.owner.now() + Nanos::from(timeout);
        let site = Location::caller();
        if self.owner.wait(site, self.id.ticket(), deadline)? {
            self.take().map(Ok)
        } else {
            Ok(Err(self))
        }
    }

    /// The result of a job that is over.
    pub(super) fn take(self) -> Result<T, WaitError> {
        let job = self.id.ticket();
        let result = self.owner.result(job)?;
        let this = ManuallyDrop::new(self);
        // SAFETY: the job is over and has not failed, so its table has replaced its body by a `T`, visible
        // since `is_over`; this handle is the only one and is gone.
        let value = unsafe { Body::take::<T>(result) };
        this.owner.let_go(job, true);
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
        Ok(value)
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        let job = self.id.ticket();
        if let Some(waker) = self.waker {
            self.owner.forget(job, waker);
        }
        self.owner.let_go(job, false);
    }
}

impl<T> Job<T> {
    /// The owner and the job, for a caller that takes the handle's place: it takes the value, or lets go.
    pub(crate) fn into_parts(self) -> (Arc<dyn Owner>, Ticket) {
        let job = self.id.ticket();
        let this = ManuallyDrop::new(self);
        if let Some(waker) = this.waker {
            this.owner.forget(job, waker);
        }
        // SAFETY: `this` is never used again; its owner moves out of it.
        (unsafe { std::ptr::read(&this.owner) }, job)
    }

    /// The job system that the handle belongs to.
    pub(crate) fn owner(&self) -> &dyn Owner {
        &*self.owner
    }

    /// The handle itself, out of a place that stays behind. (A future must not be polled again after that.)
    pub(super) fn give(&mut self) -> Job<T> {
        let spent = Job {
            owner: Arc::new(Spent),
            id: self.id,
            waker: None,
            _result: PhantomData,
        };
        std::mem::replace(self, spent)
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({:?})", self.id)
    }
}
