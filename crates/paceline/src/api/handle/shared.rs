//! A job system as the owner of handles.

use std::task::Waker;

use event::Nanos;
use platform::{Atomic, Ordering, Platform, SharedCell};

use super::owner::Owner;
use crate::api::submit::successor;
use crate::error::{ScheduleError, WaitError};
use crate::graph::{DROPPED, Listener};
use crate::store::{Body, BodyTable, CallSite, JobId, Label, Slot, SlotValue, Ticket};
use crate::work::Shared;

impl<P: Platform> Owner for Shared<P> {
    fn wait(&self, site: CallSite, job: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        let context = self.context().map_err(WaitError::from)?;
        let waited = context.wait_at(site, job, deadline);
        self.end_if_deferred(&context);
        waited
    }

    fn now(&self) -> Nanos {
        self.platform.now()
    }

    fn is_over(&self, job: Ticket) -> bool {
        self.slot(job).has_ended(job)
    }

    fn ticket_of(&self, id: JobId) -> Result<Option<Ticket>, WaitError> {
        Shared::ticket_of(self, id)
    }

    fn verdict(&self, job: Ticket) -> Result<(), WaitError> {
        self.graph.failures.verdict(job)
    }

    fn result(&self, job: Ticket) -> Result<*mut Body, WaitError> {
        let slot = self.slot(job);
        // Relaxed: written before the job was over, which the caller has acquired. The slot is still this
        // job's.
        match slot.flags.load(Ordering::Relaxed) & Slot::<P>::FAILED {
            // SAFETY: the pointer is only made here; the caller that reads through it vouches for the result.
            0 => Ok(unsafe { slot.body.with_mut(|body| body) }),
            _ => Err(self.graph.failures.why(job)),
        }
    }

    fn let_go(&self, job: Ticket, taken: bool) {
        let slot = self.slot(job);
        if !taken && slot.forgo() {
            // SAFETY: the event has given the value, and this handle has got it to itself.
            let dropped = unsafe { slot.drop_result() };
            self.panics.count_drop(dropped);
        }
        let change = if taken {
            Slot::<P>::TAKEN.wrapping_sub(Slot::<P>::HANDLE)
        } else {
            Slot::<P>::HANDLE.wrapping_neg()
        };
        // AcqRel, partner: the finisher's own subtraction (`graph`): the last one sees both done.
        let before = slot.holders.fetch_add(change, Ordering::AcqRel);
        debug_assert!(before & Slot::<P>::HANDLE != 0, "{job:?} has no handle");
        if before & Slot::<P>::FINISHER != 0 {
            return; // Not quite over: the finisher frees the slot.
        }
        // Relaxed: see `result`.
        let failed = slot.flags.load(Ordering::Relaxed) & Slot::<P>::FAILED != 0;
        if failed {
            for payload in self.graph.failures.let_go(job).into_payloads() {
                self.panics.discard(payload);
            }
        } else if !taken && before & Slot::<P>::TAKEN == 0 {
            // SAFETY: the job is over and has not failed, so the result is there, and no other thread uses
            // it.
            let dropped = unsafe { slot.drop_result() };
            self.panics.count_drop(dropped);
        }
        slot.move_on(job);
        // Relaxed: it was there before the job was let go, which the subtraction above has acquired.
        let was_dropped = slot.pending.load(Ordering::Relaxed) >= DROPPED;
        if !was_dropped && job.generation() < Ticket::GENERATION_LAST {
            self.graph.slots.free_from_afar(job.index());
        }
    }

    fn notify(
        &self,
        job: Ticket,
        waker: &Waker,
        earlier: Option<u32>,
    ) -> Result<Option<u32>, WaitError> {
        if self.is_forked() {
            // A thread of the parent's may have held the lock.
            return Err(WaitError::Forked);
        }
        if self.is_over(job) {
            self.checks.waited_for(job);
            return Ok(None);
        }
        if let Some(key) = earlier {
            let is_kept = self.graph.wakers.replace(key, job, Some(waker.clone()));
            return Ok(is_kept.then_some(key));
        }
        let context = self.context().map_err(WaitError::from)?;
        let key = self.graph.wakers.keep(job, waker.clone());
        let key = key.ok_or(WaitError::Refused(ScheduleError::TooManyEdges))?;
        match context.graph().hang_listener(job, Listener::Waker(key)) {
            Ok(Some(_)) => {
                context.is_awaited_here(job);
                Ok(Some(key))
            }
            not_listening => {
                if let Some(waker) = self.graph.wakers.take(key) {
                    self.panics.discard(waker);
                }
                not_listening.map_err(WaitError::from)?;
                self.checks.waited_for(job);
                Ok(None)
            }
        }
    }

    fn forget(&self, job: Ticket, waker: u32) {
        // A fork's child has no use for the waker, and a thread of the parent's may have held the lock.
        if !self.is_forked() {
            self.graph.wakers.replace(waker, job, None);
        }
    }

    fn is_input(&self, job: Ticket) {
        // Relaxed: a hint for the thread that finishes the job.
        self.slot(job)
            .holders
            .fetch_or(Slot::<P>::INPUT, Ordering::Relaxed);
    }

    unsafe fn schedule(
        &self,
        label: Label,
        after: Ticket,
        body: &mut dyn SlotValue,
        table: &'static BodyTable,
    ) -> Result<Ticket, ScheduleError> {
        let visit = self.ending.visit().ok_or(ScheduleError::ShutDown)?;
        let context = self.context()?;
        // SAFETY: the caller's promise.
        let made = unsafe { successor(&context, label, after, body, table) };
        drop(visit);
        self.end_if_deferred(&context);
        made
    }

    fn end_event(&self, job: Ticket, mut value: Option<&mut dyn SlotValue>) {
        // In a fork's child nothing comes of it.
        if let Ok(context) = self.context_at_last() {
            match &mut value {
                Some(value) => self.slot(job).give(&mut **value),
                None => context.graph().abandon(job),
            }
            // After the end of the job system this counts down and does nothing; see `shutdown`.
            self.release_from_outside(&context, job);
        }
        // A value that no handle takes goes when all that wait for the event know that it is over.
        if let Some(value) = value {
            self.panics.count_drop(value.discard());
        }
    }
}
