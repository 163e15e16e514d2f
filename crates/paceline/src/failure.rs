//! Jobs that did not end well, remembered until somebody asks.
//!
//! A failed job's slot moves on like any other, so the record lives here, under the job's ticket.
//! It is written before the job counts as over: whoever sees that it is over, and that there are
//! records at all, finds it. Nothing is thrown away while the job system lives.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use platform::{Atomic, Lock, Memory, Ordering, Platform};

use crate::context::Context;
use crate::error::WaitError;
use crate::job::{Label, Slot, Ticket};
use crate::listen::Audience;

/// What happened to a job that did not end well.
pub(crate) enum Failure {
    Panicked {
        label: Label,
        message: Arc<str>,
        payload: Option<Box<dyn Any + Send>>,
        /// Whether somebody was told, if only the hook for panics nobody hears of.
        is_told: bool,
    },
    Cancelled {
        label: Label,
        cause: Cause,
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
            is_told: false,
        }
    }

    /// Whose fault it is that what depends on `job`, whose failure this is, cannot run.
    fn cause(&self, job: Ticket) -> Option<Cause> {
        let cause = |label, message| Cause {
            job,
            label,
            message,
        };
        match self {
            Failure::Panicked { label, message, .. } => Some(cause(*label, Some(message.clone()))),
            Failure::Cancelled { cause, .. } => Some(cause.clone()),
            Failure::Abandoned { label } => Some(cause(*label, None)),
            Failure::ShutDown => None,
        }
    }
}

/// The first failure of a chain.
#[derive(Clone)]
pub(crate) struct Cause {
    job: Ticket,
    label: Label,
    /// What it said, if it was a panic.
    message: Option<Arc<str>>,
}

/// What a panic said.
fn message_of(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(a panic without a message)")
        .into()
}

/// A panic nobody hears of: nobody waited for the job, and of what depends on it the first to be
/// cancelled that no further job depends on was not waited for either. Given to the hook, once a panic.
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
    fn cause_of(&self, ticket: Ticket) -> Option<Cause> {
        if self.is_empty() {
            return None;
        }
        self.records
            .with(|records| records.get(&ticket)?.cause(ticket))
    }

    /// The panic that made this job fail, the first time it is asked for.
    fn untold_panic(&self, ticket: Ticket) -> Option<UnwaitedPanic> {
        let cause = self.cause_of(ticket)?;
        self.records
            .with(|records| match records.get_mut(&cause.job)? {
                Failure::Panicked {
                    label,
                    message,
                    is_told,
                    ..
                } if !*is_told => {
                    *is_told = true;
                    Some(UnwaitedPanic {
                        label: *label,
                        message: message.clone(),
                    })
                }
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
                ..
            }) => Err(WaitError::Panicked {
                label: *label,
                message: message.clone(),
                payload: payload.take(),
            }),
            Some(Failure::Cancelled { label, cause }) => Err(WaitError::Cancelled {
                label: *label,
                cause: cause.label,
                message: cause.message.clone(),
            }),
            Some(Failure::Abandoned { label }) => Err(WaitError::Abandoned { label: *label }),
            Some(Failure::ShutDown) => Err(WaitError::ShutDown),
        })
    }
}

impl<P: Platform> Context<'_, P> {
    /// `job` must not run, because `before` failed. Called while `job` is held back.
    #[cold]
    pub(crate) fn cancel(&self, job: Ticket, before: Ticket) {
        let slot = self.shared.slot(job);
        let label = self.label_of(slot);
        let cause = self.shared.failures.cause_of(before).unwrap_or(Cause {
            job: before,
            label,
            message: None,
        });
        self.shared
            .failures
            .add(job, Failure::Cancelled { label, cause });
        // Relaxed: published by the release that the caller does next.
        slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
    }

    /// Notes that a job has panicked, against `whose` name: its own, or that of the scope or loop
    /// that will re-raise it.
    #[cold]
    pub(crate) fn record_panic(&self, whose: Ticket, slot: &Slot<P>, payload: Box<dyn Any + Send>) {
        self.seat.counters.panicked.add(1);
        let label = self.label_of(slot);
        self.shared
            .failures
            .add(whose, Failure::panicked(label, payload));
    }

    /// A job has failed, which is on record: calls the hook for the panic behind it, if there is one
    /// and nobody will hear or has heard of it.
    #[cold]
    pub(crate) fn report(&self, job: Ticket, audience: Audience) {
        let Some(hook) = &self.shared.hooks.unwaited else {
            return;
        };
        if audience == Audience::Successors {
            return; // It depends on who hears of them.
        }
        let panic = self.shared.failures.untold_panic(job);
        if let (Some(panic), Audience::Nobody) = (panic, audience) {
            // The job still has to be finished.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(&panic)));
        }
    }
}
