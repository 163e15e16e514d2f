//! The limit on how many workers run background jobs at a time
//! ([`Builder::background_at_most`](crate::Builder::background_at_most)).
//!
//! A worker takes a *place* before it takes a ticket from the backlog, and leaves it when the job has ended.
//! A wait that runs a background job needs no place: what is waited for is never held up by the limit. While
//! a worker rests in the middle of a background job, in a wait or in `blocking`, its place is free. So jobs
//! that wait for each other cannot use up all places. When it goes on it has its place back, even if that is
//! one too many.
//!
//! A backlog with tickets and no place is no work: workers go to sleep beside it. So leaving a place is like
//! publishing a ticket (`queues/idle`):
//!
//! ```text
//! worker that leaves its place            worker going to sleep
//! W  places - 1                           S  searching - 1, sleeping + 1
//! F  fence                                G  fence
//! R  reads the backlog, the idle word     L  reads the backlog, the places
//! ```
//!
//! The same goes for the thread that puts a ticket into the backlog (W) and does not announce it since there
//! is no place (R): the worker that leaves its place (S) looks at the backlog behind its fence (L).

use platform::Ordering;
use platform::Platform;

use super::Context;
use super::state::BackgroundPlace;
use crate::store::Ticket;
use crate::work::thread_slot::ThreadKind;

impl<P: Platform> Context<'_, P> {
    /// A job of a side lane, or else one of the background.
    #[inline(never)]
    pub(crate) fn take_from_behind(&self) -> Option<Ticket> {
        let beside = self.extra_lanes().and_then(|extra| extra.next_behind(self));
        if beside.is_none() {
            return self.take_from_backlog();
        }
        self.give_back_place();
        beside
    }

    /// The background job that has waited longest, for a worker if there is a place for it.
    #[inline(never)]
    pub(crate) fn take_from_backlog(&self) -> Option<Ticket> {
        let lanes = &self.shared.lanes;
        // A job that was begun and has made way comes before one that was not.
        let begun = || lanes.yielders().count() > 0;
        // A spare that has let one go on is one worker too many, unless another one has made way since.
        let is_spare = self.thread.kind == ThreadKind::Spare;
        let waits = || begun() || (is_spare && (self.is_spare_in_vain() || begun()));
        if lanes.backlog.is_empty() || (!self.own(|own| own.is_slow) && waits()) {
            self.give_back_place();
            return None;
        }
        if !lanes.is_limited() || self.thread.kind == ThreadKind::Guest {
            return lanes.backlog.take(1).first().copied();
        }
        self.take_with_place()
    }

    #[cold]
    fn take_with_place(&self) -> Option<Ticket> {
        let lanes = &self.shared.lanes;
        let has_one = self.own(|own| own.place == BackgroundPlace::Taken);
        if !has_one && !lanes.take_place() {
            return None;
        }
        self.own(|own| own.place = BackgroundPlace::Taken);
        let ticket = lanes.backlog.take(1).first().copied();
        if ticket.is_none() {
            self.give_back_place();
        }
        ticket
    }

    /// The ticket for which a place was taken came to nothing.
    #[inline(always)]
    pub(crate) fn give_back_place(&self) {
        if self.own(|own| own.place == BackgroundPlace::Taken) {
            self.leave_taken_place();
        }
    }

    #[cold]
    fn leave_taken_place(&self) {
        self.own(|own| own.place = BackgroundPlace::None);
        self.leave_place();
    }

    /// Runs a job of another lane than the job underneath, or a share of a loop.
    pub(crate) fn with_place<R>(&self, run: impl FnOnce() -> R) -> R {
        let begins = self.own(|own| {
            let begins = own.place == BackgroundPlace::Taken;
            if begins {
                own.place = BackgroundPlace::Held;
            }
            begins
        });
        let result = run();
        if begins {
            self.own(|own| own.place = BackgroundPlace::None);
            self.leave_place();
        }
        result
    }

    /// Rests in the middle of whatever runs here. Meanwhile its place, if it has one, is free: that among
    /// those that run background jobs, or that in a lane with a share.
    pub(crate) fn rest_without_place<R>(&self, rest: impl FnOnce() -> R) -> R {
        /// Takes the place back, also during an unwind.
        struct Vacated<'c, 'a, P: Platform>(&'c Context<'a, P>, BackgroundPlace);
        impl<P: Platform> Drop for Vacated<'_, '_, P> {
            fn drop(&mut self) {
                self.0.goes_on_in_place(self.1);
            }
        }
        let place = self.own(|own| own.place);
        if !matches!(place, BackgroundPlace::Held | BackgroundPlace::InShare) {
            return rest();
        }
        self.rests_in_place(place);
        let _resting = Vacated(self, place);
        rest()
    }

    #[cold]
    fn rests_in_place(&self, place: BackgroundPlace) {
        if place == BackgroundPlace::InShare {
            return self.rests_in_share(true);
        }
        self.own(|own| own.place = BackgroundPlace::None);
        self.leave_place();
    }

    #[cold]
    fn goes_on_in_place(&self, place: BackgroundPlace) {
        if place == BackgroundPlace::InShare {
            return self.rests_in_share(false);
        }
        self.shared.lanes.take_place_back();
        self.own(|own| own.place = BackgroundPlace::Held);
    }

    #[inline]
    fn rests_in_share(&self, rests: bool) {
        if let Some(extra) = self.extra_lanes() {
            extra.rests(self, rests);
        }
    }

    /// Another worker may run background jobs, if there are any.
    #[inline(never)]
    pub(crate) fn leave_place(&self) {
        self.shared.lanes.leave_place();
        // SeqCst, partner: the fence of a worker that goes to sleep, and of the thread that makes a
        // background job ready (F of the module).
        P::fence(Ordering::SeqCst);
        if !self.shared.lanes.backlog.is_empty() {
            self.announce_background();
        }
    }
}
