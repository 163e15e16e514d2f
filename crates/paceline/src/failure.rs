//! Jobs that did not end well, remembered until somebody asks.
//!
//! A failed job's slot moves on like any other, so the record lives here, under the job's ticket.
//! It is written before the job counts as over: whoever sees that it is over, and that there are
//! records at all, finds it. Nothing is thrown away while the job system lives.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use platform::{Atomic, Lock, Memory, Ordering};

use crate::error::WaitError;
use crate::job::{Label, Ticket};

/// What happened to a job that did not end well.
pub(crate) enum Failure {
    Panicked {
        label: Label,
        message: Arc<str>,
        payload: Option<Box<dyn Any + Send>>,
    },
    Cancelled {
        label: Label,
        cause: Label,
    },
    /// An event dropped without being completed.
    Abandoned {
        label: Label,
    },
    ShutDown,
}

impl Failure {
    pub(crate) fn panicked(label: Label, payload: Box<dyn Any + Send>) -> Failure {
        Failure::Panicked {
            label,
            message: message_of(&*payload),
            payload: Some(payload),
        }
    }

    /// Whose fault it is.
    fn cause(&self) -> Option<Label> {
        match self {
            Failure::Panicked { label, .. } => Some(*label),
            Failure::Cancelled { cause, .. } => Some(*cause),
            Failure::Abandoned { label } => Some(*label),
            Failure::ShutDown => None,
        }
    }
}

/// What a panic said.
fn message_of(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(a panic without a message)")
        .into()
}

/// A panic that nobody was waiting for when it happened; given to the hook.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwaitedPanic {
    /// The job.
    pub label: Label,
    /// The panic's message.
    pub message: Arc<str>,
}

/// All failures of a job system.
pub(crate) struct Failures<M: Memory> {
    /// How many records there are: lets the good case skip the lock.
    count: M::AtomicU32,
    records: M::Lock<BTreeMap<Ticket, Failure>>,
}

impl<M: Memory> Failures<M> {
    pub(crate) fn new() -> Self {
        Failures {
            count: M::AtomicU32::new(0),
            records: M::Lock::new(BTreeMap::new()),
        }
    }

    /// Records a failure, before the job is marked as over. The first one stays: of a scope's jobs
    /// the first panic is the one that is re-raised.
    pub(crate) fn add(&self, ticket: Ticket, failure: Failure) {
        self.records.with(|records| {
            records.entry(ticket).or_insert(failure);
            // Relaxed: ordered by the Release store that marks the job as over, which whoever looks
            // for the record has Acquired.
            self.count.store(records.len() as u32, Ordering::Relaxed);
        });
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether this job failed or never ran.
    pub(crate) fn has(&self, ticket: Ticket) -> bool {
        !self.is_empty() && self.records.with(|records| records.contains_key(&ticket))
    }

    /// Who is to blame for this job's failure; `None` if it has not failed, or nobody is.
    pub(crate) fn cause_of(&self, ticket: Ticket) -> Option<Label> {
        if self.is_empty() {
            return None;
        }
        self.records.with(|records| records.get(&ticket)?.cause())
    }

    /// What a job's panic said, if that is how it failed.
    pub(crate) fn panic_of(&self, ticket: Ticket) -> Option<UnwaitedPanic> {
        self.records.with(|records| match records.get(&ticket)? {
            Failure::Panicked { label, message, .. } => Some(UnwaitedPanic {
                label: *label,
                message: message.clone(),
            }),
            _ => None,
        })
    }

    /// The verdict on a job that is over. The payload of a panic goes to the first who asks.
    #[inline]
    pub(crate) fn verdict(&self, ticket: Ticket) -> Result<(), WaitError> {
        if self.is_empty() {
            Ok(())
        } else {
            self.look_up(ticket)
        }
    }

    #[cold]
    fn look_up(&self, ticket: Ticket) -> Result<(), WaitError> {
        self.records.with(|records| match records.get_mut(&ticket) {
            None => Ok(()),
            Some(Failure::Panicked {
                label,
                message,
                payload,
            }) => Err(WaitError::Panicked {
                label: *label,
                message: message.clone(),
                payload: payload.take(),
            }),
            Some(Failure::Cancelled { label, cause }) => Err(WaitError::Cancelled {
                label: *label,
                cause: *cause,
            }),
            Some(Failure::Abandoned { label }) => Err(WaitError::Abandoned { label: *label }),
            Some(Failure::ShutDown) => Err(WaitError::ShutDown),
        })
    }
}
