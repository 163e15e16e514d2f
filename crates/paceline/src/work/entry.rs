//! How a thread gets in: every call from outside begins with the thread's context.
//!
//! Mostly the thread has a thread slot, and keeps it until it ends. A thread that calls for the first time is
//! given one. A thread may be unable to keep a thread slot: all slots for outside threads are taken, or the
//! thread is ending and the destructor that would give the slot back has already run. Most calls fail then.
//! The completion of an event and the end of the job system cannot fail. They are lent a thread slot until
//! they return ([`Lent`]).

use std::ops::Deref;

use event::Nanos;
use platform::{Parker, Platform};

use super::context::Context;
use super::shared::Shared;
use super::thread_record;
use super::thread_slot::ThreadSlot;
use super::wait::StackLimits;
use crate::error::ScheduleError;

/// The context of a call that cannot fail for lack of a thread slot.
pub(crate) struct Lent<'a, P: Platform> {
    context: Context<'a, P>,
    /// The thread slot is given back when the call returns.
    is_lent: bool,
}

impl<'a, P: Platform> Deref for Lent<'a, P> {
    type Target = Context<'a, P>;

    fn deref(&self) -> &Context<'a, P> {
        &self.context
    }
}

impl<P: Platform> Drop for Lent<'_, P> {
    fn drop(&mut self) {
        if self.is_lent {
            let Context { shared, thread, .. } = self.context;
            thread_record::give_back(&shared.platform, shared.id.get(), thread);
            thread.posted.depart();
            shared.threads.leave(thread.index);
        }
    }
}

/// The calling thread has just got a slot, which may have had another thread before.
pub(super) fn begin_with_slot<P: Platform>(cx: &Context<'_, P>) {
    let stack = StackLimits::of(&cx.shared.platform);
    cx.own(|own| own.stack = stack);
    // A visitor is gone in a moment. To ask for its name would cost more than its call.
    let stays = !cx.thread.is_for_visitors;
    let name = stays.then(|| cx.shared.platform.thread_name());
    cx.thread.posted.arrive(name.flatten());
    if stays && cx.shared.hints.is_on() {
        let number = cx.shared.platform.thread_id();
        let hints = &cx.shared.hints;
        cx.own(|own| hints.arrive(&mut own.hints, cx.thread.index, number));
    }
    cx.shared.adapt.thread_started(cx);
    cx.record_thread();
}

impl<P: Platform> Shared<P> {
    /// The context of the calling thread. Gives the thread a slot if it has none.
    ///
    /// # Errors
    /// In a fork's child, in a sink of this job system, if all thread slots are taken, or if the thread is
    /// ending.
    #[inline]
    pub(crate) fn context(&self) -> Result<Context<'_, P>, ScheduleError> {
        match self.known_context() {
            Some(context) => Ok(context),
            None => self.get_slot(),
        }
    }

    /// The context of the calling thread if it has a slot, and this is no fork's child.
    #[inline(always)] // For the callers that make nearly all jobs.
    pub(crate) fn known_context(&self) -> Option<Context<'_, P>> {
        if self.is_forked() {
            return None;
        }
        let thread = thread_record::current(&self.platform, self.id.get())?;
        // SAFETY: the thread's record carries this job system's number, which is never reused. So the pointer
        // is to one of its thread slots, and they live as long as `self`. The record says that the thread has
        // that slot.
        Some(unsafe { Context::new(self, &*thread) })
    }

    /// The same for a call that cannot fail for lack of a thread slot.
    ///
    /// # Errors
    /// In a fork's child, or in a sink of this job system.
    pub(crate) fn context_at_last(&self) -> Result<Lent<'_, P>, ScheduleError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        let (context, is_lent) = loop {
            match self.context() {
                Err(ScheduleError::TooManyThreads { .. } | ScheduleError::ThreadEnds) => {}
                entered => break (entered?, false),
            }
            if let Some(thread) = self.threads.take_guest(&self.platform, true) {
                break (self.enter_slot(thread), true);
            }
            // All thread slots that can be lent are in use by such calls.
            let now = self.platform.now();
            self.platform.parker().park(now + PERIOD);
        };
        Ok(Lent { context, is_lent })
    }

    #[cold]
    fn get_slot(&self) -> Result<Context<'_, P>, ScheduleError> {
        if self.is_forked() {
            return Err(ScheduleError::Forked);
        }
        let platform = &self.platform;
        if thread_record::is_in_sink(platform, self.id.get()) {
            return Err(ScheduleError::InSink);
        }
        if !thread_record::keeps_slots(platform) {
            return Err(ScheduleError::ThreadEnds);
        }
        let max_threads = self.threads.guests_max();
        let thread = self.threads.take_guest(platform, false);
        let thread = thread.ok_or(ScheduleError::TooManyThreads { max_threads })?;
        Ok(self.enter_slot(thread))
    }

    /// Gives the calling thread the slot that was taken for it.
    fn enter_slot<'a>(&'a self, thread: &'a ThreadSlot<P>) -> Context<'a, P> {
        self.graph.make_room_for(thread.index);
        thread_record::note_slot(&self.platform, self.id.get(), thread, self.host());
        // SAFETY: the thread has just got this slot.
        let context = unsafe { Context::new(self, thread) };
        begin_with_slot(&context);
        context
    }
}
