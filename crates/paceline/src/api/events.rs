//! The description of an event: one that is completed once, one with a value, one that counts.

use std::sync::Arc;

use platform::Platform;

use super::handle::{Event, Job, Latch};
use super::schedule::NewJob;
use super::submit::owner;
use super::system::JobSystem;
use crate::error::{GraphError, ScheduleError};
use crate::store::{BodyTable, JobId, Slot, Ticket};
use crate::work::{Context, Given, Shared};

impl<P: Platform> JobSystem<P> {
    /// Says that `job` is going to complete `event`, or to count the latch down, itself or by what it
    /// makes. A wait for the event, or for what depends on it, then runs that job if it is ready, and
    /// raises it and all it waits for to the lane of the waiter. A wait that can never end, since the job
    /// waits for it in turn, is reported. Several jobs may complete a latch.
    ///
    /// It changes nothing about when the event is complete. If the event or the job is over, nothing happens.
    /// It takes time in proportion to what `job` waits for, if that has to be raised, and allocates nothing
    /// once the table of edges has grown.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// let loaded = js.event("loaded");
    /// let id = loaded.id();
    /// let load = js.job("load").background().schedule(move |_| loaded.complete());
    /// js.add_completer(id, load).unwrap();
    /// js.wait(id); // Runs "load" here, and brings it forward.
    /// ```
    ///
    /// # Errors
    /// If `event` has a body of its own or is a scope, if too many edges are unfinished, or if an id is
    /// foreign.
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn add_completer(
        &self,
        event: impl Into<JobId>,
        job: impl Into<JobId>,
    ) -> Result<(), GraphError> {
        self.enter(|cx| cx.add_completer(event, job))
    }
}

impl<P: Platform> Context<'_, P> {
    /// Says that `job` is going to complete `event`, as [`JobSystem::add_completer`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| {
    ///     let found = cx.event("found");
    ///     let id = found.id();
    ///     let search = cx.job("search").schedule(move |_| found.complete());
    ///     cx.add_completer(id, search).unwrap();
    ///     cx.wait(id);
    /// });
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn add_completer(
        &self,
        event: impl Into<JobId>,
        job: impl Into<JobId>,
    ) -> Result<(), GraphError> {
        let (event, job) = (event.into(), job.into());
        let ticket_of = |id| {
            let ticket = self.shared.ticket_of(id);
            ticket.map_err(|_| GraphError::Foreign { id })
        };
        let by = ticket_of(job)?;
        match ticket_of(event)? {
            Some(_) => self.graph().is_completed_by(event, by),
            None => Ok(()),
        }
    }
}

impl<'body, P: Platform> NewJob<'_, 'body, P> {
    /// Makes a job without a body, which is over when the returned event is completed and all its
    /// dependencies are over.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.schedule(|_| ());
    /// let shown = js.job("shown").after(load).try_event().unwrap();
    /// let id = shown.id();
    /// shown.complete();
    /// js.wait(id);
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_event(self) -> Result<Event, ScheduleError> {
        let (owner, id) = self.make_event(None)?;
        Ok(Event::new(owner, id))
    }

    /// Makes an event with a value, and the handle that the value goes to; as
    /// [`JobSystem::event_with`](crate::JobSystem::event_with). The handle has the value when the event is
    /// completed and all its dependencies are over.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let connect = js.schedule(|_| ());
    /// let reply = js.job("reply").after(connect).try_event_with::<String>();
    /// let (reply, text) = reply.unwrap();
    /// reply.complete_with("hello".to_owned());
    /// assert_eq!(text.wait(), "hello");
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_event_with<T: Send + 'body>(self) -> Result<(Event<T>, Job<T>), ScheduleError> {
        let (owner, id) = self.make_event(Some(&Given::<T>::TABLE))?;
        Ok((Event::new(owner.clone(), id), Job::new(owner, id)))
    }

    /// Makes a latch that counts to `count`, as [`JobSystem::latch`](crate::JobSystem::latch). Its job is
    /// over when the latch is and all its dependencies are over.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.schedule(|_| ());
    /// let shown = js.job("shown").after(load).try_latch(2).unwrap();
    /// shown.complete_one();
    /// shown.complete_one();
    /// js.wait(&shown);
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](NewJob::try_schedule).
    pub fn try_latch(self, count: usize) -> Result<Latch, ScheduleError> {
        let label = self.label;
        let (owner, id) = self.make_event(None)?;
        Ok(Latch::new(owner, id, label, count))
    }

    /// Makes an event, with a value if there is a table for one.
    pub(super) fn make_event(
        self,
        value: Option<&'static BodyTable>,
    ) -> Result<(Arc<Shared<P>>, JobId), ScheduleError> {
        let (after, cx) = (self.predecessors()?, self.context()?);
        let (owner, graph) = (owner(self.shared()), cx.graph());
        let held = value.map_or(0, |_| Slot::<P>::IS_HELD);
        let made = graph.make_here(&self.label, Slot::<P>::IS_OPEN_EVENT | held, Ticket::NONE);
        let (ticket, slot) = made.ok_or_else(|| graph.full())?;
        if let Some(table) = value {
            // SAFETY: the job is new, and the caller's table is that of the value.
            unsafe { slot.promise(table) };
        }
        self.note_for_checks(&cx, ticket);
        graph.wire_event(ticket, slot, after, cx.queue())?;
        Ok((owner, JobId::new(cx.shared.id, ticket)))
    }
}
