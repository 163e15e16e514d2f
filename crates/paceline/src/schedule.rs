//! Making jobs: single ones, ranges, combinations, events.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use event::EventKind;
use platform::{Atomic, Ordering, Platform, SharedCell};
use smallvec::SmallVec;

use crate::border::{Body, BodyTable, Once, Typed};
use crate::context::Context;
use crate::error::ScheduleError;
use crate::handle::{Event, Job};
use crate::job::{JobId, Label, LinksWord, Phase, Preds, Slot, StateWord, Ticket};
use crate::policy::Grain;
use crate::range::{RangeTable, SharedRange};
use crate::shared::Shared;
use crate::slab::NIL;

/// A job being described; made by `job`. Nothing happens until one of the scheduling calls.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let load = js.job("load").run(|_| vec![3, 1, 2]);
/// let report = js.job("report").after(load.id()).schedule(|_| println!("loaded"));
/// assert_eq!(load.wait(), [3, 1, 2]);
/// js.wait(report);
/// ```
#[must_use = "describe the job, then schedule it"]
pub struct NewJob<'a, P: Platform> {
    from: Origin<'a, P>,
    label: Label,
    after: Predecessors,
    /// The flag of its lane, beside that of the job that schedules it.
    lane: u32,
}

/// Where a job is described. A description outlives any particular call (it may be kept in a thread-local, by
/// a thread that is ending), so it holds no context of its own: only [`Context::job`] has one to lend.
enum Origin<'a, P: Platform> {
    Outside(&'a Shared<P>),
    Inside(&'a Context<'a, P>),
}

impl<'a, P: Platform> Origin<'a, P> {
    #[inline]
    fn shared(&self) -> &'a Shared<P> {
        match self {
            Origin::Outside(shared) => shared,
            Origin::Inside(context) => context.shared,
        }
    }

    /// The calling thread's context, for the length of a call.
    ///
    /// # Errors
    /// As for every way in.
    #[inline]
    fn context(&self) -> Result<Context<'_, P>, ScheduleError> {
        match self {
            Origin::Outside(shared) => shared.context(),
            // SAFETY: the context was lent to this thread, which it does not leave, and this copy of it lives
            // no longer than the borrow of the original.
            Origin::Inside(context) => Ok(unsafe { Context::new(context.shared, context.seat) }),
        }
    }
}

/// What a job being described waits for; the first few without a heap allocation.
#[derive(Default)]
struct Predecessors {
    tickets: SmallVec<[Ticket; 8]>,
    /// An id of another job system, if there was one.
    foreign: Option<JobId>,
}

impl Predecessors {
    fn check_own(&self) -> Result<(), ScheduleError> {
        match self.foreign {
            Some(id) => Err(ScheduleError::Foreign { id }),
            None => Ok(()),
        }
    }
}

impl<'a, P: Platform> NewJob<'a, P> {
    #[track_caller]
    pub(crate) fn outside(shared: &'a Shared<P>, name: &'static str) -> Self {
        NewJob::new(Origin::Outside(shared), name)
    }

    #[track_caller]
    fn new(from: Origin<'a, P>, name: &'static str) -> Self {
        let label = Label {
            name,
            site: Location::caller(),
        };
        NewJob {
            from,
            label,
            after: Predecessors::default(),
            lane: 0,
        }
    }

    /// The job has no deadline: workers take it when there is nothing else to do, and now and then when there
    /// is, so that it comes to its turn. Where CPUs differ it may run on any of them
    /// ([`Placement`](crate::Placement)), and jobs that are not in the background stay on the fast ones. What
    /// it schedules is in the background, too. A wait for it runs it at once, if it can.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let save = js.job("save").background().schedule(|_| println!("saved"));
    /// js.wait(save);
    /// ```
    pub fn background(mut self) -> Self {
        self.lane = Slot::<P>::IS_BACKGROUND;
        self
    }

    /// The job starts only after this one has ended.
    pub fn after(mut self, id: JobId) -> Self {
        match self.from.shared().id == id.pool {
            true => self.after.tickets.push(id.ticket()),
            false => self.after.foreign = Some(id),
        }
        self
    }

    /// The job starts only after all of these have ended.
    pub fn after_all(self, ids: &[JobId]) -> Self {
        ids.iter().fold(self, |job, &id| job.after(id))
    }

    /// Schedules a body that gives nothing back.
    ///
    /// # Panics
    /// Where [`try_schedule`](NewJob::try_schedule) gives an error.
    pub fn schedule<F>(self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        self.try_schedule(body)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`schedule`](NewJob::schedule).
    ///
    /// # Errors
    /// If the job table is full, a dependency is foreign, or this process is a fork's child.
    pub fn try_schedule<F>(self, body: F) -> Result<JobId, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        let (cx, table) = (self.from.context()?, &Once::<P, F>::TABLE);
        // SAFETY: the body borrows nothing ('static).
        let ticket = unsafe { cx.submit(self.label, self.lane, &self.after, body, table)? };
        Ok(JobId::new(cx.shared.id, ticket))
    }

    /// Schedules a body whose result is kept for the returned handle.
    ///
    /// # Panics
    /// Where [`try_run`](NewJob::try_run) gives an error.
    pub fn run<F, T>(self, body: F) -> Job<T>
    where
        F: FnOnce(&Context<'_, P>) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_run(body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`run`](NewJob::run).
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_run<F, T>(self, body: F) -> Result<Job<T>, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) -> T + Send + 'static,
        T: Send + 'static,
    {
        let held = Slot::<P>::IS_HELD | self.lane;
        let (cx, table) = (self.from.context()?, &Typed::<P, F, T>::TABLE);
        let owner = cx.owner();
        // SAFETY: the body borrows nothing ('static).
        let ticket = unsafe { cx.submit(self.label, held, &self.after, body, table)? };
        Ok(Job::new(owner, JobId::new(cx.shared.id, ticket)))
    }

    /// Schedules `body` over all parts of `range`; several threads take part. `body` is called with
    /// disjoint parts that make up the whole range, in no promised order.
    ///
    /// # Panics
    /// Where [`try_schedule_for`](NewJob::try_schedule_for) gives an error.
    pub fn schedule_for<F>(self, range: Range<usize>, grain: Grain, body: F) -> JobId
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Send + Sync + 'static,
    {
        self.try_schedule_for(range, grain, body)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`schedule_for`](NewJob::schedule_for).
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
        F: Fn(Range<usize>, &Context<'_, P>) + Send + Sync + 'static,
    {
        let body = SharedRange::new(range, grain, body)?;
        let flags = Slot::<P>::IS_RANGE | self.lane;
        let (cx, table) = (self.from.context()?, &RangeTable::<P, F>::TABLE);
        // SAFETY: the body borrows nothing ('static).
        let ticket = unsafe { cx.submit(self.label, flags, &self.after, body, table)? };
        Ok(JobId::new(cx.shared.id, ticket))
    }

    /// A job without a body: over when all it depends on is over.
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_combine(self) -> Result<JobId, ScheduleError> {
        self.after.check_own()?;
        let cx = self.from.context()?;
        let allocated = cx.allocate_slot(self.label, 0, Ticket::NONE);
        let (ticket, slot) = allocated.ok_or_else(|| cx.full())?;
        cx.wire(ticket, slot, &self.after.tickets)?;
        Ok(JobId::new(cx.shared.id, ticket))
    }

    /// A job without a body that is over when the returned event is completed (and all it depends on
    /// is over).
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_event(self) -> Result<Event, ScheduleError> {
        self.after.check_own()?;
        let cx = self.from.context()?;
        let owner = cx.owner();
        let allocated = cx.allocate_slot(self.label, Slot::<P>::IS_OPEN_EVENT, Ticket::NONE);
        let (ticket, slot) = allocated.ok_or_else(|| cx.full())?;
        // Held by the event itself, which its completion releases, and by us until it is wired.
        let after = cx.not_over(ticket, &self.after.tickets);
        let wired = cx.add_edges(ticket, slot, &after, 2);
        // Without a handle it cannot be completed: then it is cancelled.
        cx.release(ticket, if wired.is_ok() { 1 } else { 2 }, cx.queue());
        cx.finish_todo(cx.queue());
        wired?;
        Ok(Event::new(owner, JobId::new(cx.shared.id, ticket)))
    }
}

impl<P: Platform> Context<'_, P> {
    /// Schedules a body; the label is "job".
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
        NewJob::new(Origin::Inside(self), name)
    }

    /// The job system, for a handle that keeps it.
    fn owner(&self) -> Arc<Shared<P>> {
        let owner = self.shared.this.upgrade();
        owner.expect("a context keeps the job system alive")
    }

    /// A slot for a job that nobody knows yet, held back by nothing; `None` if all are taken. (An
    /// error would be returned by way of memory; this pair comes in registers.)
    #[inline]
    pub(crate) fn allocate_slot(
        &self,
        label: Label,
        flags: u32,
        parent: Ticket,
    ) -> Option<(Ticket, &Slot<P>)> {
        let slots = &self.shared.slots;
        let labels = &self.shared.labels;
        let (allocated, number) = self.own(|own| {
            (
                slots.allocate(&mut own.slots),
                labels.number(&mut own.labels, label),
            )
        });
        let (index, slot) = allocated?;
        // Relaxed, most of these: nobody else looks at the job before it is published, by the Release
        // store that makes it ready, by the Release CAS that adds an edge, or by the program's own
        // means of passing the id on. Release, partner: the Acquire loads in `is_over`, `hang`, `mark`
        // and `parent_of`, where those that look for the slot's *last* job find out that it is over:
        // what that one did must be visible to them, although it is we who tell them.
        // A store first: a line that is read first travels twice, for the copy and for the right to write.
        let has_parent = if parent.is_none() {
            0
        } else {
            Slot::<P>::HAS_PARENT
        };
        // Release, partner: the Acquire load in `parent_of`, see above.
        slot.flags.store(flags | has_parent, Ordering::Release);
        let generation = slot.word(Ordering::Relaxed).generation;
        let ticket = Ticket::new(index, generation);
        // Release, partner: the Acquire load in `parent_of`, see above.
        slot.parent.store(parent.0, Ordering::Release);
        slot.label.store(number, Ordering::Relaxed);
        slot.place.store(Slot::<P>::NOWHERE, Ordering::Relaxed);
        slot.preds.store(Preds::NONE.0, Ordering::Relaxed);
        // Release, partner: the Acquire CAS in `mark`, see above.
        slot.mark.store(0, Ordering::Release);
        if flags & Slot::<P>::IS_ANONYMOUS == 0 {
            // Release, partner: `hang`, see above.
            slot.links
                .store(LinksWord::new(generation, NIL).0, Ordering::Release);
        }
        if flags & Slot::<P>::IS_HELD != 0 {
            let both = Slot::<P>::FINISHER | Slot::<P>::HANDLE;
            slot.holders.store(both, Ordering::Relaxed);
        }
        let waiting = StateWord::new(generation, Phase::Waiting, 0).pack();
        // Release, partner: `is_over`, see above.
        slot.state.store(waiting, Ordering::Release);
        self.record(EventKind::Created, ticket, u64::from(number));
        Some((ticket, slot))
    }

    /// All slots are taken.
    #[cold]
    pub(crate) fn full(&self) -> ScheduleError {
        ScheduleError::Full {
            max_jobs: self.shared.max_jobs,
        }
    }

    /// Fills in the body of a new job.
    ///
    /// # Safety
    /// `table` belongs to `F`, and whatever `body` borrows lives until the job has ended.
    #[inline]
    pub(crate) unsafe fn put_body<F>(&self, slot: &Slot<P>, body: F, table: &'static BodyTable<P>) {
        // SAFETY: the job is new: nobody else touches table and body, and the slot's last body is
        // gone.
        unsafe {
            slot.table.with_mut(|place| *place = Some(table));
            slot.body.with_mut(|place| Body::put(place, body));
        }
    }

    /// Makes a job and publishes it.
    ///
    /// # Safety
    /// As [`put_body`](Context::put_body).
    #[inline]
    unsafe fn submit<F>(
        &self,
        label: Label,
        flags: u32,
        after: &Predecessors,
        body: F,
        table: &'static BodyTable<P>,
    ) -> Result<Ticket, ScheduleError> {
        after.check_own()?;
        let flags = flags | Slot::<P>::HAS_BODY | self.own(|own| own.lane);
        let allocated = self.allocate_slot(label, flags, Ticket::NONE);
        let (ticket, slot) = allocated.ok_or_else(|| self.full())?;
        // SAFETY: the caller's promise.
        unsafe { self.put_body(slot, body, table) };
        self.wire(ticket, slot, &after.tickets)?;
        Ok(ticket)
    }

    /// Adds the edges of a new job and lets it go.
    #[inline]
    fn wire(&self, job: Ticket, slot: &Slot<P>, after: &[Ticket]) -> Result<(), ScheduleError> {
        let queue = self.queue();
        let after = self.not_over(job, after);
        if after.is_empty() {
            self.make_ready(job, slot, queue);
        } else {
            let wired = self.add_edges(job, slot, &after, 1);
            if wired.is_err() {
                // There will be no handle.
                slot.holders.store(Slot::<P>::FINISHER, Ordering::Relaxed);
            }
            self.release(job, 1, queue);
            if wired.is_err() {
                self.finish_todo(queue);
                return wired;
            }
        }
        if self.own(|own| !own.todo.is_empty()) {
            self.finish_todo(queue);
        }
        self.publish(queue, false);
        Ok(())
    }
}
