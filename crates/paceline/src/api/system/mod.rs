//! The job system as a program sees it: [`JobSystem`].

mod ids;
mod recording;
mod report;
mod threads;
#[cfg(feature = "trace")]
mod trace;
mod values;
mod wait;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use event::EventKind;
use platform::{Lane, Limits, Machine, Os, Platform};

use super::builder::Builder;
use super::frame::Frame;
use super::handle::Event;
use super::origin::Origin;
use super::over::{Loop, LoopData, Seal};
use super::schedule::NewJob;
use super::trace::{Pattern, Trace};
use crate::error::{BuildError, GraphError, ScheduleError, or_panic};
use crate::policy::Grain;
use crate::stats::Stats;
use crate::store::{JobId, Name, Ticket};
use crate::work::Context;
use crate::work::Scope;
use crate::work::Telling;
use crate::work::shared::Shared;

/// A job system: worker threads, and everything that is scheduled on them.
///
/// Every method may be called from any thread, also from inside jobs. A thread needs no registration before
/// its first call, and may end at any time.
///
/// Dropping it runs all scheduled jobs that can run, and then stops the workers. A job that can never run any
/// more, because it depends on an event that was not completed, is dropped unrun, and so is a future that is
/// pending; handles and ids of such jobs report [`WaitError::ShutDown`](crate::WaitError::ShutDown). The drop
/// cannot wait for all that if it is part of a job, a hook or a result of this very job system, or if its
/// thread is unwinding from a panic. Then it tells the workers to stop and returns. The last worker to leave
/// does the rest, or without workers the call that ran the job. In the child of a `fork` the drop does
/// nothing.
///
/// ```
/// use paceline::{Grain, JobSystem};
/// let js = JobSystem::new();
/// let load = js.job("load").schedule(|_| println!("loading"));
/// let draw = js.job("draw").after(load).schedule(|_| println!("drawing"));
/// js.wait(draw);
/// js.parallel_for(0..1000, Grain::Auto, |part, _| assert!(part.end <= 1000));
/// ```
pub struct JobSystem<P: Platform = Os> {
    shared: Arc<Shared<P>>,
    /// Not the owner: its end is not the end of the job system.
    is_view: bool,
    /// The trace that the environment asked for. It is written when the job system has ended.
    trace: Option<Trace<P>>,
    /// Reports are made when a signal comes, as long as this is there.
    telling: Telling,
}

impl JobSystem<Os> {
    /// A job system with default settings; see [`Builder::new`]. Where threads cannot be started it has no
    /// workers, and jobs run in the calls that wait for them; see [`Builder::workers`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.schedule(|_| println!("on any thread")));
    /// ```
    ///
    /// # Panics
    /// If an environment variable cannot be read, or if it asks for workers that the system refuses; see
    /// [`Builder::build`].
    #[cfg_attr(not(debug_assertions), inline)] // Or it is optimized here, and again where it is used.
    #[track_caller]
    pub fn new() -> JobSystem<Os> {
        or_panic(Builder::new().build())
    }
}

impl Default for JobSystem<Os> {
    #[cfg_attr(not(debug_assertions), inline)]
    fn default() -> Self {
        JobSystem::new()
    }
}

impl<P: Platform> JobSystem<P> {
    pub(crate) fn from_shared(shared: Arc<Shared<P>>) -> JobSystem<P> {
        JobSystem {
            shared,
            is_view: false,
            trace: None,
            telling: Telling::default(),
        }
    }

    /// Begins the trace that the environment asks for.
    pub(super) fn trace_to(&mut self, pattern: &Pattern) -> Result<(), BuildError> {
        self.trace = Some(Trace::from_environment(&self.shared, pattern)?);
        Ok(())
    }

    /// The same job system for a part of the program that does not own it.
    pub(super) fn view(shared: &Shared<P>) -> JobSystem<P> {
        let shared = shared.this.upgrade();
        JobSystem {
            shared: shared.expect("the caller's borrow keeps the job system alive"),
            is_view: true,
            trace: None,
            telling: Telling::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Shared<P> {
        &self.shared
    }

    /// Runs `f` on this thread with a [`Context`]. Hot code that joins or schedules a lot then need not look
    /// up the thread's slot each time.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let last = js.enter(|cx| (0..100).map(|_| cx.schedule(|_| ())).last());
    /// js.wait(last.unwrap());
    /// ```
    ///
    /// # Panics
    /// If more threads than [`Builder::max_threads`] use the job system, or in a fork's child.
    #[track_caller]
    pub fn enter<R>(&self, f: impl FnOnce(&Context<'_, P>) -> R) -> R {
        f(&self.context_or_panic())
    }

    /// The same, with an error where this thread cannot have a slot: then `f` is not called. For a thread
    /// that would rather do without the job system than end.
    ///
    /// ```
    /// let js = paceline::Builder::new().max_threads(1).build().unwrap();
    /// js.enter(|_| std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| js.try_enter(|cx| cx.flush()));
    ///     println!("{}", other.join().unwrap().unwrap_err());
    /// }));
    /// ```
    ///
    /// # Errors
    /// More threads than [`Builder::max_threads`] use the job system, or this is a fork's child.
    pub fn try_enter<R>(&self, f: impl FnOnce(&Context<'_, P>) -> R) -> Result<R, ScheduleError> {
        Ok(f(&self.shared.context()?))
    }

    /// Runs `f` on this thread, in a lane. Jobs that it makes are of that lane, unless they say another one
    /// ([`NewJob::lane`](crate::NewJob::lane)), and what it waits for is raised to that lane.
    ///
    /// ```
    /// use paceline::Lane;
    /// let js = paceline::JobSystem::new();
    /// let mesh = js.job("load").background().run(|_| vec![3, 1, 2]);
    /// // The frame cannot go on without it: from now on nothing goes before it.
    /// assert_eq!(js.in_lane(Lane::Frame, || mesh.wait()), [3, 1, 2]);
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn in_lane<R>(&self, lane: Lane, f: impl FnOnce() -> R) -> R {
        self.context_or_panic().in_lane(lane, f)
    }

    /// Schedules a job that depends on nothing; its name is "job".
    ///
    /// It may start at once, on a worker; nothing runs inside this call. The first job of a batch wakes a
    /// worker. A closure of up to 64 bytes is kept without an allocation.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let job = js.schedule(|cx| println!("on thread slot {}", cx.worker()));
    /// js.wait(job);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_schedule`] gives an error.
    #[track_caller]
    pub fn schedule<F>(&self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        self.job("job").schedule(body)
    }

    /// Begins the description of a job with this name, a literal or a text made at run time (see [`Name`]).
    /// Nothing happens until it is scheduled.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").schedule(|_| println!("loading"));
    /// js.wait(js.job("draw").after(load).schedule(|_| println!("drawing")));
    /// ```
    #[track_caller]
    pub fn job(&self, name: impl Into<Name>) -> NewJob<'_, 'static, P> {
        NewJob::outside(&self.shared, name.into().as_str())
    }

    /// Makes a job without a body that is over when all of these are.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts: Vec<_> = (0..4).map(|_| js.schedule(|_| ())).collect();
    /// js.wait(js.combine(&parts));
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_combine`] gives an error.
    #[track_caller]
    pub fn combine(&self, ids: impl IntoIterator<Item = impl Into<JobId>>) -> JobId {
        or_panic(self.job("combine").after_all(ids).try_combine())
    }

    /// Makes a job without a body that is over when the returned handle is completed.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let loaded = js.event("loaded");
    /// let draw = js.job("draw").after(loaded.id()).schedule(|_| ());
    /// std::thread::spawn(move || loaded.complete());
    /// js.wait(draw);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event`] gives an error.
    #[track_caller]
    pub fn event(&self, name: impl Into<Name>) -> Event {
        or_panic(self.job(name).try_event())
    }

    /// Makes `job` wait for `after`, too, although it has been scheduled. To find a cycle it visits the jobs
    /// that `after` depends on.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let draw = js.job("draw").after(gate.id()).schedule(|_| ());
    /// let late = js.schedule(|_| ());
    /// js.add_dependency(draw, late).unwrap();
    /// gate.complete();
    /// js.wait(draw);
    /// assert!(js.is_done(late));
    /// ```
    ///
    /// # Errors
    /// If `job` has started, if the edge closes a cycle, if too many edges are unfinished, or if an id is
    /// foreign.
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn add_dependency(
        &self,
        job: impl Into<JobId>,
        after: impl Into<JobId>,
    ) -> Result<(), GraphError> {
        self.context_or_panic().add_dependency(job, after)
    }

    /// Calls `f` with a scope, whose jobs may borrow from outside, and waits for all of these; as
    /// [`Context::scope`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (mut left, mut right) = (vec![3, 1, 2], vec![6, 5, 4]);
    /// js.scope(|scope| {
    ///     scope.spawn(|_| left.sort());
    ///     scope.spawn(|_| right.sort());
    /// });
    /// assert_eq!((left[0], right[0]), (1, 4));
    /// ```
    ///
    /// # Panics
    /// Where that panics, and as [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn scope<'env, F, R>(&self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, P>) -> R,
    {
        self.context_or_panic().scope(f)
    }

    /// As [`Context::join`]. It looks up the thread's slot once; recursions should join on the context that
    /// their closures get.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let words = ["a", "b", "c"];
    /// let (left, right) = js.join(|_| words[..1].concat(), |_| words[1..].concat());
    /// assert_eq!((left.as_str(), right.as_str()), ("a", "bc"));
    /// ```
    ///
    /// # Panics
    /// Where that panics, and as [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Context<'_, P>) -> RA,
        B: FnOnce(&Context<'_, P>) -> RB + Send,
        RB: Send,
    {
        self.context_or_panic().join(a, b)
    }

    /// Calls `body` with disjoint parts of `range` that make up the whole range, on several threads; as
    /// [`Context::parallel_for`].
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let sum = AtomicUsize::new(0);
    /// js.parallel_for(0..1000, paceline::Grain::Auto, |part, _| {
    ///     sum.fetch_add(part.sum::<usize>(), Ordering::Relaxed);
    /// });
    /// assert_eq!(sum.into_inner(), 499_500);
    /// ```
    ///
    /// # Panics
    /// Where that panics, and as [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn parallel_for<F>(&self, range: Range<usize>, grain: Grain, body: F)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        self.context_or_panic().parallel_for(range, grain, body);
    }

    /// A loop over data: slices, mutable ones, several of them side by side, ranges, [tiles](crate::Tiles).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut particles = vec![(0.0, 0.5); 1000];
    /// js.over(&mut particles).for_each(|(position, speed)| *position += *speed);
    /// let energy = js.over(&particles).reduce(|(_, speed)| speed * speed, |a, b| a + b);
    /// assert_eq!(energy, Some(250.0));
    /// ```
    ///
    /// # Panics
    /// If data side by side has different lengths.
    #[track_caller]
    pub fn over<D: LoopData>(&self, data: D) -> Loop<'_, D::Items, P> {
        Loop::new(Origin::Outside(&self.shared), data.into_items(Seal::HERE))
    }

    #[track_caller]
    #[inline]
    fn context_or_panic(&self) -> Context<'_, P> {
        or_panic(self.shared.context())
    }

    /// Begins a frame with this label that should end within `budget` from now. It counts a missed deadline,
    /// feeds the adaptation to the machine, and names the trace's frame. It does not pace, cancel or
    /// prioritise: a job that is not waited for runs on into the next frame.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// js.wait(frame.schedule(|_| ()));
    /// drop(frame); // Here the frame ends.
    /// ```
    #[track_caller]
    pub fn frame(&self, label: impl Into<Name>, budget: Duration) -> Frame<'_, P> {
        Frame::begin(&self.shared, label.into().as_str(), budget)
    }

    /// The number of regular workers: of those that there are, or that there will be as soon as the
    /// supernumerary ones have finished their jobs. It follows the machine, and is smaller where the system
    /// refuses threads, maybe 0; see [`Builder::workers`].
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(1).build().unwrap();
    /// assert_eq!(js.workers(), 1);
    /// ```
    pub fn workers(&self) -> usize {
        self.shared.workers.target()
    }

    /// One more than the largest number that [`Context::worker`] can give: the length of a table with an
    /// entry for each thread.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let sums: Vec<AtomicU32> = (0..js.thread_slots()).map(|_| AtomicU32::new(0)).collect();
    /// js.parallel_for(0..100, paceline::Grain::Auto, |part, cx| {
    ///     sums[cx.worker()].fetch_add(part.len() as u32, Ordering::Relaxed);
    /// });
    /// assert_eq!(sums.into_iter().map(AtomicU32::into_inner).sum::<u32>(), 100);
    /// ```
    pub fn thread_slots(&self) -> usize {
        self.shared.threads.limit()
    }

    /// The part of the machine that the job system may use, as the last look found it.
    ///
    /// A look is done after a flush, a wait of an outside thread or the begin of a frame, once a second at
    /// most, by a worker without work. This call takes a lock and allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.limits().effective_parallelism() >= 1);
    /// ```
    pub fn limits(&self) -> Limits {
        if self.shared.is_forked() {
            // The parent's view is behind a lock, which a thread of the parent's may have held.
            self.shared.platform.machine().limits()
        } else {
            self.shared.adapt.limits(&*self.shared)
        }
    }

    /// Changes the number of workers while everything runs, as if [`Builder::workers`] had been called with
    /// it. Supernumerary workers leave when they have nothing to do, with empty queues; this call does not
    /// wait for them.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.resize(1).unwrap();
    /// assert_eq!(js.workers(), 1);
    /// ```
    ///
    /// # Errors
    /// If that is more than [`WORKERS_MAX`](crate::WORKERS_MAX), if the system refuses a thread, or in a
    /// fork's child. After a refusal there are as many workers as the system has started;
    /// [`workers`](JobSystem::workers) says how many.
    pub fn resize(&self, workers: usize) -> Result<(), BuildError> {
        if self.shared.is_forked() {
            return Err(BuildError::Forked);
        }
        let most = self.shared.workers.workers_max();
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

    /// The counters so far: a walk over all thread slots, without a lock.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let before = js.stats();
    /// js.wait(js.schedule(|_| ()));
    /// assert_eq!(js.stats().since(&before).jobs, 1);
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The platform that this job system runs on.
    ///
    /// ```
    /// use paceline::Platform;
    /// let js = paceline::JobSystem::new();
    /// let begun = js.platform().now();
    /// js.wait(js.schedule(|_| ()));
    /// println!("{}", js.platform().now() - begun);
    /// ```
    pub fn platform(&self) -> &P {
        &self.shared.platform
    }
}

impl<P: Platform> Drop for JobSystem<P> {
    fn drop(&mut self) {
        if !self.is_view && !self.shared.is_forked() {
            self.shared.shut_down();
        }
    }
}
