//! Jobs that did not end well, remembered for those that ask.
//!
//! A failed job's slot moves on like any other, so its record lives here, under the job's ticket. It is
//! written before the job counts as over: a thread that sees that the job is over, and that there was any
//! failure at all, finds it.
//!
//! What is kept is bounded. The last [`RECORDS_MAX`](crate::limits::RECORDS_MAX) failures are kept in full,
//! payloads of panics included. Of older ones a mark is left, a word a slot with the generation of the last
//! job there that failed: it says *that* the job failed, until a later job of the same slot fails, too. The
//! mark is also what is looked at first, so that a predecessor that ended well costs no lock.
//!
//! Two sorts of records are kept for as long as they are needed, however many others there are. Those of
//! scopes and loops: the thread that waits for one takes its record away. And those of jobs that a handle
//! holds, until the handle is gone. (That such a job failed is also in its own flags: what lies in its slot
//! must not be taken for a result.)

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use platform::{Atomic, Lock, Memory, Ordering, Platform};

use crate::border::Payload;
use crate::context::Context;
use crate::error::{UnwaitedPanic, WaitError};
use crate::job::{Label, Slot, Ticket};
use crate::shared::Shared;
use crate::slab::Chunks;

/// What happened to a job that did not end well.
pub(crate) enum Failure {
    Panicked {
        label: Label,
        message: Arc<str>,
        /// Until a wait has taken it.
        payload: Option<Payload>,
        /// Whether it was told, if only to the hook for panics that no wait hears of.
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
    pub(crate) fn panicked(label: Label, payload: Payload) -> Failure {
        Failure::Panicked {
            label,
            message: payload.message(),
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

    /// What a wait is told. The payload of a panic goes to the first one.
    fn tell(&mut self) -> WaitError {
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
            },
            Failure::Abandoned { label } => WaitError::Abandoned { label: *label },
            Failure::ShutDown => WaitError::ShutDown,
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

/// Who will be told how a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    Nobody,
    /// Jobs that depend on it, which may or may not be heard of themselves.
    Successors,
    Somebody,
}

/// All failures of a job system.
pub(crate) struct Failures<M: Memory> {
    /// 1 after the first failure: lets the good case skip the rest.
    any: M::AtomicU32,
    /// By slot: the generation of the last job that failed there.
    marks: Chunks<M, M::AtomicU64>,
    records: M::Lock<Records>,
}

struct Records {
    by_job: BTreeMap<Ticket, Failure>,
    /// Those that can be forgotten, the oldest first.
    in_order: VecDeque<Ticket>,
    /// How many of those there may be.
    most: usize,
}

impl Records {
    /// Adds a record; gives the failure back if the job has one.
    fn add(&mut self, ticket: Ticket, failure: Failure) -> Option<Failure> {
        match self.by_job.entry(ticket) {
            Entry::Occupied(_) => return Some(failure),
            Entry::Vacant(place) => _ = place.insert(failure),
        }
        None
    }

    /// A record that can be forgotten; gives back the one that is.
    fn queue(&mut self, ticket: Ticket) -> Option<Failure> {
        self.in_order.push_back(ticket);
        let oldest = match self.in_order.len() > self.most {
            true => self.in_order.pop_front(),
            false => None,
        };
        self.by_job.remove(&oldest?)
    }
}

/// Failures that nothing keeps any more. They hold payloads: values of the program's, which are dropped when
/// no lock is held.
#[must_use = "they are dropped outside of the lock, by `Context::forget`"]
pub(crate) struct Surplus([Option<Failure>; 2]);

impl<M: Memory> Failures<M> {
    /// Room for the failures of jobs in `slots` slots, `most` of which are remembered in full.
    pub(crate) fn new(slots: u32, most: usize) -> Self {
        let records = Records {
            by_job: BTreeMap::new(),
            in_order: VecDeque::new(),
            most,
        };
        Failures {
            any: M::AtomicU32::new(0),
            marks: Chunks::new(slots, slots),
            records: M::Lock::new(records),
        }
    }

    /// Records a failure, before the job is marked as over. The first one of a job stays.
    pub(crate) fn add(&self, ticket: Ticket, failure: Failure) -> Surplus {
        self.mark(ticket);
        self.records.with(|records| {
            let surplus = records.add(ticket, failure);
            let forgotten = match surplus {
                None => records.queue(ticket),
                Some(_) => None,
            };
            Surplus([forgotten, surplus])
        })
    }

    /// The same for a record that is kept until it is [taken](Failures::take) or
    /// [let go](Failures::let_go): that of a scope or loop a part of which failed, or of a job with a handle.
    fn keep(&self, ticket: Ticket, failure: Failure) -> Surplus {
        self.mark(ticket);
        let surplus = self.records.with(|records| records.add(ticket, failure));
        Surplus([None, surplus])
    }

    /// The handle of a job that failed is gone: the record is kept as any other.
    pub(crate) fn let_go(&self, ticket: Ticket) -> Surplus {
        let forgotten = self
            .records
            .with(|records| match records.by_job.contains_key(&ticket) {
                true => records.queue(ticket),
                false => None,
            });
        Surplus([forgotten, None])
    }

    fn mark(&self, ticket: Ticket) {
        self.marks.ensure(ticket.index(), || M::AtomicU64::new(0));
        let mark = self.marks.get(ticket.index());
        // Relaxed, both: ordered by the Release store that marks the job as over, which a thread that asks
        // about it has acquired.
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
        match index < self.marks.len() {
            // Relaxed: see `mark`.
            true => self.marks.get(index).load(Ordering::Relaxed),
            false => 0,
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
        let is_recorded = || {
            self.records
                .with(|records| records.by_job.contains_key(&ticket))
        };
        last_failed == ticket.generation() || is_recorded()
    }

    /// Whose failure this job's is a consequence of; `None` if it has not failed, or nothing is known.
    fn cause_of(&self, ticket: Ticket) -> Option<Cause> {
        if !self.has(ticket) {
            return None;
        }
        self.records
            .with(|records| records.by_job.get(&ticket)?.cause(ticket))
    }

    /// The panic that made this job fail, the first time it is asked for.
    fn untold_panic(&self, ticket: Ticket) -> Option<UnwaitedPanic> {
        let cause = self.cause_of(ticket)?;
        self.records
            .with(|records| match records.by_job.get_mut(&cause.job)? {
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

    /// The verdict on a job that is over. The payload of a panic goes to the first that asks.
    #[inline]
    pub(crate) fn verdict(&self, ticket: Ticket) -> Result<(), WaitError> {
        match self.has(ticket) {
            false => Ok(()),
            true => Err(self.why(ticket)),
        }
    }

    /// Why a job failed that is known to have.
    #[cold]
    pub(crate) fn why(&self, ticket: Ticket) -> WaitError {
        self.records.with(|records| {
            let failure = records.by_job.get_mut(&ticket);
            failure.map_or(WaitError::Forgotten, Failure::tell)
        })
    }

    /// Takes away the record of a scope or a loop that is through, if a part of it failed.
    #[inline]
    pub(crate) fn take(&self, whole: Ticket) -> Option<Failure> {
        match self.has(whole) {
            false => None,
            true => self.records.with(|records| records.by_job.remove(&whole)),
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// Drops what is no longer kept of failures.
    #[inline]
    pub(crate) fn forget(&self, surplus: Surplus) {
        for failure in surplus.0.into_iter().flatten() {
            self.forget_failure(failure);
        }
    }

    pub(crate) fn forget_failure(&self, failure: Failure) {
        self.in_frame(Ticket::NONE, || self.shared.forget_failure(failure));
    }
}

impl<P: Platform> Shared<P> {
    /// As [`Context::forget`], for the drop of a handle.
    pub(crate) fn forget(&self, surplus: Surplus) {
        let failures = surplus.0.into_iter().flatten();
        failures.for_each(|failure| self.forget_failure(failure));
    }

    fn forget_failure(&self, failure: Failure) {
        if let Failure::Panicked {
            payload: Some(payload),
            ..
        } = failure
        {
            self.discard(payload);
        }
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
        let flags = slot.flags.load(Ordering::Relaxed);
        self.note_failure(job, slot, flags, Failure::Cancelled { label, cause });
        // Relaxed: published by the release that the caller does next.
        slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
    }

    /// Notes that a job, or a part of a loop, has panicked.
    #[cold]
    pub(crate) fn record_panic(&self, job: Ticket, slot: &Slot<P>, flags: u32, payload: Payload) {
        self.seat.counters.panicked.add(1);
        let failure = Failure::panicked(self.label_of(slot), payload);
        self.note_failure(job, slot, flags, failure);
    }

    /// Records a failure under the name of the job, or of the scope that will raise it again. The job is not
    /// over: its list is open.
    #[cold]
    pub(crate) fn note_failure(&self, job: Ticket, slot: &Slot<P>, flags: u32, failure: Failure) {
        let failures = &self.shared.failures;
        let has = |flag| flags & flag != 0;
        if has(Slot::<P>::IS_HELD) {
            // Relaxed: published by the swap in `close`, after which the handle may look.
            slot.flags.fetch_or(Slot::<P>::FAILED, Ordering::Relaxed);
        }
        let surplus = if has(Slot::<P>::IN_SCOPE) {
            failures.keep(slot.parent(flags), failure)
        } else if has(Slot::<P>::IS_AWAITED | Slot::<P>::IS_HELD) {
            failures.keep(job, failure)
        } else {
            failures.add(job, failure)
        };
        self.forget(surplus);
    }

    /// A job has failed, which is on record. The panic behind it, if there is one and no wait will hear or
    /// has heard of it: for [`report`](Context::report), when the job is over.
    #[cold]
    pub(crate) fn unheard_panic(&self, job: Ticket, audience: Audience) -> Option<UnwaitedPanic> {
        if !self.shared.hooks.hears_of_panics() || audience == Audience::Successors {
            return None; // With successors, it depends on whether a wait hears of them.
        }
        let panic = self.shared.failures.untold_panic(job)?;
        (audience == Audience::Nobody).then_some(panic)
    }

    /// Calls the hook for panics that no wait hears of.
    #[cold]
    pub(crate) fn report(&self, panic: &UnwaitedPanic) {
        let hooks = &self.shared.hooks;
        self.call_hook(|| hooks.unwaited_panic(panic).unwrap_or(Ok(())));
    }

    /// Raises again what a part of a scope or a loop panicked with. `whole` is through.
    #[inline]
    pub(crate) fn raise_panic_of(&self, whole: Ticket) {
        if let Some(failure) = self.shared.failures.take(whole) {
            self.raise(failure);
        }
    }

    #[cold]
    pub(crate) fn raise(&self, mut failure: Failure) -> ! {
        match failure.tell() {
            WaitError::Panicked {
                payload: Some(payload),
                ..
            } => std::panic::resume_unwind(payload),
            error => panic!("{error}"),
        }
    }
}

#[cfg(test)]
mod tests;
