//! The calls of a program on a [`Context`]: it makes jobs, waits for them, and asks about them, as the job
//! system does for threads that have no context.

use std::time::Duration;

use event::Nanos;
use platform::{Lane, Platform};

use super::frame::Frame;
use super::handle::{Event, Job, Latch};
use super::origin::Origin;
use super::over::{Loop, LoopData, Seal};
use super::schedule::NewJob;
use super::span::{self, Span};
use crate::adapt::Checkpoint;
use crate::error::{GraphError, WaitError, or_panic};
use crate::report::Report;
use crate::store::{JobId, Name, Ticket};
use crate::work::{Context, Shared};

/// What the program records.
impl<'a, P: Platform> Context<'a, P> {
    /// Begins a span of the program's own on this thread's track of a recording, as
    /// [`JobSystem::span`](crate::JobSystem::span).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.job("load").schedule(|cx| {
    ///     let _span = cx.span("decode");
    /// }));
    /// ```
    #[inline]
    #[track_caller]
    pub fn span(&self, name: impl Into<Name>) -> Span<'a, P> {
        Span::inside(self, name)
    }

    /// Records a value of the program's, as [`JobSystem::counter`](crate::JobSystem::counter).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.job("cull").schedule(|cx| cx.counter("visible", 120)));
    /// ```
    #[inline]
    #[track_caller]
    pub fn counter(&self, name: impl Into<Name>, value: i64) {
        if self.shared.is_recording() {
            span::count(self, span::label(name), value);
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// Calls `f`, which may block on something that the job system knows nothing of: a file, a lock, a
    /// device.
    ///
    /// A worker lends its core meanwhile: if all other workers are blocked, too, and work is ready, a spare
    /// worker runs that work ([`Builder::max_spares`](crate::Builder::max_spares) is the limit). When `f` has
    /// returned, the spare leaves after its job. On a thread of the program it is a plain call. It wakes no
    /// thread if no work is ready; to start a spare for the first time is to start a thread. The thread may
    /// call the job system in `f`, and `f` may panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let manifest = js.job("read").background().run(|cx| {
    ///     cx.blocking(|| std::fs::read_to_string("Cargo.toml"))
    /// });
    /// assert!(manifest.wait().is_ok());
    /// ```
    pub fn blocking<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lend_core(f)
    }

    /// A point in a long background job at which it may make way for more urgent jobs.
    ///
    /// If jobs of another lane wait for a worker and none is idle, this worker rests here, and a spare worker
    /// ([`Builder::max_spares`](crate::Builder::max_spares) is the limit) takes its place: two switches of
    /// threads. It goes on when a worker has nothing more urgent to do, when a wait comes to need the job,
    /// and now and then also beside work that never ends. Returns whether it has rested.
    ///
    /// Call it once in 100 µs or so: a frame waits for a core until the next call. If nothing waits it costs
    /// some loads, and two more for each thread of the job system. It allocates only if the
    /// worker rests. Hold no lock across it that an urgent job takes, since the job system does not see a
    /// wait for a lock. In a job of another lane, in one that an urgent wait needs, on a thread of the
    /// program and on a slow core it does nothing.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let bake = js.job("bake").background().schedule(|cx| {
    ///     for _probe in 0..1000 {
    ///         // … some 100 µs of work …
    ///         cx.checkpoint();
    ///     }
    /// });
    /// js.wait(bake);
    /// ```
    pub fn checkpoint(&self) -> bool {
        self.make_way()
    }

    /// Runs `f` in a lane, as [`JobSystem::in_lane`](crate::JobSystem::in_lane).
    ///
    /// ```
    /// use paceline::Lane;
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| {
    ///     let saves = cx.in_lane(Lane::Background, || [0; 3].map(|_| cx.schedule(|_| ())));
    ///     saves.map(|save| cx.wait(save));
    /// });
    /// ```
    pub fn in_lane<R>(&self, lane: Lane, f: impl FnOnce() -> R) -> R {
        self.shared.note_lane(lane);
        self.work_in_lane(lane.into(), f)
    }

    /// Schedules a job that depends on nothing, as [`JobSystem::schedule`](crate::JobSystem::schedule).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let outer = js.job("outer").run(|cx| cx.schedule(|_| println!("inner")));
    /// js.wait(outer.wait());
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

    /// Begins the description of a job, as [`JobSystem::job`](crate::JobSystem::job). The job is in the lane
    /// of the calling one.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let outer = js.job("outer").run(|cx| cx.job("inner").schedule(|_| ()));
    /// js.wait(outer.wait());
    /// ```
    #[track_caller]
    pub fn job(&self, name: impl Into<Name>) -> NewJob<'_, 'static, P> {
        NewJob::inside(self, name.into().as_str())
    }

    /// Makes a job without a body that is over when all of these are, as
    /// [`JobSystem::combine`](crate::JobSystem::combine).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| {
    ///     let parts: Vec<_> = (0..4).map(|_| cx.schedule(|_| ())).collect();
    ///     cx.wait(cx.combine(parts));
    /// });
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_combine`] gives an error.
    #[track_caller]
    pub fn combine(&self, ids: impl IntoIterator<Item = impl Into<JobId>>) -> JobId {
        or_panic(self.job("combine").after_all(ids).try_combine())
    }

    /// Makes a job without a body that is over when the returned handle is completed, as
    /// [`JobSystem::event`](crate::JobSystem::event).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let shown = js.job("show").run(|cx| {
    ///     let loaded = cx.event("loaded");
    ///     let show = cx.job("show").after(&loaded).run(|_| "shown");
    ///     loaded.complete(); // Any thread may do that.
    ///     show.wait()
    /// });
    /// assert_eq!(shown.wait(), "shown");
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event`] gives an error.
    #[track_caller]
    pub fn event(&self, name: impl Into<Name>) -> Event {
        or_panic(self.job(name).try_event())
    }

    /// Makes an event with a value, and the handle that the value goes to, as
    /// [`JobSystem::event_with`](crate::JobSystem::event_with).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let half = js.job("half").run(|cx| {
    ///     let (found, number) = cx.event_with::<u32>("found");
    ///     cx.schedule(move |_| found.complete_with(42));
    ///     number.wait() / 2
    /// });
    /// assert_eq!(half.wait(), 21);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event_with`] gives an error.
    #[track_caller]
    pub fn event_with<T: Send + 'static>(&self, name: impl Into<Name>) -> (Event<T>, Job<T>) {
        or_panic(self.job(name).try_event_with())
    }

    /// Makes an event that is over when it has been completed `count` times, as
    /// [`JobSystem::latch`](crate::JobSystem::latch).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let both = js.job("both").run(|cx| {
    ///     let halves = cx.latch("halves", 2);
    ///     for _ in 0..2 {
    ///         let half = halves.clone();
    ///         cx.schedule(move |_| half.complete_one());
    ///     }
    ///     cx.wait(&halves);
    /// });
    /// both.wait();
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_latch`] gives an error.
    #[track_caller]
    pub fn latch(&self, name: impl Into<Name>, count: usize) -> Latch {
        or_panic(self.job(name).try_latch(count))
    }

    /// Waits for a job, as [`JobSystem::wait`](crate::JobSystem::wait). The job that waits goes on
    /// afterwards, on this thread. A successor ([`NewJob::after`], [`NewJob::with`]) needs no thread
    /// meanwhile, so it is the better choice where nothing has to go on. The jobs that run here meanwhile see
    /// the thread-locals of this thread as the job that waits has left them.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let sum = js.job("sum").run(|cx| {
    ///     let parts: Vec<_> = (0..4).map(|part| cx.job("part").run(move |_| part * part)).collect();
    ///     cx.wait(cx.combine(&parts));
    ///     parts.into_iter().map(|part| part.wait()).sum::<u32>()
    /// });
    /// assert_eq!(sum.wait(), 14);
    /// ```
    ///
    /// # Panics
    /// As [`JobSystem::wait`](crate::JobSystem::wait).
    #[track_caller]
    #[inline]
    pub fn wait(&self, id: impl Into<JobId>) {
        if let Err(error) = self.wait_for_id(id.into(), Nanos::MAX) {
            error.raise();
        }
    }

    /// Waits for a job, as [`wait`](Context::wait), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| {
    ///     let load = cx.job("load").schedule(|_| panic!("no such file"));
    ///     let error = cx.try_wait(load).unwrap_err();
    ///     assert!(error.to_string().ends_with("panicked: no such file"));
    /// });
    /// ```
    ///
    /// # Errors
    /// As [`JobSystem::try_wait`](crate::JobSystem::try_wait).
    #[track_caller]
    pub fn try_wait(&self, id: impl Into<JobId>) -> Result<(), WaitError> {
        self.wait_for_id(id.into(), Nanos::MAX).map(|_| ())
    }

    /// Waits for a job, but not longer than `timeout`. False if it is not over yet. As
    /// [`JobSystem::wait_timeout`](crate::JobSystem::wait_timeout).
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let in_vain = js.enter(|cx| cx.wait_timeout(&gate, Duration::from_millis(1)));
    /// assert!(!in_vain.unwrap());
    /// # gate.complete();
    /// ```
    ///
    /// # Errors
    /// As [`try_wait`](Context::try_wait).
    #[track_caller]
    pub fn wait_timeout(&self, id: impl Into<JobId>, timeout: Duration) -> Result<bool, WaitError> {
        let deadline = self.shared.platform.now() + Nanos::from(timeout);
        self.wait_for_id(id.into(), deadline)
    }

    #[track_caller]
    #[inline(always)] // The error is larger than the code, and would be copied once more.
    fn wait_for_id(&self, id: JobId, deadline: Nanos) -> Result<bool, WaitError> {
        let Some(ticket) = self.shared.ticket_of(id)? else {
            return Ok(true);
        };
        let is_over = self.wait_until(ticket, deadline)?;
        if is_over {
            self.shared.graph.failures.verdict(ticket)?;
        }
        Ok(is_over)
    }

    /// Whether a job is over, as [`JobSystem::is_done`](crate::JobSystem::is_done). Never blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.schedule(|_| ());
    /// js.enter(|cx| {
    ///     cx.wait(load);
    ///     assert!(cx.is_done(load));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the id is foreign.
    #[track_caller]
    pub fn is_done(&self, id: impl Into<JobId>) -> bool {
        self.shared.is_done(id.into())
    }

    /// Wakes as many workers as there is work for among the jobs that this thread has scheduled so far, as
    /// [`JobSystem::flush`](crate::JobSystem::flush).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let outer = js.job("outer").run(|cx| {
    ///     for _ in 0..100 {
    ///         cx.schedule(|_| ());
    ///     }
    ///     cx.flush();
    ///     // A long computation.
    /// });
    /// outer.wait();
    /// ```
    pub fn flush(&self) {
        self.wake_for_all();
        self.wake_for_quiet_jobs();
        self.shared.adapt.passes(self, Checkpoint::Outside);
        if self.shared.workers.active() == 0 {
            while self.run_any() {}
        }
    }

    /// A loop over data, as [`JobSystem::over`](crate::JobSystem::over).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut rows = vec![vec![1; 100]; 10];
    /// js.over(&mut rows).for_each_with(|cx, row| cx.over(row).for_each(|item| *item += 1));
    /// assert!(rows.iter().flatten().all(|&item| item == 2));
    /// ```
    ///
    /// # Panics
    /// If data side by side has different lengths.
    #[track_caller]
    pub fn over<D: LoopData>(&self, data: D) -> Loop<'_, D::Items, P> {
        Loop::new(Origin::Inside(self), data.into_items(Seal::HERE))
    }

    /// Begins a frame with this label that should end within `budget` from now, as
    /// [`JobSystem::frame`](crate::JobSystem::frame): for programs whose frames are made by a job.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let simulation = js.job("simulation").run(|cx| {
    ///     let frame = cx.frame("tick", Duration::from_millis(16));
    ///     cx.wait(frame.schedule(|_| ()));
    /// });
    /// simulation.wait();
    /// assert_eq!(js.stats().frames, 1);
    /// ```
    #[track_caller]
    pub fn frame(&self, label: impl Into<Name>, budget: Duration) -> Frame<'_, P> {
        Frame::begin(self.shared, label.into().as_str(), budget)
    }

    /// What the job system is doing at this moment, as [`JobSystem::report`](crate::JobSystem::report).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let asks = js.job("asks").run(|cx| cx.report().jobs[0].label.name);
    /// assert_eq!(asks.wait(), "asks");
    /// ```
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// Makes `job` wait for `after`, too, although it has been scheduled; as
    /// [`JobSystem::add_dependency`](crate::JobSystem::add_dependency).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// let draw = js.job("draw").after(gate.id()).schedule(|_| ());
    /// let found = js.job("find more").run(move |cx| {
    ///     let more = cx.job("more").schedule(|_| ());
    ///     cx.add_dependency(draw, more)
    /// });
    /// found.wait().expect("the job has not started, since the gate is shut");
    /// gate.complete();
    /// js.wait(draw);
    /// ```
    ///
    /// # Errors
    /// If `job` has started, if the edge closes a cycle, if too many edges are unfinished, or if an id is
    /// foreign.
    pub fn add_dependency(
        &self,
        job: impl Into<JobId>,
        after: impl Into<JobId>,
    ) -> Result<(), GraphError> {
        let (job, after) = (job.into(), after.into());
        let ticket_of = |id| {
            let ticket = self.shared.ticket_of(id);
            ticket.map_err(|_| GraphError::Foreign { id })
        };
        match (ticket_of(job)?, ticket_of(after)?) {
            (None, _) => Err(GraphError::TooLate {
                id: job,
                label: None,
            }),
            (Some(ticket), after) => {
                self.graph().add_dependency(job, after)?;
                if let Some(after) = after {
                    self.shared.checks.add_late(ticket, after);
                }
                Ok(())
            }
        }
    }
}

impl<P: Platform> Shared<P> {
    /// The ticket of an id. `None` if no job has ever had it: it counts as that of a job that is over.
    ///
    /// # Errors
    /// If the id belongs to another job system.
    #[inline]
    pub(super) fn ticket_of(&self, id: JobId) -> Result<Option<Ticket>, WaitError> {
        if id.pool != self.id {
            return Err(WaitError::Foreign { id });
        }
        let ticket = id.ticket();
        // The id may be made of bytes. Whatever its generation is, a slot that exists answers.
        let exists = self.graph.slots.exists(ticket.index());
        Ok(exists.then_some(ticket))
    }

    #[track_caller]
    pub(super) fn is_done(&self, id: JobId) -> bool {
        let ticket = or_panic(self.ticket_of(id));
        ticket.is_none_or(|ticket| self.slot(ticket).has_ended(ticket))
    }
}
