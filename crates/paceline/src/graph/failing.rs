//! The consequences of a job's failure: it is recorded, the jobs that depend on it are cancelled, and a panic
//! that no wait reports goes to the program's hook.

use platform::{Atomic, Ordering, Platform};

use super::dropped::DROPPED;
use super::failure::{Audience, Cause, Failure, Keep, Surplus};
use super::{Driver, OnGraph};
use crate::border::Payload;
use crate::error::{UnwaitedPanic, WaitError};
use crate::store::{Label, Slot, Ticket};

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// `job` must not run, because `before` failed. Called while `job` is held back.
    #[cold]
    pub(super) fn cancel(self, job: Ticket, before: Ticket) {
        let slot = self.slot(job);
        // Relaxed: if the job was dropped, then by the thread that has just let this one's end pass.
        if slot.pending.load(Ordering::Relaxed) >= DROPPED {
            return; // It has failed already.
        }
        let label = self.label_of(slot);
        let cause = self.failures.cause_of(before);
        let cause = cause.unwrap_or(Cause::without_record(before, label));
        let flags = slot.flags.load(Ordering::Relaxed);
        self.note_failure(job, slot, flags, Failure::Cancelled { label, cause });
        // Relaxed: published by the release that the caller does next.
        slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
    }

    /// An event was dropped without being completed. Called while the event holds `job` back.
    pub(crate) fn abandon(self, job: Ticket) {
        self.fail_event(job, |label| Failure::Abandoned { label });
    }

    /// An event fails. Called while the event holds `job` back.
    #[inline]
    pub(crate) fn fail_event(self, job: Ticket, failure: impl FnOnce(Label) -> Failure) {
        let slot = self.slot(job);
        // Relaxed: as in `cancel`.
        if slot.pending.load(Ordering::Relaxed) >= DROPPED {
            return; // It has failed already.
        }
        let label = self.label_of(slot);
        let flags = slot.flags.load(Ordering::Relaxed);
        self.note_failure(job, slot, flags, failure(label));
        // Relaxed: published by the release that the caller does next.
        slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
    }

    /// Records that a job, or a part of a loop, has panicked.
    #[cold]
    pub(crate) fn record_panic(self, job: Ticket, slot: &Slot<P>, flags: u32, payload: Payload) {
        self.driver.counters().panicked.add(1);
        let failure = Failure::panicked(self.label_of(slot), payload);
        self.note_failure(job, slot, flags, failure);
    }

    /// Records that a part of a scope that has no job of its own has panicked.
    #[cold]
    pub(crate) fn record_part_panic(self, scope: Ticket, label: Label, payload: Payload) {
        self.driver.counters().panicked.add(1);
        let surplus = self.failures.keep(scope, Failure::panicked(label, payload));
        self.forget(surplus);
    }

    /// Records a failure under the name of the job, or of the scope if the job has none. The scope raises it
    /// again. The job is not over: its list is still open.
    #[cold]
    pub(crate) fn note_failure(self, job: Ticket, slot: &Slot<P>, flags: u32, failure: Failure) {
        let failures = &self.failures;
        let has = |flag| flags & flag != 0;
        if has(Slot::<P>::IS_HELD) {
            // Relaxed: published by the swap in `close`, after which the handle may look.
            slot.flags.fetch_or(Slot::<P>::FAILED, Ordering::Relaxed);
        }
        let surplus = if has(Slot::<P>::IN_SCOPE) && has(Slot::<P>::IS_ANONYMOUS) {
            failures.keep(slot.parent(flags), failure)
        } else if has(Slot::<P>::IN_SCOPE) {
            let keep = if has(Slot::<P>::IS_HELD) {
                Keep::UntilTaken
            } else {
                Keep::Lately
            };
            failures.add_in(slot.parent(flags), job, failure, keep)
        } else if has(Slot::<P>::IS_AWAITED | Slot::<P>::IS_HELD) {
            failures.keep(job, failure)
        } else {
            failures.add(job, failure)
        };
        self.forget(surplus);
    }

    /// The first failure in a scope or a loop that has ended, if no wait has reported it. The scope or loop
    /// raises it.
    #[inline]
    pub(crate) fn take_failure(self, whole: Ticket) -> Option<WaitError> {
        if self.failures.has(whole) {
            self.take_failure_there_is(whole)
        } else {
            None
        }
    }

    #[cold]
    fn take_failure_there_is(self, whole: Ticket) -> Option<WaitError> {
        let (error, rest) = self.failures.take(whole);
        self.forget(rest);
        error
    }

    /// Drops failures that are no longer kept.
    #[inline]
    pub(super) fn forget(self, surplus: Surplus) {
        for payload in surplus.into_payloads() {
            self.driver.discard(payload);
        }
    }

    /// The panic behind a failure that is already recorded. `None` if there was no panic, or if a wait
    /// reports it or has reported it. It is for [`report`](OnGraph::report), when the job is over.
    #[cold]
    pub(crate) fn unreported_panic(self, job: Ticket, audience: Audience) -> Option<UnwaitedPanic> {
        if !self.driver.hooks().has_unwaited_hook() || audience == Audience::Successors {
            return None; // With successors, it depends on whether a wait reports theirs.
        }
        let panic = self.failures.first_report(job)?;
        (audience == Audience::Empty).then_some(panic)
    }

    /// Calls the hook for panics that no wait reports.
    #[cold]
    pub(crate) fn report(self, panic: &UnwaitedPanic) {
        let hooks = self.driver.hooks();
        self.driver
            .call_hook(|| hooks.unwaited_panic(panic).unwrap_or(Ok(())));
    }
}
