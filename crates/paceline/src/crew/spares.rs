//! Spare workers.
//!
//! A *spare* is one more worker that works only while every other one is blocked inside a wait, so that ready
//! work which no wait may run still runs. Spares leave as soon as a regular worker is free
//! again; one of them rests then, since a program that needed a spare mostly needs one again, and starting a
//! thread takes longer than most jobs.
//!
//! There is a limit to them, and the system may refuse a thread. Then ready work has to wait until a thread
//! comes out of its wait, which may be never: the program is told ([`Stuck`]).

use event::EventKind;
use platform::{Atomic, Lock, Ordering, Parker, Platform};

use super::Post;
use crate::context::Context;
use crate::error::Stuck;
use crate::idle::Fenced;
use crate::job::Ticket;
use crate::seat::{Role, Seat};
use crate::shared::Shared;

/// Where a spare is to come from.
enum Source {
    /// It rested, or was about to end.
    Rested(u32),
    /// A thread is to be started on this seat.
    Vacant(u32),
    /// There are as many as may be.
    Exhausted,
    /// Another thread was faster.
    NotNeeded,
}

impl<P: Platform> Shared<P> {
    /// Whether more than one worker is not blocked in a wait: then a spare is one too many.
    pub(crate) fn has_free_worker(&self) -> bool {
        self.crew.active() > self.idle.load().blocked as usize + 1
    }

    /// If every worker is blocked in a wait while there is work: one more worker. If that cannot be, what to
    /// tell the program, once until it can.
    fn consider_spare(&self, context: &Context<'_, P>) -> Option<Stuck> {
        let active = self.crew.active();
        let blocked = self.idle.load().blocked as usize;
        if active == 0 || blocked < active || !self.has_work() || !self.may_add_spare() {
            return None;
        }
        let ended = self.crew.roster.with(|roster| roster.reap(Role::Spare));
        self.bury(ended);
        let working = match self.find_spare(active) {
            Source::Rested(seat) => Ok(Some(seat)),
            Source::Vacant(seat) => {
                let is_needed = |_: &Seat<P>| self.crew.active() == active && self.may_add_spare();
                let started = self.start(seat, is_needed);
                // The hook that names the thread may have waited here, and have used up the wake-up of the
                // wait around it, which is about to park: that looks again.
                context.seat.parker.unpark();
                started
                    .map(|started| started.then_some(seat))
                    .map_err(|error| error.to_string())
            }
            Source::Exhausted => Err(format!(
                "the limit is {} (max_spares)",
                self.crew.spares_max
            )),
            Source::NotNeeded => Ok(None),
        };
        match working {
            Ok(Some(seat)) => {
                // Relaxed: see below.
                self.crew.is_stuck.store(0, Ordering::Relaxed);
                context.seat.counters.spares.add(1);
                context.record(EventKind::Spare, Ticket::NONE, u64::from(seat));
                None
            }
            Ok(None) => None,
            Err(why) => {
                context.seat.counters.spares_refused.add(1);
                // Relaxed: one of those that see 0 tells it; nothing is published with it.
                let is_told = self.crew.is_stuck.swap(1, Ordering::Relaxed) != 0;
                let waiting = active;
                (!is_told).then_some(Stuck { waiting, why })
            }
        }
    }

    /// Whether a spare can still be of use. If the owner has left the end to the workers it can: what they
    /// wait for has to run before they leave. (Else the thread that ends the job system runs it.)
    fn may_add_spare(&self) -> bool {
        !self.crew.is_stopping() || self.ending.is_due()
    }

    fn find_spare(&self, active: usize) -> Source {
        self.crew.roster.with(|roster| {
            if self.crew.active() != active || !self.may_add_spare() {
                return Source::NotNeeded;
            }
            let seat_of = |post: &Post<P>| self.seats.get(post.seat as usize);
            let spares = || roster.posts.iter().filter(|post| post.role == Role::Spare);
            // Relaxed: changed under this lock.
            let flag_of = |post: &Post<P>| seat_of(post).flag.load(Ordering::Relaxed);
            for flag in [Seat::<P>::RESTS, Seat::<P>::LEAVES] {
                if let Some(post) = spares().find(|post| flag_of(post) & flag != 0) {
                    self.have_back(seat_of(post));
                    return Source::Rested(post.seat);
                }
            }
            if let Some(post) = spares().find(|post| post.is_vacant()) {
                return Source::Vacant(post.seat);
            }
            if spares().count() >= self.crew.spares_max {
                return Source::Exhausted;
            }
            let added = self.add_post(roster, Role::Spare);
            added.map_or(Source::Exhausted, Source::Vacant)
        })
    }

    /// A spare that rests, or was about to end, works again. Called under the roster's lock.
    fn have_back(&self, seat: &Seat<P>) {
        self.crew.active.fetch_add(1, Ordering::Relaxed);
        // Release, partner: the Acquire load in `rests`.
        seat.flag.store(0, Ordering::Release);
        seat.parker.unpark();
    }
}

impl<P: Platform> Context<'_, P> {
    /// This worker is about to rest inside a wait. The caller looks for work once more afterwards,
    /// then calls [`replace_blocked`](Context::replace_blocked).
    pub(crate) fn begin_block(&self) {
        if self.counts_when_blocked() {
            self.shared.idle.begin_block::<Fenced>();
        }
    }

    /// Sees to it that a spare works if every worker is blocked in a wait while there is work.
    #[cold]
    pub(crate) fn consider_spare(&self) {
        if let Some(stuck) = self.shared.consider_spare(self) {
            self.tell_stuck(&stuck);
        }
    }

    /// This worker is blocked and found nothing it may run. If it was the last one, others' work needs a
    /// spare. What there is to tell if there can be none: when this worker is not blocked any more.
    pub(crate) fn replace_blocked(&self) -> Option<Stuck> {
        match self.seat.role {
            Role::Guest => None,
            _ => self.shared.consider_spare(self),
        }
    }

    /// Guests are no workers, and slow workers count as blocked all the time.
    fn counts_when_blocked(&self) -> bool {
        self.seat.role != Role::Guest && !self.own(|own| own.is_slow)
    }

    /// It goes on.
    pub(crate) fn end_block(&self) {
        if self.counts_when_blocked() {
            self.shared.idle.end_block();
        }
    }

    #[cold]
    pub(crate) fn tell_stuck(&self, stuck: &Stuck) {
        let hooks = &self.shared.hooks;
        match hooks.hears_of_stuck() {
            true => _ = self.call_hook(|| hooks.stuck(stuck).unwrap_or(Ok(()))),
            false => eprintln!("paceline: {stuck}"),
        }
    }
}
