//! How a thread gets in: every call from outside begins with an [`Entry`].
//!
//! An entry is the thread's context. Mostly the thread has a seat, and keeps it; a thread that calls for the
//! first time is given one. There are two cases in which it cannot keep one, and is lent one until the call
//! returns:
//!
//! - The thread is ending: what gives its seats back has been called, and now a destructor of one of its
//!   thread-locals uses the job system.
//! - All seats for outside threads are taken, and the call cannot fail: the completion of an event, the end
//!   of the job system. (Other calls fail with [`ScheduleError::TooManyThreads`].)

use std::ops::Deref;

use event::Nanos;
use platform::{Parker, Platform};

use crate::context::Context;
use crate::error::ScheduleError;
use crate::seat::Seat;
use crate::shared::Shared;
use crate::sitting;
use crate::wait;

/// A call into the job system.
pub(crate) struct Entry<'a, P: Platform> {
    context: Context<'a, P>,
    /// The seat is given back when the call returns.
    is_lent: bool,
}

impl<'a, P: Platform> Deref for Entry<'a, P> {
    type Target = Context<'a, P>;

    #[inline]
    fn deref(&self) -> &Context<'a, P> {
        &self.context
    }
}

impl<P: Platform> Drop for Entry<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.is_lent {
            self.context.shared.take_back(self.context.seat);
        }
    }
}

impl<P: Platform> Context<'_, P> {
    /// This thread has just sat down here, perhaps after another one.
    pub(crate) fn begin_sitting(&self) {
        let limit = wait::stack_limit(&self.shared.platform);
        self.own(|own| own.stack_limit = limit);
        self.forget_usage();
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
    /// In a fork's child, in a sink of this job system, or if all seats are taken.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entry<'_, P>, ScheduleError> {
        if self.is_forked() {
            return Err(ScheduleError::Forked);
        }
        match sitting::current(&self.platform, self.id.get()) {
            Some(seat) => {
                // SAFETY: the thread's record carries this job system's number, which is never reused, so the
                // pointer is to one of our seats, and they live as long as `self`. It says that the thread
                // sits there.
                let context = unsafe { Context::new(self, &*seat) };
                let is_lent = false;
                Ok(Entry { context, is_lent })
            }
            None => self.sit_down(false),
        }
    }

    /// The same for a call that cannot fail for want of a seat.
    ///
    /// # Errors
    /// In a fork's child, or in a sink of this job system.
    pub(crate) fn enter_at_last(&self) -> Result<Entry<'_, P>, ScheduleError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        loop {
            match self.enter() {
                Err(ScheduleError::TooManyThreads { .. }) => {}
                entered => return entered,
            }
            match self.sit_down(true) {
                Err(ScheduleError::TooManyThreads { .. }) => {
                    // As many threads as can be lent a seat are in the middle of such a call.
                    let now = self.platform.now();
                    self.platform.parker().park(now + PERIOD);
                }
                entered => return entered,
            }
        }
    }

    #[cold]
    fn sit_down(&self, visits: bool) -> Result<Entry<'_, P>, ScheduleError> {
        let platform = &self.platform;
        if sitting::is_in_sink(platform, self.id.get()) {
            return Err(ScheduleError::InSink);
        }
        let is_lent = visits || !sitting::keeps_seats(platform);
        let seat = self.seats.take_guest(platform, is_lent);
        let Some(seat) = seat else {
            sitting::forget_unkept(platform);
            let max_threads = self.seats.guests_max();
            return Err(ScheduleError::TooManyThreads { max_threads });
        };
        self.make_room_for(seat);
        sitting::sit(platform, self.id.get(), seat, self.host());
        // SAFETY: the thread has just sat down there.
        let context = unsafe { Context::new(self, seat) };
        context.begin_sitting();
        Ok(Entry { context, is_lent })
    }

    /// A call has returned for which the seat was lent.
    #[cold]
    fn take_back(&self, seat: &Seat<P>) {
        sitting::stand_up_from(&self.platform, self.id.get(), seat);
        self.seats.leave(seat.index);
    }
}
