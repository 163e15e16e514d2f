//! Owning handles: [`Job`], for the result of a typed job, and [`Event`], the right to complete an event.
//! Their types do not name the platform, so that they can be stored anywhere.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Ordering, Platform, SharedCell};

use crate::error::{ScheduleError, WaitError};
use crate::graph::{DROPPED, Listener};
use crate::store::{Body, CallSite, JobId, Slot, Ticket};
use crate::work::shared::Shared;

/// The handle of a job with a result, from [`NewJob::run`](crate::NewJob::run).
///
/// The result is given once: by [`wait`](Job::wait), [`try_wait`](Job::try_wait) or
/// [`wait_timeout`](Job::wait_timeout), or by awaiting the handle. Dropping the handle detaches the job,
/// which runs all the same; its result is dropped when it is there. A handle keeps the job system's memory,
/// but not its workers.
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
    /// The number that its waker is kept under, once it was polled.
    waker: Option<u32>,
    _result: PhantomData<fn() -> T>,
}

/// The part of a job system that handles need, without its platform, which they do not know.
pub(crate) trait Owner: Send + Sync {
    /// Waits on behalf of a call at `site`.
    fn wait(&self, site: CallSite, job: Ticket, deadline: Nanos) -> Result<bool, WaitError>;
    fn now(&self) -> Nanos;
    fn is_over(&self, job: Ticket) -> bool;
    /// The place of the result of a job that is over, or why there is none.
    fn result(&self, job: Ticket) -> Result<*mut Body, WaitError>;
    /// The handle needs the slot no longer. `taken`: the result is no longer there.
    fn let_go(&self, job: Ticket, taken: bool);
    /// Has the waker called when the job is over, instead of the one of an earlier call, which returned
    /// `earlier`. Returns the waker's number, or nothing if the job is over.
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
    fn take(self) -> Result<T, WaitError> {
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

impl<T> Future for Job<T> {
    type Output = T;

    /// Polling runs nothing and never blocks: without workers, a thread has to wait, flush or pump while a
    /// handle is awaited. The first poll registers the waker under a lock.
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
    /// The handle itself, out of a place that stays behind. (A future must not be polled again after that.)
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
    fn wait(&self, _: CallSite, _: Ticket, _: Nanos) -> Result<bool, WaitError> {
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

/// The right to complete a job from outside, from [`JobSystem::event`](crate::JobSystem::event). Waits and
/// jobs that depend on [`id`](Event::id) go on after [`complete`](Event::complete), which any thread may call
/// at any time.
///
/// Dropping an event uncompleted is an error for waits for it ([`WaitError::Abandoned`]), not a hang, and
/// cancels the jobs that depend on it.
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
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let loaded = js.event("loaded");
    /// let id = loaded.id();
    /// assert!(!js.is_done(id));
    /// loaded.complete();
    /// assert!(js.is_done(id));
    /// ```
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Completes the event. Jobs that depended on nothing else are ready then, and workers are woken for
    /// them. Runs nothing, and cannot fail: a thread without a slot is lent one for the call, for which it
    /// may have to wait. In a fork's child nothing happens.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let loaded = js.event("loaded");
    /// let shown = js.job("show").after(loaded.id()).run(|_| "shown");
    /// std::thread::spawn(move || loaded.complete()); // Any thread may do that.
    /// assert_eq!(shown.wait(), "shown");
    /// ```
    pub fn complete(self) {
        let this = ManuallyDrop::new(self);
        this.owner.complete_event(this.id.ticket(), false);
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
    }
}

impl From<&Event> for JobId {
    fn from(event: &Event) -> JobId {
        event.id()
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
    fn wait(&self, site: CallSite, job: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        let context = self.context().map_err(WaitError::from)?;
        let waited = context.wait_at(site, job, deadline);
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
            _ => Err(self.graph.failures.why(job)),
        }
    }

    fn let_go(&self, job: Ticket, taken: bool) {
        let slot = self.slot(job);
        let change = if taken {
            Slot::<P>::TAKEN.wrapping_sub(Slot::<P>::HANDLE)
        } else {
            Slot::<P>::HANDLE.wrapping_neg()
        };
        // AcqRel, partner: the finisher's own subtraction (`graph`): the last one sees both done.
        let before = slot.holders.fetch_add(change, Ordering::AcqRel);
        debug_assert!(before & Slot::<P>::HANDLE != 0, "{job:?} has no handle");
        if before & Slot::<P>::FINISHER != 0 {
            return; // Not quite over: the finisher frees the slot.
        }
        // Relaxed: see `result`.
        let failed = slot.flags.load(Ordering::Relaxed) & Slot::<P>::FAILED != 0;
        if failed {
            for payload in self.graph.failures.let_go(job).into_payloads() {
                self.panics.discard(payload);
            }
        } else if !taken {
            // SAFETY: the job is over and has not failed, so the result is there, and no other thread uses
            // it.
            let dropped = unsafe { slot.drop_result() };
            self.panics.count_drop(dropped);
        }
        slot.move_on(job);
        // Relaxed: it was there before the job was let go, which the subtraction above has acquired.
        let was_dropped = slot.pending.load(Ordering::Relaxed) >= DROPPED;
        if !was_dropped && job.generation() < Ticket::GENERATION_LAST {
            self.graph.slots.free_from_afar(job.index());
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
            let is_kept = self.graph.wakers.replace(key, job, Some(waker.clone()));
            return Ok(is_kept.then_some(key));
        }
        let context = self.context().map_err(WaitError::from)?;
        let key = self.graph.wakers.keep(job, waker.clone());
        let key = key.ok_or(WaitError::Refused(ScheduleError::TooManyEdges))?;
        match context.graph().hang_listener(job, Listener::Waker(key)) {
            Ok(Some(_)) => Ok(Some(key)),
            not_listening => {
                if let Some(waker) = self.graph.wakers.take(key) {
                    self.panics.discard(waker);
                }
                not_listening.map(|_| None).map_err(WaitError::from)
            }
        }
    }

    fn forget(&self, job: Ticket, waker: u32) {
        // A fork's child has no use for the waker, and a thread of the parent's may have held the lock.
        if !self.is_forked() {
            self.graph.wakers.replace(waker, job, None);
        }
    }

    fn complete_event(&self, job: Ticket, abandoned: bool) {
        // In a fork's child nothing comes of it.
        let Ok(context) = self.context_at_last() else {
            return;
        };
        let queue = context.queue();
        let slot = self.slot(job);
        if abandoned {
            context.graph().abandon(job);
        }
        // Relaxed, both: published by the release.
        if slot.pending.load(Ordering::Relaxed) > 1 {
            // It is held back by something else as well, and goes on being so.
            slot.flags
                .fetch_and(!Slot::<P>::IS_OPEN_EVENT, Ordering::Relaxed);
        }
        // After the end of the job system this counts down and does nothing; see `shutdown`.
        context.graph().release(job, 1, queue);
        context.graph().finish_todo(queue);
        context.publish(queue, false);
        self.end_if_deferred(&context);
    }
}
