//! A job system as handles see it: [`Owner`]. Handles do not know its platform.

use std::task::Waker;

use event::Nanos;

use crate::error::{ScheduleError, WaitError};
use crate::store::{Body, BodyTable, CallSite, JobId, Label, SlotValue, Ticket};

/// The part of a job system that handles need, without its platform, which they do not know.
pub(crate) trait Owner: Send + Sync {
    /// Waits on behalf of a call at `site`.
    fn wait(&self, site: CallSite, job: Ticket, deadline: Nanos) -> Result<bool, WaitError>;
    fn now(&self) -> Nanos;
    /// The job of an id, unless no job has ever had it.
    fn ticket_of(&self, id: JobId) -> Result<Option<Ticket>, WaitError>;
    fn is_over(&self, job: Ticket) -> bool;
    /// Why a job that is over has failed.
    fn verdict(&self, job: Ticket) -> Result<(), WaitError>;
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
    /// The handle is a successor's input from now on.
    fn is_input(&self, job: Ticket);
    /// Schedules a job with a result, after `after`.
    ///
    /// # Safety
    /// `table` is that of the body's type. The body borrows nothing.
    unsafe fn schedule(
        &self,
        label: Label,
        after: Ticket,
        body: &mut dyn SlotValue,
        table: &'static BodyTable,
    ) -> Result<Ticket, ScheduleError>;
    /// An event is completed with its value, or dropped without.
    fn end_event(&self, job: Ticket, value: Option<&mut dyn SlotValue>);
}

/// The owner of a handle whose result has been given.
pub(super) struct Spent;

/// A handle gives its value once.
#[track_caller]
pub(crate) fn given_before() -> ! {
    panic!("a job's result was asked for again after it had been given")
}

impl Owner for Spent {
    fn wait(&self, _: CallSite, _: Ticket, _: Nanos) -> Result<bool, WaitError> {
        Ok(true)
    }
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn ticket_of(&self, _: JobId) -> Result<Option<Ticket>, WaitError> {
        Ok(None)
    }
    fn is_over(&self, _: Ticket) -> bool {
        true
    }
    fn verdict(&self, _: Ticket) -> Result<(), WaitError> {
        Ok(())
    }
    fn result(&self, _: Ticket) -> Result<*mut Body, WaitError> {
        given_before()
    }
    fn let_go(&self, _: Ticket, _: bool) {}
    fn notify(&self, _: Ticket, _: &Waker, _: Option<u32>) -> Result<Option<u32>, WaitError> {
        Ok(None)
    }
    fn forget(&self, _: Ticket, _: u32) {}
    fn is_input(&self, _: Ticket) {}
    unsafe fn schedule(
        &self,
        _: Label,
        _: Ticket,
        _: &mut dyn SlotValue,
        _: &'static BodyTable,
    ) -> Result<Ticket, ScheduleError> {
        given_before()
    }
    fn end_event(&self, _: Ticket, _: Option<&mut dyn SlotValue>) {}
}
