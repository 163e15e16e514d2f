//! Jobs that are awaited: a handle is a future, and so are its outcome and the end of any job.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use super::job::Job;
use super::owner::{Owner, given_before};
use crate::error::WaitError;
use crate::store::JobId;

impl<T> Job<T> {
    /// A future of the result, or of the error that says why there is none. (To await the handle itself
    /// panics then.)
    ///
    /// Dropping the future detaches the job, as for the handle.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| -> u32 { panic!("no such file") });
    /// let shown = js.spawn_future("show", async {
    ///     match load.outcome().await {
    ///         Ok(number) => number.to_string(),
    ///         Err(error) => error.to_string(),
    ///     }
    /// });
    /// assert!(shown.wait().ends_with("panicked: no such file"));
    /// ```
    pub fn outcome(self) -> Outcome<T> {
        Outcome(Some(self))
    }

    /// Has the waker called when the job is over, or gives the result or the error if it is.
    fn poll_outcome(&mut self, task: &task::Context<'_>) -> Poll<Result<T, WaitError>> {
        let job = self.id().ticket();
        match self.owner.notify(job, task.waker(), self.waker) {
            Ok(None) => Poll::Ready(self.give().take()),
            Ok(pending) => {
                self.waker = pending;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<T> Future for Job<T> {
    type Output = T;

    /// Polling runs nothing and never blocks: without workers, a thread has to wait, flush or pump while a
    /// handle is awaited. The first poll registers the waker under a lock.
    ///
    /// # Panics
    /// As [`Job::wait`].
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<T> {
        self.poll_outcome(task).map(|outcome| match outcome {
            Ok(result) => result,
            Err(error) => error.raise(),
        })
    }
}

/// A future of a job's result or failure, from [`Job::outcome`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let outcome = js.job("answer").run(|_| 42).outcome();
/// let doubled = js.spawn_future("double", async { outcome.await.map(|number| 2 * number) });
/// assert_eq!(doubled.wait().unwrap(), 84);
/// ```
#[derive(Debug)]
#[must_use = "dropping the future throws the result away"]
pub struct Outcome<T>(Option<Job<T>>);

impl<T> Future for Outcome<T> {
    type Output = Result<T, WaitError>;

    /// As for a [`Job`].
    ///
    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let Some(job) = &mut self.0 else {
            given_before()
        };
        let polled = job.poll_outcome(task);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

/// A future of the end of a job, from [`JobSystem::when_done`](crate::JobSystem::when_done). Any number of
/// them may be pending for one job.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let save = js.job("save").schedule(|_| println!("saved"));
/// let (first, second) = (js.when_done(save), js.when_done(save));
/// let both = js.spawn_future("both", async { first.await.and(second.await) });
/// both.wait().expect("to save does not panic");
/// ```
#[must_use = "a future does nothing unless it is awaited"]
pub struct WhenDone {
    owner: Arc<dyn Owner>,
    id: JobId,
    /// The number that its waker is kept under, once it was polled.
    waker: Option<u32>,
}

impl WhenDone {
    pub(crate) fn new(owner: Arc<dyn Owner>, id: JobId) -> WhenDone {
        WhenDone {
            owner,
            id,
            waker: None,
        }
    }
}

impl Future for WhenDone {
    type Output = Result<(), WaitError>;

    /// As for a [`Job`]. Once it is ready it stays so.
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let job = match self.owner.ticket_of(self.id) {
            Ok(Some(job)) => job,
            never_made => return Poll::Ready(never_made.map(|_| ())),
        };
        match self.owner.notify(job, task.waker(), self.waker) {
            Ok(None) => {
                self.waker = None;
                Poll::Ready(self.owner.verdict(job))
            }
            Ok(pending) => {
                self.waker = pending;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for WhenDone {
    fn drop(&mut self) {
        if let Some(waker) = self.waker {
            self.owner.forget(self.id.ticket(), waker);
        }
    }
}

impl std::fmt::Debug for WhenDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WhenDone({:?})", self.id)
    }
}
