//! The description of a job, and the calls that schedule it: single jobs, ranges, combinations.

use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;

use platform::{Lane, Os, Platform};

use super::handle::Job;
use super::origin::Origin;
use super::predecessors::Predecessors;
use super::submit::{Declares, owner};
use crate::error::{ScheduleError, or_panic};
use crate::policy::Grain;
use crate::store::{CancelToken, JobId, Label, LaneFlags, Slot, Ticket};
use crate::work::{Context, KeepToken, Once, RangeTable, Shared, SharedRange, Typed};

/// The description of a job, from [`JobSystem::job`](crate::JobSystem::job), [`Context::job`] or
/// a [`Frame`](crate::Frame). Nothing happens until one of the scheduling calls, which take it.
///
/// A scheduling call never blocks and runs nothing. The first job of a batch wakes a worker if one sleeps.
/// There is no allocation for a body of up to 64 bytes and eight dependencies, once the job table has grown;
/// a larger body is boxed. The label, which is the name and the place in the program, is registered under a
/// lock the first time.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let load = js.job("load").run(|_| vec![3, 1, 2]);
/// let report = js.job("report").after(load.id()).schedule(|_| println!("loaded"));
/// assert_eq!(load.wait(), [3, 1, 2]);
/// js.wait(report);
/// ```
/// `'body` is how long the job's body may borrow for: until the end of its scope for the jobs of a
/// [`Scope`](crate::Scope), and `'static` for all others, which nothing waits for.
#[must_use = "describe the job, then schedule it"]
pub struct NewJob<'a, 'body, P: Platform = Os> {
    pub(super) from: Origin<'a, P>,
    pub(super) label: Label,
    pub(super) after: Predecessors,
    /// Flags of the job: its lane, if one was said, and whether it has a token.
    pub(super) flags: u32,
    /// The flags that it has from the job that schedules it: those of lanes, unless a lane was said.
    pub(super) inherits: u32,
    /// The lane of its frame's normal jobs.
    frame: LaneFlags,
    /// The number of its frame, if its flags say that it has a rank.
    pub(super) frame_number: u64,
    /// No worker is woken for it.
    pub(super) is_quiet: bool,
    /// The number of the thread that it is pinned to, if its flags say so. Zero is none's.
    pub(super) pin: u32,
    /// What can call it off.
    pub(super) token: Option<(&'a CancelToken, KeepToken<P>)>,
    /// Invariant: a longer borrow must not pass for a shorter one, nor the other way round.
    _body: PhantomData<fn(&'body ()) -> &'body ()>,
}

impl<'a, P: Platform> NewJob<'a, 'static, P> {
    #[track_caller]
    pub(super) fn outside(shared: &'a Shared<P>, name: &'static str) -> Self {
        // SAFETY: the bodies borrow nothing ('static).
        unsafe { NewJob::new(Origin::Outside(shared), name) }
    }

    /// The description of a job on the thread of this context.
    #[track_caller]
    pub(super) fn inside(context: &'a Context<'a, P>, name: &'static str) -> Self {
        // SAFETY: as above.
        unsafe { NewJob::new(Origin::Inside(context), name) }
    }
}

impl<'a, 'body, P: Platform> NewJob<'a, 'body, P> {
    /// # Safety
    /// Nothing that lives as long as `'body` ends before a job of this origin has ended.
    #[track_caller]
    pub(super) unsafe fn new(from: Origin<'a, P>, name: &'static str) -> Self {
        let label = Label {
            name,
            site: Location::caller(),
        };
        NewJob::labelled(from, label)
    }

    pub(super) fn labelled(from: Origin<'a, P>, label: Label) -> Self {
        NewJob {
            from,
            label,
            after: Predecessors::default(),
            flags: 0,
            inherits: LaneFlags::ALL,
            frame: LaneFlags::NORMAL,
            frame_number: 0,
            is_quiet: false,
            pin: 0,
            token: None,
            _body: PhantomData,
        }
    }

    /// The calling thread's context, for the length of a call.
    ///
    /// # Errors
    /// As [`Shared::context`].
    pub(super) fn context(&self) -> Result<Context<'_, P>, ScheduleError> {
        self.from.context()
    }

    /// The job system that the job will belong to.
    pub(super) fn shared(&self) -> &'a Shared<P> {
        self.from.shared()
    }

    /// The predecessors.
    ///
    /// # Errors
    /// If one of them belongs to another job system.
    pub(super) fn predecessors(&self) -> Result<&[Ticket], ScheduleError> {
        match self.after.foreign {
            Some(id) => Err(ScheduleError::Foreign { id }),
            None => Ok(&self.after.tickets),
        }
    }

    /// The lane of the job: which ready jobs go before it. Without this it is that of the job that schedules
    /// it, and [`Lane::Normal`] outside of jobs.
    ///
    /// A wait raises: the job that it waits for, and all that this one waits for in turn, are in the lane of
    /// the waiter from then on, if that one is more urgent. So a lane is for what nothing urgent waits for by
    /// itself. Use as few as possible: most programs need [`background`](NewJob::background) and no other.
    ///
    /// Once a program has used another lane than the normal one, each wait looks at the unfinished jobs that
    /// it needs, at each of them once.
    ///
    /// [`Lane::Frame`] is for the few jobs that a frame hangs on. They go through one queue that all threads
    /// share, and run in the order in which they became ready; each costs a short lock and a fence more than
    /// a normal job. Nothing but other frame jobs holds them up, so frame jobs without end leave the rest one
    /// turn in some sixty.
    ///
    /// ```
    /// use paceline::Lane;
    /// let js = paceline::JobSystem::new();
    /// let input = js.job("input").lane(Lane::Frame).schedule(|_| ());
    /// let save = js.job("save").lane(Lane::Background).schedule(|_| println!("saved"));
    /// js.wait(js.combine([input, save]));
    /// ```
    pub fn lane(mut self, lane: Lane) -> Self {
        self.shared().note_lane(lane);
        let lane = LaneFlags::from(lane).in_frame(self.frame);
        self.flags = self.flags & !LaneFlags::ALL | lane.0;
        self.inherits = 0;
        self
    }

    /// The job is one of a frame of which the normal jobs are in this lane.
    pub(super) fn in_frame(mut self, frame: LaneFlags) -> Self {
        match frame {
            LaneFlags::NORMAL => self,
            frame => {
                self.frame = frame;
                self.lane(Lane::Normal)
            }
        }
    }

    /// The job has no deadline. Workers take it when there is nothing else to do, and now and then when there
    /// is, so that it gets its turn. Where CPUs differ it may run on any of them
    /// ([`Placement`](crate::Placement)); jobs that are not in the background stay on the fast ones. Jobs
    /// that it schedules are in the background, too. A wait for it runs it at once, if it can, and brings it
    /// forward ([`lane`](NewJob::lane)).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let save = js.job("save").background().schedule(|_| println!("saved"));
    /// js.wait(save);
    /// ```
    pub fn background(self) -> Self {
        self.lane(Lane::Background)
    }

    /// Scheduling the job wakes no thread: no system call is made, and no fence. **While all workers sleep,
    /// none of them runs it.** A worker that is awake takes it when it next looks for work, and one that
    /// spins takes it at once. Otherwise it is taken
    /// - at this thread's next call that is not quiet ([`flush`](crate::JobSystem::flush), a wait, another
    ///   job), and when the thread ends;
    /// - at any thread's `flush`, such as one a frame of the main thread's;
    /// - by a wait for it, or for what depends on it, of any thread.
    ///
    /// If the job depends on others, it is announced like any job when the last of these is over. A job in
    /// the background is announced at once in any case.
    ///
    /// It is for threads with a deadline of their own, such as those of audio, and for batches that are
    /// flushed at their end. See [`warm_up`](crate::JobSystem::warm_up).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let meter = js.job("meter").quiet().schedule(|_| println!("drawn"));
    /// js.flush(); // Here, or on another thread.
    /// js.wait(meter);
    /// ```
    pub fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// The job does not begin if this token was cancelled before: its body is dropped, what depends on it is
    /// cancelled, and waits for it report [`WaitError::CalledOff`](crate::WaitError::CalledOff). That happens
    /// when its turn comes, not at once. A body that has begun runs on, and may ask a copy of the token; so
    /// may the parts of a loop and a future. A second call takes the place of the first.
    ///
    /// A scope does not raise that a job of it was called off. Each such job takes a lock twice.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let level = paceline::CancelToken::new();
    /// level.cancel(); // The player has left it.
    /// let load = js.job("load").cancelled_by(&level).schedule(|_| unreachable!());
    /// let error = js.try_wait(load).unwrap_err().to_string();
    /// assert!(error.starts_with("job 'load'") && error.ends_with("was called off"));
    /// ```
    pub fn cancelled_by(mut self, token: &'a CancelToken) -> Self {
        self.token = Some((token, |cx, job, token| cx.keep_token(job, token)));
        self.flags |= Slot::<P>::HAS_TOKEN;
        self
    }

    /// The job starts only after this one has ended. Calls add up. An id of another job system makes the
    /// scheduling call fail.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| "a mesh");
    /// let draw = js.job("draw").after(&load).schedule(|_| println!("loaded"));
    /// js.wait(draw);
    /// ```
    #[inline] // Or the description is copied.
    pub fn after(mut self, id: impl Into<JobId>) -> Self {
        let id = id.into();
        self.after.add(id, self.from.shared());
        self
    }

    /// The job starts only after all of these have ended, as after [`after`](NewJob::after) for each.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts: Vec<_> = (0..4).map(|_| js.schedule(|_| ())).collect();
    /// let sum = js.job("sum").after_all(&parts).schedule(|_| println!("all parts are there"));
    /// js.wait(sum);
    /// ```
    pub fn after_all(self, ids: impl IntoIterator<Item = impl Into<JobId>>) -> Self {
        ids.into_iter().fold(self, |job, id| job.after(id))
    }

    /// Schedules a body without a result. A body that borrows belongs into [`JobSystem::scope`]: a job of
    /// another place may outlive the call that schedules it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.job("save").schedule(|_| println!("saved")));
    /// ```
    ///
    /// # Panics
    /// Where [`try_schedule`](NewJob::try_schedule) gives an error.
    ///
    /// [`JobSystem::scope`]: crate::JobSystem::scope
    #[track_caller]
    pub fn schedule<F>(self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'body,
    {
        or_panic(self.try_schedule(body))
    }

    /// As [`schedule`](NewJob::schedule), with an error instead of a panic.
    ///
    /// ```
    /// use paceline::{Builder, JobSystem, ScheduleError};
    /// let (js, other) = (JobSystem::new(), JobSystem::new());
    /// let foreign = other.schedule(|_| ());
    /// let refused = js.job("draw").after(foreign).try_schedule(|_| ());
    /// assert_eq!(refused, Err(ScheduleError::Foreign { id: foreign }));
    /// ```
    ///
    /// # Errors
    /// If the job table is full, too many edges are unfinished, a dependency is foreign, the calling thread
    /// gets no thread slot, or this process is a fork's child; see [`ScheduleError`].
    #[inline(always)] // Or the body is copied.
    pub fn try_schedule<F>(self, body: F) -> Result<JobId, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'body,
    {
        self.try_schedule_as(body, &Declares::NOTHING)
    }

    /// The same for a job that declares what it touches.
    #[inline(always)] // As above.
    pub(super) fn try_schedule_as<F>(
        self,
        body: F,
        declares: &Declares<'_>,
    ) -> Result<JobId, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'body,
    {
        // SAFETY: what the body borrows lives as long as the job (see `new`).
        unsafe { self.submit_body(0, body, &Once::<P, F>::TABLE, declares) }
    }

    /// Schedules a body whose result is kept for the returned handle. A result of up to 64 bytes lies in the
    /// job's slot; a larger one is boxed. The slot is free again when the handle is gone.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let sum = js.job("sum").run(|_| (1..=100).sum::<u32>());
    /// assert_eq!(sum.wait(), 5050);
    /// ```
    ///
    /// # Panics
    /// Where [`try_run`](NewJob::try_run) gives an error.
    #[track_caller]
    pub fn run<F, T>(self, body: F) -> Job<T>
    where
        F: FnOnce(&Context<'_, P>) -> T + Send + 'body,
        T: Send + 'body,
    {
        or_panic(self.try_run(body))
    }

    /// As [`run`](NewJob::run), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// match js.job("load").try_run(|_| 42) {
    ///     Ok(load) => assert_eq!(load.wait(), 42),
    ///     Err(error) => eprintln!("no room for the job: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_run<F, T>(self, body: F) -> Result<Job<T>, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) -> T + Send + 'body,
        T: Send + 'body,
    {
        self.try_run_as(body, &Declares::NOTHING)
    }

    /// The same for a job that declares what it touches.
    #[inline]
    pub(super) fn try_run_as<F, T>(
        self,
        body: F,
        declares: &Declares<'_>,
    ) -> Result<Job<T>, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) -> T + Send + 'body,
        T: Send + 'body,
    {
        let (held, table) = (Slot::<P>::IS_HELD, &Typed::<P, F, T>::TABLE);
        // SAFETY: as in `try_schedule`; the result lives as long, too.
        let id = unsafe { self.submit_body(held, body, table, declares)? };
        Ok(Job::new(owner(self.shared()), id))
    }

    /// Schedules a loop: `body` is called with disjoint parts of `range` that make up the whole range, by
    /// several threads, in no promised order. The job is over when all parts have run.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let sum = Arc::new(AtomicUsize::new(0));
    /// let add = sum.clone();
    /// let range = js.job("sum").schedule_for(0..1000, paceline::Grain::Auto, move |part, _| {
    ///     add.fetch_add(part.sum::<usize>(), Ordering::Relaxed);
    /// });
    /// js.wait(range);
    /// assert_eq!(sum.load(Ordering::Relaxed), 499_500);
    /// ```
    ///
    /// # Panics
    /// Where [`try_schedule_for`](NewJob::try_schedule_for) gives an error.
    #[track_caller]
    pub fn schedule_for<F>(self, range: Range<usize>, grain: Grain, body: F) -> JobId
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Send + Sync + 'body,
    {
        or_panic(self.try_schedule_for(range, grain, body))
    }

    /// As [`schedule_for`](NewJob::schedule_for), with an error instead of a panic.
    ///
    /// ```
    /// use paceline::{Grain, JobSystem, ScheduleError};
    /// let js = JobSystem::new();
    /// let whole = 0..usize::MAX;
    /// let refused = js.job("too long").try_schedule_for(whole, Grain::Auto, |_, _| ());
    /// assert_eq!(refused, Err(ScheduleError::TooLong { items: usize::MAX }));
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule); also if the range has 2³² items or more.
    pub fn try_schedule_for<F>(
        self,
        range: Range<usize>,
        grain: Grain,
        body: F,
    ) -> Result<JobId, ScheduleError>
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Send + Sync + 'body,
    {
        let body = SharedRange::new(range, grain, body)?;
        let (flag, table) = (Slot::<P>::IS_RANGE, &RangeTable::<P, F>::TABLE);
        // SAFETY: as in `try_schedule`.
        unsafe { self.submit_body(flag, body, table, &Declares::NOTHING) }
    }

    /// Makes a job without a body, which is over when all its dependencies are.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts: Vec<_> = (0..4).map(|_| js.schedule(|_| ())).collect();
    /// let all = js.job("all parts").after_all(&parts).try_combine().unwrap();
    /// js.wait(all);
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_combine(self) -> Result<JobId, ScheduleError> {
        let after = self.predecessors()?;
        let cx = self.from.context()?;
        let graph = cx.graph();
        let made = graph.make(&self.label, 0, Ticket::NONE);
        let (ticket, slot) = made.ok_or_else(|| graph.full())?;
        self.note_for_checks(&cx, ticket);
        self.note_order(&cx, ticket);
        graph.wire(ticket, slot, after, cx.queue(), false)?;
        cx.publish(cx.queue(), false);
        Ok(JobId::new(cx.shared.id, ticket))
    }
}
