//! The door: [`JobSystem`].

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use event::{EventKind, Nanos};
use platform::{Limits, Os, Platform};

use crate::adapt::Passing;
use crate::builder::Builder;
use crate::context::Context;
use crate::error::{BuildError, GraphError, ScheduleError, WaitError};
use crate::frame::Frame;
use crate::handle::Event;
use crate::job::{JobId, Label, Ticket};
use crate::policy::Grain;
use crate::schedule::NewJob;
use crate::scope::Scope;
use crate::shared::Shared;
use crate::stats::Stats;

/// A job system: worker threads, and everything that is scheduled on them.
///
/// Every method may be called from any thread, also from inside jobs. A thread that never called
/// before needs no registration and may end at any time.
///
/// Dropping it runs what has been scheduled and can run, then stops the workers. What can never run any more
/// (because it depends on an event that was not completed) is dropped unrun; handles and ids of such jobs
/// report [`WaitError::ShutDown`]. Where the drop cannot wait for all that (it is part of a job, a hook or a
/// result of this very job system, or its thread is unwinding from a panic), it tells the workers to stop and
/// returns; the last one to leave does the rest, or without workers the call that ran the job. In the child
/// of a `fork` it does nothing.
pub struct JobSystem<P: Platform = Os> {
    shared: Arc<Shared<P>>,
}

impl JobSystem<Os> {
    /// A job system with default settings.
    ///
    /// # Panics
    /// If the system refuses a thread or `PACELINE_WAIT` cannot be read; see [`Builder::build`].
    pub fn new() -> JobSystem<Os> {
        Builder::new()
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Default for JobSystem<Os> {
    fn default() -> Self {
        JobSystem::new()
    }
}

impl<P: Platform> JobSystem<P> {
    pub(crate) fn from_shared(shared: Arc<Shared<P>>) -> JobSystem<P> {
        JobSystem { shared }
    }

    pub(crate) fn shared(&self) -> &Shared<P> {
        &self.shared
    }

    /// Runs `f` on this thread with a [`Context`]: for hot code that joins or schedules a lot, which
    /// then need not look up the thread's seat each time.
    ///
    /// # Panics
    /// If more threads than [`Builder::max_threads`] use the job system, or in a fork's child.
    pub fn enter<R>(&self, f: impl FnOnce(&Context<'_, P>) -> R) -> R {
        f(&self.context_or_panic())
    }

    /// Schedules a job that depends on nothing. It may start at once, on a worker; nothing runs
    /// inside this call.
    ///
    /// # Panics
    /// If the job table is full; see [`NewJob::try_schedule`].
    #[track_caller]
    pub fn schedule<F>(&self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        self.job("job").schedule(body)
    }

    /// Begins the description of a job.
    #[track_caller]
    pub fn job(&self, name: &'static str) -> NewJob<'_, P> {
        NewJob::outside(&self.shared, name)
    }

    /// A job that is over when all of these are.
    ///
    /// # Panics
    /// If the job table is full or an id is foreign.
    #[track_caller]
    pub fn combine(&self, ids: &[JobId]) -> JobId {
        let job = self.job("combine").after_all(ids).try_combine();
        job.unwrap_or_else(|error| panic!("{error}"))
    }

    /// A job that is over when the returned handle is completed.
    ///
    /// # Panics
    /// If the job table is full.
    #[track_caller]
    pub fn event(&self, name: &'static str) -> Event {
        self.job(name)
            .try_event()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes `job` wait for `after` as well, although it has been scheduled.
    ///
    /// # Errors
    /// If `job` has started, if the edge closes a cycle, or if an id is foreign.
    pub fn add_dependency(&self, job: JobId, after: JobId) -> Result<(), GraphError> {
        self.enter(|cx| cx.add_dependency(job, after))
    }

    /// Waits for a job. Meanwhile this thread runs what the job needs, and nothing else.
    ///
    /// Jobs that wait nest on the stack: about two kilobytes a level, and what their bodies take. Where less
    /// than 128 KiB are left (of small stacks: a quarter), the thread starts no further job on top of that
    /// and leaves it to the workers.
    ///
    /// # Panics
    /// With the job's own panic (the first who waits gets its payload); with the reason if the job
    /// was cancelled, the wait can never end, or the id is foreign; if there is no stack left and no worker.
    pub fn wait(&self, id: JobId) {
        match self.try_wait(id) {
            Ok(()) => {}
            Err(WaitError::Panicked {
                payload: Some(payload),
                ..
            }) => resume_unwind(payload),
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for a job.
    ///
    /// # Errors
    /// If the job panicked or was cancelled, if the wait can never end, if the id is foreign, or in
    /// a fork's child.
    pub fn try_wait(&self, id: JobId) -> Result<(), WaitError> {
        self.wait_until(id, Nanos::MAX).map(|_| ())
    }

    /// Waits for a job, but not longer than `timeout`. False: it is not over yet.
    ///
    /// An outside thread runs nothing meanwhile if there are workers, because a body that has begun cannot be
    /// cut short. Without workers, and inside a job, this thread runs what the job needs and may be late by
    /// as much as the last body takes. So does an outside thread whose last 64 waits with a timeout were in
    /// vain although each could have run something: a blocked worker may be what keeps the job from running.
    ///
    /// # Errors
    /// As [`try_wait`](JobSystem::try_wait).
    pub fn wait_timeout(&self, id: JobId, timeout: Duration) -> Result<bool, WaitError> {
        self.wait_until(id, self.shared.platform.now() + Nanos::from(timeout))
    }

    fn wait_until(&self, id: JobId, deadline: Nanos) -> Result<bool, WaitError> {
        self.check_own(id)?;
        let context = self.shared.context()?;
        let over = context.wait_until(id.ticket(), deadline)?;
        if over {
            self.shared.failures.verdict(id.ticket())?;
        }
        Ok(over)
    }

    fn check_own(&self, id: JobId) -> Result<(), WaitError> {
        if id.pool == self.shared.id {
            Ok(())
        } else {
            Err(WaitError::Foreign { id })
        }
    }

    /// Whether a job is over, well or not.
    ///
    /// # Panics
    /// If the id is foreign.
    pub fn is_done(&self, id: JobId) -> bool {
        if let Err(error) = self.check_own(id) {
            panic!("{error}");
        }
        self.shared.slot(id.ticket()).has_ended(id.ticket())
    }

    /// Wakes as many workers as can use what was scheduled by this thread so far. (The first job of
    /// a batch wakes one at once, and waiting flushes, so this is only needed before a long
    /// computation of one's own.) Without workers: runs everything that is ready.
    pub fn flush(&self) {
        self.enter(|context| {
            context.flush();
            self.shared.adapt.passes(context, Passing::Outside);
            if self.shared.crew.active() == 0 {
                while context.run_any() {}
            }
        });
    }

    /// Runs one ready job on this thread; false if there is none.
    pub fn poll(&self) -> bool {
        self.enter(|context| context.run_any())
    }

    /// Runs ready jobs on this thread until there are none or `budget` is used up; returns how many.
    /// A job that has begun is not cut short.
    pub fn pump(&self, budget: Duration) -> usize {
        let end = self.shared.platform.now() + Nanos::from(budget);
        let mut ran = 0;
        self.enter(|context| {
            while context.run_any() {
                ran += 1;
                if self.shared.platform.now() >= end {
                    break;
                }
            }
        });
        ran
    }

    /// As [`Context::scope`].
    #[track_caller]
    pub fn scope<'env, F, R>(&self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, P>) -> R,
    {
        self.context_or_panic().scope(f)
    }

    /// As [`Context::join`]; reads the thread's seat once. In a recursion join on the context.
    #[track_caller]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Context<'_, P>) -> RA,
        B: FnOnce(&Context<'_, P>) -> RB + Send,
        RB: Send,
    {
        self.context_or_panic().join(a, b)
    }

    /// As [`Context::parallel_for`].
    #[track_caller]
    pub fn parallel_for<F>(&self, range: Range<usize>, grain: Grain, body: F)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        self.context_or_panic().parallel_for(range, grain, body);
    }

    #[track_caller]
    fn context_or_panic(&self) -> Context<'_, P> {
        self.shared
            .context()
            .unwrap_or_else(|error: ScheduleError| panic!("{error}"))
    }

    /// Begins a frame that should end within `budget` from now.
    pub fn frame(&self, label: &'static str, budget: Duration) -> Frame<'_, P> {
        Frame::begin(self, label, budget)
    }

    /// How many regular workers there are (or will be, as soon as those that are one too many have
    /// finished their jobs). It follows the machine: see [`Builder::workers`].
    pub fn workers(&self) -> usize {
        self.shared.crew.target()
    }

    /// One more than the largest number that [`Context::worker`] can give.
    pub fn seats(&self) -> usize {
        self.shared.seats.limit()
    }

    /// What the job system may use of the machine, as far as it last had a look: after a flush, a wait of an
    /// outside thread or the begin of a frame, once a second at most, by a worker without work.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.limits().effective_parallelism() >= 1);
    /// ```
    pub fn limits(&self) -> Limits {
        match self.shared.is_forked() {
            // What the parent knew is behind a lock, which a thread of the parent's may have held.
            true => self.shared.platform.limits(),
            false => self.shared.adapt.limits(),
        }
    }

    /// Changes the number of workers while everything runs. Those that are too many leave when they
    /// have nothing to do; their queues are empty then. From now on that number is what the program asks
    /// for, as with [`Builder::workers`].
    ///
    /// # Errors
    /// If that is more than [`WORKERS_MAX`](crate::WORKERS_MAX), if the system refuses a thread, or in a
    /// fork's child.
    pub fn resize(&self, workers: usize) -> Result<(), BuildError> {
        if self.shared.is_forked() {
            return Err(BuildError::Forked);
        }
        let most = self.shared.crew.workers_max();
        if workers > most {
            let range = (0, most as u64);
            return Err(BuildError::OutOfRange {
                setting: "workers",
                asked: workers as u64,
                range,
            });
        }
        let resized = self.shared.adapt.resize(&*self.shared, workers);
        resized.map_err(BuildError::Thread)?;
        if self.is_recording()
            && let Ok(context) = self.shared.context()
        {
            context.record(EventKind::Resized, Ticket::NONE, workers as u64);
        }
        Ok(())
    }

    /// What has happened so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// All labels used so far; [`EventKind::Created`] refers to them by
    /// position. None in a fork's child.
    pub fn labels(&self) -> Vec<Label> {
        match self.shared.is_forked() {
            true => Vec::new(),
            false => self.shared.labels.all(),
        }
    }

    /// Switches recording on or off while everything runs; nothing happens without a
    /// [`sink`](crate::Builder::sink). Other threads see it a moment later.
    pub fn set_recording(&self, on: bool) {
        self.shared.set_recording(on);
    }

    /// Whether events are recorded at this moment.
    pub fn is_recording(&self) -> bool {
        self.shared.is_recording()
    }

    /// Whose events are on which seat: the seats, in order, each with the platform's name for the thread
    /// that sat down there last ([`Platform::thread_id`]; on Linux the kernel's number for it). Empty
    /// without a [`sink`](crate::Builder::sink).
    pub fn threads(&self) -> Vec<(u32, u64)> {
        self.shared.threads()
    }

    /// The platform this job system runs on.
    pub fn platform(&self) -> &P {
        &self.shared.platform
    }
}

impl<P: Platform> Drop for JobSystem<P> {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.shared.shut_down();
        }
    }
}
