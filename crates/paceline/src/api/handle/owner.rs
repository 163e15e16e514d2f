//! A job system as handles see it: [`Owner`]. Handles do not know its platform.

use std::task::Waker;

use event::Nanos;

use crate::error::WaitError;
use crate::store::{Body, Ticket};

/// The part of a job system that handles need, without its platform, which they do not know.
pub(crate) trait Owner: Send + Sync {
    fn wait(&self, job: Ticket, deadline: Nanos) -> Result<bool, WaitError>;
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

/// The owner of a handle whose result has been given.
pub(super) struct Spent;

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
