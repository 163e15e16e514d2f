//! A worker thread from start to end.

use platform::{Atomic, Lock, Omission, Ordering, Parker, Platform};

use super::Post;
use crate::border::UnwindGuard;
use crate::context::Context;
use crate::seat::{Role, Seat};
use crate::shared::Shared;
use crate::sitting::sit;

impl<P: Platform> Shared<P> {
    /// The name for the thread on this seat.
    pub(super) fn thread_name(&self, seat: usize) -> String {
        let asked = self.hooks.thread_name(seat);
        let asked = asked.and_then(|asked| self.call_hook(|| asked));
        asked.unwrap_or_else(|| format!("paceline {seat}"))
    }

    pub(super) fn worker_main(&self, index: usize) {
        let guard = UnwindGuard::<P>::new("a worker");
        let seat = self.seats.get(index);
        sit(&self.platform, self.id.get(), seat, self.host());
        let named = Named {
            shared: self,
            index,
        };
        // SAFETY: the thread was started for this seat and just sat down on it; a post has one
        // thread at a time (the next is started only after this one was joined).
        let context = unsafe { Context::new(self, seat) };
        context.begin_sitting();
        self.work(&context);
        drop(named);
        guard.disarm();
    }

    fn work(&self, context: &Context<'_, P>) {
        let index = context.worker();
        let starts = || self.hooks.thread_starts(index).unwrap_or(Ok(()));
        let stops = || self.hooks.thread_stops(index).unwrap_or(Ok(()));
        context.call_hook(starts);
        loop {
            match context.is_to_be_slow() {
                true => context.slow_loop(),
                false => context.work_loop(),
            }
            let next = self.come_out(context);
            if next == Next::Works {
                continue;
            }
            // A publisher may have counted on this worker just before it left.
            self.pass_on(context);
            if next == Next::Rests && self.rests(context) {
                continue;
            }
            context.call_hook(stops);
            self.end_if_last(context);
            if self.has_left(context) {
                return;
            }
            context.call_hook(starts);
        }
    }

    /// What a worker does that came out of its loop. If it is not to work, it does not count as a worker any
    /// more when this returns. A spare can be had back from the same moment on: where it is the last one that
    /// may be, a thread that finds all others blocked beside ready work would get none.
    fn come_out(&self, context: &Context<'_, P>) -> Next {
        let seat = context.seat;
        self.crew.roster.with(|roster| {
            if !context.must_leave() {
                return Next::Works;
            }
            self.crew.active.fetch_sub(1, Ordering::Relaxed);
            if seat.role != Role::Spare {
                return Next::Leaves;
            }
            // Relaxed, both: changed under this lock.
            let rests = |post: &Post<P>| {
                let flag = self
                    .seats
                    .get(post.seat as usize)
                    .flag
                    .load(Ordering::Relaxed);
                post.role == Role::Spare && flag & Seat::<P>::RESTS != 0
            };
            let leaves = self.crew.is_stopping() || roster.posts.iter().any(rests);
            let (next, flag) = match leaves {
                true => (Next::Leaves, Seat::<P>::LEAVES),
                false => (Next::Rests, Seat::<P>::RESTS),
            };
            seat.flag.store(flag, Ordering::Relaxed);
            next
        })
    }

    /// A spare rests instead of ending, until it is needed again. False if it is to end.
    fn rests(&self, context: &Context<'_, P>) -> bool {
        let seat = context.seat;
        // Acquire, partner: the Release store in `have_back`.
        let is_resting = || seat.flag.load(Ordering::Acquire) & Seat::<P>::RESTS != 0;
        while is_resting() {
            if self.crew.is_stopping() {
                return self.crew.roster.with(|_| {
                    // Relaxed: changed under this lock.
                    let is_needed = !is_resting();
                    if !is_needed {
                        seat.flag.store(Seat::<P>::LEAVES, Ordering::Relaxed);
                    }
                    is_needed
                });
            }
            seat.parker.park(event::Nanos::MAX);
        }
        true
    }

    /// The last thing a worker does: its post can be filled again. False if it is wanted after all,
    /// because the number of workers was raised meanwhile, or because it was needed as a spare.
    fn has_left(&self, context: &Context<'_, P>) -> bool {
        let seat = context.seat;
        self.crew.roster.with(|roster| {
            // Relaxed: only changed under this lock.
            let flag = seat.flag.load(Ordering::Relaxed);
            if seat.role == Role::Spare {
                if flag & Seat::<P>::LEAVES == 0 {
                    return false; // It counts again already.
                }
                seat.flag.store(0, Ordering::Relaxed);
            } else if flag & Seat::<P>::RETIRES == 0 && !self.crew.is_stopping() {
                self.crew.active.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            roster.post(seat.index).left = true;
            true
        })
    }

    /// Has another worker take the work that is left, if there is any.
    fn pass_on(&self, context: &Context<'_, P>) {
        // SeqCst, partner: the publisher's fence (F in `idle`): it saw that this worker was going, or
        // we see its ticket.
        P::fence(Ordering::SeqCst);
        if self.has_work() {
            if P::OMITS != Some(Omission::AnnounceBeforeLeaving) {
                // Those that spin have perhaps looked before it was there.
                self.idle.bump();
            }
            if self.crew.active() == 0 {
                // Waiters run anything then.
                context.alert_all();
            }
            match self.idle.wake_one() {
                Some(seat) => context.wake_worker(seat),
                None => context.consider_spare(),
            }
        }
    }
}

/// What a worker does that came out of its loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Works,
    /// A spare, until it is needed again.
    Rests,
    Leaves,
}

/// A worker's thread that adaptation knows of, until it ends, whichever way.
struct Named<'a, P: Platform> {
    shared: &'a Shared<P>,
    index: usize,
}

impl<P: Platform> Drop for Named<'_, P> {
    fn drop(&mut self) {
        self.shared
            .adapt
            .thread_ended(self.shared, Some(self.index));
    }
}
