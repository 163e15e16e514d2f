//! Owning handles: the result of a typed job, and the right to complete an event. Neither names the
//! platform in its type, so that they can be stored anywhere.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Ordering, Platform, SharedCell};

use crate::border::Body;
use crate::context::Queue;
use crate::error::{ScheduleError, WaitError};
use crate::failure::Failure;
use crate::job::{JobId, Slot, Ticket};
use crate::listen::Listener;
use crate::shared::Shared;
use crate::shutdown::DROPPED;

/// A job with a result. The result is given once: by [`wait`](Job::wait), by
/// [`try_wait`](Job::try_wait), or by awaiting the handle. Dropping it detaches the job, which runs
/// all the same.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let answer = js.job("answer").run(|_| 6 * 7);
/// assert_eq!(answer.wait(), 42);
/// ```
#[must_use = "dropping the handle throws the result away"]
pub struct Job<T> {
    owner: Arc<dyn Owner>,
    id: JobId,
    /// Once it was polled: under which number its waker is kept.
    waker: Option<u32>,
    _result: PhantomData<fn() -> T>,
}

/// What handles need of a job system whose platform they do not know.
pub(crate) trait Owner: Send + Sync {
    fn wait(&self, job: Ticket, deadline: Nanos) -> Result<bool, WaitError>;
    fn now(&self) -> Nanos;
    fn is_over(&self, job: Ticket) -> bool;
    /// Where the result of a job that is over lies, or why there is none.
    fn result(&self, job: Ticket) -> Result<*mut Body, WaitError>;
    /// The handle needs the slot no longer. `taken`: the
    /// result is no longer there.
    fn let_go(&self, job: Ticket, taken: bool);
    /// Has the waker called when the job is over, instead of the one of an earlier call (which
    /// returned `earlier`). Returns the waker's number, or nothing if the job is over.
    fn notify(
        &self,
        job: Ticket,
        waker: &Waker,
        earlier: Option<u32>,
    ) -> Result<Option<u32>, WaitError>;
    /// The handle is gone: its waker must not be called.
    fn forget(&self, job: Ticket, waker: u32);
    fn complete_event(&self, job: Ticket, abandoned: bool);
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

    /// The job's name, for dependencies and waits.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether the job is over.
    pub fn is_done(&self) -> bool {
        self.owner.is_over(self.id.ticket())
    }

    /// Waits for the job and gives its result.
    ///
    /// # Panics
    /// With the job's own panic; with the reason if it was cancelled or the wait can never end.
    pub fn wait(self) -> T {
        match self.try_wait() {
            Ok(result) => result,
            Err(WaitError::Panicked {
                payload: Some(payload),
                ..
            }) => std::panic::resume_unwind(payload),
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the job and gives its result.
    ///
    /// # Errors
    /// If the job panicked or was cancelled, or if the wait can never end.
    pub fn try_wait(self) -> Result<T, WaitError> {
        self.owner.wait(self.id.ticket(), Nanos::MAX)?;
        self.take()
    }

    /// Waits until the job is over, but not longer than `timeout`; then the handle comes back. What it runs
    /// meanwhile: see [`JobSystem::wait_timeout`](crate::JobSystem::wait_timeout).
    ///
    /// # Errors
    /// As [`try_wait`](Job::try_wait).
    pub fn wait_timeout(self, timeout: Duration) -> Result<Result<T, Job<T>>, WaitError> {
        let deadline = self.owner.now() + Nanos::from(timeout);
        match self.owner.wait(self.id.ticket(), deadline)? {
            true => self.take().map(Ok),
            false => Ok(Err(self)),
        }
    }

    /// The result of a job that is over.
    fn take(self) -> Result<T, WaitError> {
        let job = self.id.ticket();
        let result = self.owner.result(job)?;
        let this = ManuallyDrop::new(self);
        // SAFETY: the job is over and has not failed, so its body was replaced by a `T` (that is
        // what its table does), visible since `is_over`; this handle is the only one and is gone.
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

impl<T> Future for Job<T> {
    type Output = T;

    /// Polling runs nothing: a job system without workers needs somebody who waits, flushes or
    /// pumps while a handle is awaited.
    ///
    /// # Panics
    /// As [`Job::wait`].
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<T> {
        let job = self.id.ticket();
        match self.owner.notify(job, task.waker(), self.waker) {
            Ok(None) => Poll::Ready(self.give().wait()),
            Ok(pending) => {
                self.waker = pending;
                Poll::Pending
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl<T> Job<T> {
    /// The handle itself, out of a place that stays behind (a future must not be polled again after
    /// that).
    fn give(&mut self) -> Job<T> {
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

/// The owner of a handle whose result has been given.
struct Spent;

impl Owner for Spent {
    fn wait(&self, _: Ticket, _: Nanos) -> Result<bool, WaitError> {
        Ok(true)
    }
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn is_over(&self, _: Ticket) -> bool {
        true
    }
    fn result(&self, _: Ticket) -> Result<*mut Body, WaitError> {
        panic!("a job's result was asked for again after it had been given")
    }
    fn let_go(&self, _: Ticket, _: bool) {}
    fn notify(&self, _: Ticket, _: &Waker, _: Option<u32>) -> Result<Option<u32>, WaitError> {
        Ok(None)
    }
    fn forget(&self, _: Ticket, _: u32) {}
    fn complete_event(&self, _: Ticket, _: bool) {}
}

/// The right to complete a job from outside: what waits for [`id`](Event::id) waits for
/// [`complete`](Event::complete), called by any thread at any time.
///
/// Dropping it uncompleted is an error for those who wait ([`WaitError::Abandoned`]), not a hang.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let loaded = js.event("loaded");
/// let use_it = js.job("use it").after(loaded.id()).run(|_| "used");
/// assert!(!use_it.is_done());
/// loaded.complete();
/// assert_eq!(use_it.wait(), "used");
/// ```
#[must_use = "dropping an event uncompleted cancels what depends on it"]
pub struct Event {
    owner: Arc<dyn Owner>,
    id: JobId,
}

impl Event {
    pub(crate) fn new(owner: Arc<dyn Owner>, id: JobId) -> Event {
        Event { owner, id }
    }

    /// The job that is over when the event is completed.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Completes the event.
    pub fn complete(self) {
        let this = ManuallyDrop::new(self);
        this.owner.complete_event(this.id.ticket(), false);
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.owner.complete_event(self.id.ticket(), true);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?})", self.id)
    }
}

impl<P: Platform> Owner for Shared<P> {
    fn wait(&self, job: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        let context = self.context().map_err(WaitError::from)?;
        let waited = context.wait_until(job, deadline);
        self.end_if_deferred(&context);
        waited
    }

    fn now(&self) -> Nanos {
        self.platform.now()
    }

    fn is_over(&self, job: Ticket) -> bool {
        self.slot(job).has_ended(job)
    }

    fn result(&self, job: Ticket) -> Result<*mut Body, WaitError> {
        let slot = self.slot(job);
        // Relaxed: written before the job was over, which the caller has acquired. The slot is still this
        // job's.
        match slot.flags.load(Ordering::Relaxed) & Slot::<P>::FAILED {
            // SAFETY: the pointer is only made here; the caller that reads through it vouches for the result.
            0 => Ok(unsafe { slot.body.with_mut(|body| body) }),
            _ => Err(self.failures.why(job)),
        }
    }

    fn let_go(&self, job: Ticket, taken: bool) {
        let slot = self.slot(job);
        let change = match taken {
            true => Slot::<P>::TAKEN.wrapping_sub(Slot::<P>::HANDLE),
            false => Slot::<P>::HANDLE.wrapping_neg(),
        };
        // AcqRel, partner: the finisher's own subtraction (`graph`): the last one sees both done.
        let before = slot.holders.fetch_add(change, Ordering::AcqRel);
        if before & Slot::<P>::FINISHER != 0 {
            return; // Not quite over: the finisher frees the slot.
        }
        // Relaxed: see `result`.
        let failed = slot.flags.load(Ordering::Relaxed) & Slot::<P>::FAILED != 0;
        if failed {
            self.forget(self.failures.let_go(job));
        } else if !taken {
            // SAFETY: the job is over and has not failed: the result is there, and only we are.
            let dropped = unsafe { slot.drop_result() };
            self.count_drop(dropped);
        }
        slot.move_on(job);
        // Relaxed: it was there before the job was let go, which the subtraction above has acquired.
        let was_dropped = slot.pending.load(Ordering::Relaxed) >= DROPPED;
        if !was_dropped && job.generation() < Ticket::GENERATION_LAST {
            self.slots.free_from_afar(job.index());
        }
    }

    fn notify(
        &self,
        job: Ticket,
        waker: &Waker,
        earlier: Option<u32>,
    ) -> Result<Option<u32>, WaitError> {
        if self.is_over(job) {
            return Ok(None);
        }
        if let Some(key) = earlier {
            let is_kept = self.wakers.replace(key, job, Some(waker.clone()));
            return Ok(is_kept.then_some(key));
        }
        let context = self.context().map_err(WaitError::from)?;
        let key = self.wakers.keep(job, waker.clone());
        let key = key.ok_or(WaitError::Refused(ScheduleError::TooManyEdges))?;
        match context.hang_listener(job, Listener::Waker(key)) {
            Ok(Some(_)) => Ok(Some(key)),
            not_listening => {
                self.wakers
                    .take(key)
                    .into_iter()
                    .for_each(|waker| self.discard(waker));
                not_listening.map(|_| None).map_err(WaitError::from)
            }
        }
    }

    fn forget(&self, job: Ticket, waker: u32) {
        // A fork's child has no use for it, and a thread of the parent's may have held the lock.
        if !self.is_forked() {
            self.wakers.replace(waker, job, None);
        }
    }

    fn complete_event(&self, job: Ticket, abandoned: bool) {
        // In a fork's child nothing comes of it.
        let Ok(context) = self.context_at_last() else {
            return;
        };
        let queue: Queue = context.queue();
        let slot = self.slot(job);
        if abandoned {
            let label = context.label_of(slot);
            context.forget(self.failures.add(job, Failure::Abandoned { label }));
            // Relaxed: published by the release.
            slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
        }
        // Relaxed, both: published by the release.
        if slot.pending.load(Ordering::Relaxed) > 1 {
            // Something else holds it back, and goes on doing so.
            slot.flags
                .fetch_and(!Slot::<P>::IS_OPEN_EVENT, Ordering::Relaxed);
        }
        // After the end of the job system this counts down and does nothing; see `shutdown`.
        context.release(job, 1, queue);
        context.finish_todo(queue);
        context.publish(queue, false);
        self.end_if_deferred(&context);
    }
}
