//! The failures of jobs, kept for later waits.
//!
//! The slot of a failed job moves on like any other, so its record lives here, under the job's ticket. The
//! record is written before the job counts as over. So a thread that sees that the job is over, and that
//! there was any failure at all, finds it.
//!
//! The number of records is bounded. The last [`RECORDS_MAX`](crate::limits::RECORDS_MAX) failures are kept
//! in full, with the payloads of panics. Of older failures a mark is left: for each slot one word with the
//! generation of the last job there that failed. The mark says *that* the job failed, until a later job of
//! the same slot fails, too. The mark is also read first, so that a predecessor that did not fail costs no
//! lock.
//!
//! Two sorts of records are kept for as long as they are needed, however many others there are. The record of
//! a scope or loop is kept until the thread that waits for it takes the record away. The record of a job with
//! a handle is kept until the handle is gone. (Such a job also has its failure in its own flags: the content
//! of its slot must not be taken for a result.)
//!
//! A scope raises the first failure of its jobs, unless waits have reported all of them. The record of a job
//! without a name is the scope's own. Other jobs have records of their own, which waits for them find; the
//! scope only counts how many of these no wait has reported.

use std::collections::VecDeque;
use std::sync::Arc;

use platform::{Atomic, Lock, Memory, Ordering};

use crate::border::Payload;
use crate::error::{UnwaitedPanic, WaitError};
use crate::store::{Chunks, Label, Map, Ticket};

/// Why a job failed.
pub(crate) enum Failure {
    Panicked {
        label: Label,
        message: Arc<str>,
        /// The payload, until a wait has taken it.
        payload: Option<Payload>,
        /// Whether the panic was reported, by a wait or by the hook for panics that no wait reports.
        is_reported: bool,
    },
    Cancelled {
        label: Label,
        cause: Cause,
    },
    /// An event was dropped without being completed.
    Abandoned {
        label: Label,
    },
    /// Its token was cancelled before it began.
    CalledOff {
        label: Label,
    },
    /// A job of a scope, which would have had to wait for its own scope.
    Deadlock {
        label: Label,
        cycle: Arc<[Label]>,
    },
    ShutDown,
}

impl Failure {
    pub(crate) fn panicked(label: Label, payload: Payload) -> Failure {
        Failure::Panicked {
            label,
            message: payload.message(),
            payload: Some(payload),
            is_reported: false,
        }
    }

    /// The first failure of the chain, for the jobs that depend on `job` and cannot run. `self` is the
    /// failure of `job`, which is of this scope.
    fn cause(&self, job: Ticket, scope: Ticket) -> Option<Cause> {
        let cause = |label, message, is_abandoned| Cause {
            job,
            scope,
            label,
            message,
            is_abandoned,
            is_called_off: false,
        };
        match self {
            Failure::Panicked { label, message, .. } => {
                Some(cause(*label, Some(message.clone()), false))
            }
            Failure::Cancelled { cause, .. } => Some(cause.clone()),
            Failure::Abandoned { label } => Some(cause(*label, None, true)),
            Failure::Deadlock { label, .. } => Some(cause(*label, None, false)),
            Failure::CalledOff { label } => Some(Cause {
                is_called_off: true,
                ..cause(*label, None, false)
            }),
            Failure::ShutDown => None,
        }
    }

    /// The payload of the panic, unless it was taken.
    pub(crate) fn into_payload(self) -> Option<Payload> {
        match self {
            Failure::Panicked { payload, .. } => payload,
            _ => None,
        }
    }

    /// The error that a wait returns. The payload of a panic goes to the first wait.
    fn take_error(&mut self) -> WaitError {
        match self {
            Failure::Panicked {
                label,
                message,
                payload,
                ..
            } => WaitError::Panicked {
                label: *label,
                message: message.clone(),
                payload: payload.take().map(Payload::into_inner),
            },
            Failure::Cancelled { label, cause } => WaitError::Cancelled {
                label: *label,
                cause: cause.label,
                message: cause.message.clone(),
                is_abandoned: cause.is_abandoned,
                is_called_off: cause.is_called_off,
            },
            Failure::Abandoned { label } => WaitError::Abandoned { label: *label },
            Failure::CalledOff { label } => WaitError::CalledOff { label: *label },
            Failure::Deadlock { cycle, .. } => WaitError::Deadlock {
                cycle: cycle.to_vec(),
            },
            Failure::ShutDown => WaitError::ShutDown,
        }
    }
}

/// The first failure of a chain.
#[derive(Clone)]
pub(crate) struct Cause {
    job: Ticket,
    scope: Ticket,
    label: Label,
    /// The message of the panic, if it was one.
    message: Option<Arc<str>>,
    /// Whether it is an event that was dropped without being completed.
    is_abandoned: bool,
    /// Whether it is a job that the program has called off.
    is_called_off: bool,
}

impl Cause {
    /// For a failure without a record: `label` stands for it.
    pub(super) fn without_record(job: Ticket, label: Label) -> Cause {
        Cause {
            job,
            scope: Ticket::NONE,
            label,
            message: None,
            is_abandoned: false,
            is_called_off: false,
        }
    }
}

/// What hangs in the list of a job that failed, as far as it can report a panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    Empty,
    /// Jobs that depend on it, which a wait may or may not report.
    Successors,
    Listener,
}

/// All failures of a job system.
pub(crate) struct Failures<M: Memory> {
    /// 1 after the first failure. It lets the case without failures skip the rest.
    any: M::AtomicU32,
    /// By slot: the generation of the last job that failed there.
    marks: Chunks<M, M::AtomicU64>,
    records: M::Lock<Records>,
}

struct Records {
    by_job: Map<Ticket, Record>,
    /// For each scope: how many of its jobs with records of their own have failed and were not reported.
    unreported: Map<Ticket, usize>,
    /// The records that can be forgotten, the oldest first.
    in_order: VecDeque<Ticket>,
    /// How many of them there may be.
    most: usize,
    /// The number of records so far.
    added: u64,
}

struct Record {
    failure: Failure,
    /// The number of records before it.
    number: u64,
    /// The scope of the job, if it has one.
    scope: Ticket,
    /// Whether the scope has to raise the failure: it is no consequence of another one in the scope, and no
    /// wait has reported it.
    is_due: bool,
}

impl Record {
    fn cause(&self, job: Ticket) -> Option<Cause> {
        self.failure.cause(job, self.scope)
    }
}

impl Records {
    /// Adds a record. Returns the failure if the job already has a record.
    fn add(&mut self, ticket: Ticket, failure: Failure, scope: Ticket) -> Option<Failure> {
        let number = self.added;
        // What the program has called off is no news to the scope.
        let is_expected = match &failure {
            Failure::Cancelled { cause, .. } => cause.scope == scope || cause.is_called_off,
            Failure::CalledOff { .. } => true,
            _ => false,
        };
        let is_due = !scope.is_none() && !is_expected;
        if self.by_job.contains_key(&ticket) {
            return Some(failure);
        }
        let record = Record {
            failure,
            number,
            scope,
            is_due,
        };
        self.by_job.insert(ticket, record);
        self.added += 1;
        if is_due {
            *self.unreported.get_or_insert(scope, 0) += 1;
        }
        None
    }

    /// Whether this job has failed, or a job of this scope.
    fn has(&self, ticket: Ticket) -> bool {
        self.by_job.contains_key(&ticket) || self.unreported.contains_key(&ticket)
    }

    /// The failure of a job, for a wait that reports it.
    fn report(&mut self, ticket: Ticket) -> Option<WaitError> {
        let record = self.by_job.get_mut(&ticket)?;
        if std::mem::take(&mut record.is_due)
            && let Some(unreported) = self.unreported.get_mut(&record.scope)
        {
            *unreported -= 1;
        }
        Some(record.failure.take_error())
    }

    /// The first failure in a scope that no wait has reported, and a failure that is not needed any more. The
    /// scope is over.
    fn report_scope(&mut self, scope: Ticket) -> (Option<WaitError>, Option<Failure>) {
        let own = self.by_job.remove(&scope);
        let named = if self.unreported.remove(&scope).unwrap_or(0) > 0 {
            let due = |record: &&mut Record| record.is_due && record.scope == scope;
            let due = self.by_job.values_mut().filter(due);
            let first = due.min_by_key(|record| record.number);
            Some(first.map_or((u64::MAX, WaitError::Forgotten), |record| {
                (record.number, record.failure.take_error())
            }))
        } else {
            None
        };
        match (own, named) {
            (Some(own), Some((number, error))) if number < own.number => {
                (Some(error), Some(own.failure))
            }
            (Some(mut own), _) => (Some(own.failure.take_error()), None),
            (None, named) => (named.map(|(_, error)| error), None),
        }
    }

    /// Notes that a record can be forgotten. Returns the failure that is forgotten in its place.
    fn queue(&mut self, ticket: Ticket) -> Option<Failure> {
        self.in_order.push_back(ticket);
        let oldest = if self.in_order.len() > self.most {
            self.in_order.pop_front()
        } else {
            None
        };
        self.by_job.remove(&oldest?).map(|record| record.failure)
    }
}

/// Failures that are no longer kept. They hold payloads, which are values of the program's and are dropped
/// when no lock is held.
#[must_use = "its payloads are dropped outside of the lock"]
pub(crate) struct Surplus([Option<Failure>; 2]);

impl Surplus {
    pub(crate) fn into_payloads(self) -> impl Iterator<Item = Payload> {
        let failures = self.0.into_iter().flatten();
        failures.filter_map(Failure::into_payload)
    }
}

impl<M: Memory> Failures<M> {
    /// Room for the failures of jobs in `slots` slots. `most` failures are kept in full.
    pub(crate) fn new(slots: u32, most: usize) -> Self {
        let records = Records {
            by_job: Map::default(),
            unreported: Map::default(),
            in_order: VecDeque::new(),
            most,
            added: 0,
        };
        Failures {
            any: M::AtomicU32::new(0),
            marks: Chunks::new(slots, slots),
            records: M::Lock::new(records),
        }
    }

    /// Records a failure, before the job is marked as over. The first failure of a job stays.
    pub(crate) fn add(&self, ticket: Ticket, failure: Failure) -> Surplus {
        self.add_in(Ticket::NONE, ticket, failure, Keep::Lately)
    }

    /// The same for a job of a scope, which has a name.
    pub(super) fn add_in(
        &self,
        scope: Ticket,
        ticket: Ticket,
        failure: Failure,
        keep: Keep,
    ) -> Surplus {
        self.mark(ticket);
        if !scope.is_none() {
            self.mark(scope);
        }
        self.records.with(|records| {
            let surplus = records.add(ticket, failure, scope);
            let forgotten = match (&surplus, keep) {
                (None, Keep::Lately) => records.queue(ticket),
                _ => None,
            };
            Surplus([forgotten, surplus])
        })
    }

    /// The same for a record that is kept until it is [taken](Failures::take) or [let go](Failures::let_go):
    /// the record of a scope or loop with a failed part, or of a job with a handle.
    pub(super) fn keep(&self, ticket: Ticket, failure: Failure) -> Surplus {
        self.add_in(Ticket::NONE, ticket, failure, Keep::UntilTaken)
    }

    /// The handle of a failed job is gone: its record is kept like any other from now on.
    pub(crate) fn let_go(&self, ticket: Ticket) -> Surplus {
        let forgotten = self.records.with(|records| {
            if records.by_job.contains_key(&ticket) {
                records.queue(ticket)
            } else {
                None
            }
        });
        Surplus([forgotten, None])
    }

    fn mark(&self, ticket: Ticket) {
        self.marks.ensure(ticket.index(), || M::AtomicU64::new(0));
        let mark = self.marks.get(ticket.index());
        // Relaxed, both: ordered by the Release store that marks the job as over. A thread that asks for the
        // verdict has acquired that store.
        mark.store(ticket.generation(), Ordering::Relaxed);
        self.any.store(1, Ordering::Relaxed);
    }

    /// The generation of the last job that failed in this job's slot; 0 if none did.
    #[inline]
    fn last_failed(&self, ticket: Ticket) -> u64 {
        match self.any.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.last_failed_in(ticket.index()),
        }
    }

    #[cold]
    fn last_failed_in(&self, index: u32) -> u64 {
        if index < self.marks.len() {
            // Relaxed: see `mark`.
            self.marks.get(index).load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Whether this job failed or never ran.
    #[inline]
    pub(crate) fn has(&self, ticket: Ticket) -> bool {
        let last = self.last_failed(ticket);
        last >= ticket.generation() && self.is_known(ticket, last)
    }

    #[cold]
    fn is_known(&self, ticket: Ticket, last_failed: u64) -> bool {
        let is_recorded = || self.records.with(|records| records.has(ticket));
        last_failed == ticket.generation() || is_recorded()
    }

    /// The first failure in the chain that led to the failure of this job. `None` if it has not failed, or if
    /// no record is left.
    pub(super) fn cause_of(&self, ticket: Ticket) -> Option<Cause> {
        if !self.has(ticket) {
            return None;
        }
        self.records
            .with(|records| records.by_job.get(&ticket)?.cause(ticket))
    }

    /// The panic that made this job fail, for the first call. Later calls get `None`.
    pub(super) fn first_report(&self, ticket: Ticket) -> Option<UnwaitedPanic> {
        let cause = self.cause_of(ticket)?;
        self.records.with(
            |records| match &mut records.by_job.get_mut(&cause.job)?.failure {
                Failure::Panicked {
                    label,
                    message,
                    is_reported,
                    ..
                } if !*is_reported => {
                    *is_reported = true;
                    Some(UnwaitedPanic {
                        label: *label,
                        message: message.clone(),
                    })
                }
                _ => None,
            },
        )
    }

    /// The verdict on a job that is over. The payload of a panic goes to the first call.
    #[inline]
    pub(crate) fn verdict(&self, ticket: Ticket) -> Result<(), WaitError> {
        if self.has(ticket) {
            Err(self.why(ticket))
        } else {
            Ok(())
        }
    }

    /// The error of a job that is known to have failed.
    #[cold]
    pub(crate) fn why(&self, ticket: Ticket) -> WaitError {
        let report = self.records.with(|records| records.report(ticket));
        report.unwrap_or(WaitError::Forgotten)
    }

    /// Takes away the record of a scope or a loop that has ended. Returns the first failure of a part of it
    /// that no wait has reported.
    pub(super) fn take(&self, whole: Ticket) -> (Option<WaitError>, Surplus) {
        let (error, rest) = if self.has(whole) {
            self.records.with(|records| records.report_scope(whole))
        } else {
            (None, None)
        };
        (error, Surplus([rest, None]))
    }
}

/// How long a record is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// As long as it is one of the last.
    Lately,
    /// Until it is [taken](Failures::take) or [let go](Failures::let_go).
    UntilTaken,
}

#[cfg(test)]
mod tests;
