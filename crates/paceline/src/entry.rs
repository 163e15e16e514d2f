//! How a thread gets in: every call from outside begins with the thread's context.
//!
//! Mostly the thread has a seat, and keeps it until it ends; a thread that calls for the first time is given
//! one. It may be that it cannot keep one: all seats for outside threads are taken, or the thread is ending
//! and what would give the seat back has been called already. Most calls fail then. Those that cannot, the
//! completion of an event and the end of the job system, are lent a seat until they return ([`Lent`]).

use std::ops::Deref;

use event::Nanos;
use platform::{Parker, Platform};

use crate::context::Context;
use crate::error::ScheduleError;
use crate::seat::Seat;
use crate::shared::Shared;
use crate::sitting;
use crate::wait;

/// The context of a call that cannot fail for want of a seat.
pub(crate) struct Lent<'a, P: Platform> {
    context: Context<'a, P>,
    /// The seat is given back when the call returns.
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
            let Context { shared, seat, .. } = self.context;
            sitting::stand_up_from(&shared.platform, shared.id.get(), seat);
            shared.seats.leave(seat.index);
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// This thread has just sat down here, perhaps after another one.
    pub(crate) fn begin_sitting(&self) {
        let limit = wait::stack_limit(&self.shared.platform);
        self.own(|own| own.stack_limit = limit);
        self.shared.adapt.thread_started(self);
        self.record_seated();
    }
}

impl<P: Platform> Shared<P> {
    /// Each thread that sits keeps some free entries at hand, which others cannot have.
    pub(crate) fn make_room_for(&self, seat: &Seat<P>) {
        self.slots.make_room_for_cache(seat.index);
        self.links.make_room_for_cache(seat.index);
    }

    /// The calling thread's way in; gives it a seat if it has none.
    ///
    /// # Errors
    /// In a fork's child, in a sink of this job system, if all seats are taken, or if the thread is ending.
    #[inline]
    pub(crate) fn context(&self) -> Result<Context<'_, P>, ScheduleError> {
        if self.is_forked() {
            return Err(ScheduleError::Forked);
        }
        match sitting::current(&self.platform, self.id.get()) {
            // SAFETY: the thread's record carries this job system's number, which is never reused, so the
            // pointer is to one of our seats, and they live as long as `self`. It says that the thread
            // sits there.
            Some(seat) => Ok(unsafe { Context::new(self, &*seat) }),
            None => self.sit_down(),
        }
    }

    /// The same for a call that cannot fail for want of a seat.
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
            if let Some(seat) = self.seats.take_guest(&self.platform, true) {
                break (self.take_seat(seat), true);
            }
            // As many threads as can be lent a seat are in the middle of such a call.
            let now = self.platform.now();
            self.platform.parker().park(now + PERIOD);
        };
        Ok(Lent { context, is_lent })
    }

    #[cold]
    fn sit_down(&self) -> Result<Context<'_, P>, ScheduleError> {
        let platform = &self.platform;
        if sitting::is_in_sink(platform, self.id.get()) {
            return Err(ScheduleError::InSink);
        }
        if !sitting::keeps_seats(platform) {
            return Err(ScheduleError::ThreadEnds);
        }
        let max_threads = self.seats.guests_max();
        let seat = self.seats.take_guest(platform, false);
        let seat = seat.ok_or(ScheduleError::TooManyThreads { max_threads })?;
        Ok(self.take_seat(seat))
    }

    /// The calling thread, for which the seat was taken, sits down.
    fn take_seat<'a>(&'a self, seat: &'a Seat<P>) -> Context<'a, P> {
        self.make_room_for(seat);
        sitting::sit(&self.platform, self.id.get(), seat, self.host());
        // SAFETY: the thread has just sat down there.
        let context = unsafe { Context::new(self, seat) };
        context.begin_sitting();
        context
    }
}
