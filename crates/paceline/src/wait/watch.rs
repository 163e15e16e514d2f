//! A waiter that has found nothing to run: it asks to be told, spins for a while, and parks.

use event::{EventKind, Nanos};
use platform::{Ordering, Parker, Platform};

use super::Wait;
use super::find::{Look, Walk};
use crate::adapt::Vigil;
use crate::context::Context;
use crate::error::WaitError;
use crate::idle::Fenced;
use crate::policy::{Tuning, WaitPolicy};
use crate::seat::Role;

/// How long a waiter with nothing to run does what.
#[derive(Clone, Copy)]
struct Patience {
    /// Spins until then, and nobody is told: a worker that is back soon is not replaced.
    quiet_until: Nanos,
    /// Goes on spinning until then, but counts as blocked.
    spin_until: Nanos,
}

/// What became of a rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The last look found something.
    None,
    Spun,
    Parked,
}

/// A deadlock is reported when it has been seen for this long. A real one lasts; what the walk reads
/// of a thread that is just now changing its mind does not.
const DEADLOCK_CONFIRM: Nanos = Nanos::from_millis(1);

/// How long a thread waits in the middle of a job, without workers and with work that it does not need, for
/// another thread to come; see the module above.
pub(super) const LAST_RESORT: Nanos = Nanos::from_millis(250);

/// How many times as long as a search for a deadlock took there is no further one: where waiters are woken
/// often, and what they wait for is large, searches take a bounded part of the time.
const DEADLOCK_REST: u64 = 16;

/// What a waiter knows of a possible deadlock.
#[derive(Clone, Copy)]
struct Suspicion {
    /// One was seen, since then.
    since: Option<Nanos>,
    /// When to look again.
    next: Nanos,
}

impl<P: Platform> Context<'_, P> {
    /// Nothing to run: asks to be told, spins, parks.
    pub(super) fn watch(&self, wait: &Wait, walk: &mut Walk) -> Result<bool, WaitError> {
        let shared = self.shared;
        let (slot, deadline) = (shared.slot(wait.target), wait.deadline);
        let listening = match self.listen(wait.target) {
            Ok(Some(listening)) => listening,
            Ok(None) => return Ok(true),
            // No link to be had (all are in use): look once a millisecond.
            Err(_) => return self.poll_for(wait, walk),
        };
        self.begin_watch();
        let mut patience = self.patience(deadline);
        let mut vigil = shared.adapt.watch();
        let mut suspicion = Suspicion {
            since: None,
            next: Nanos::ZERO,
        };
        let mut spun = false;
        let result = loop {
            let epoch = shared.idle.epoch();
            if self.help_until_stuck(wait, walk) {
                if spun {
                    self.own(|own| own.wait_habit.paid());
                }
                break Ok(true);
            }
            let now = shared.platform.now();
            vigil.passes(self, now);
            if now >= deadline {
                break Ok(slot.is_over(wait.target));
            }
            if now < patience.quiet_until {
                shared.idle.spin(epoch, patience.quiet_until);
                spun = true;
                continue;
            }
            if let Some(until) = vigil.spins_until(self, now) {
                shared.idle.spin(epoch, until.min(deadline));
                spun = true;
                continue;
            }
            let until = match self.look_for_deadlock(wait, now, &mut suspicion) {
                Ok(next_look) => deadline.min(next_look).min(self.last_resort(walk, now)),
                Err(error) => break Err(error),
            };
            match self.rest(wait, walk, &vigil, (patience.spin_until, until)) {
                Rest::None => {}
                Rest::Spun => spun = true,
                Rest::Parked => {
                    self.note_parked_since(now);
                    patience = self.patience(deadline);
                    vigil.has_slept();
                    spun = false;
                }
            }
        };
        self.end_watch();
        self.end_listening(listening, matches!(result, Ok(true)));
        result
    }

    /// Publishers tell this thread about new work from now on. Of waits inside waits the outermost one
    /// counts: the word counts threads.
    fn begin_watch(&self) {
        let outer = self.own(|own| {
            own.watches += 1;
            own.watches - 1
        });
        match outer {
            0 => _ = self.shared.idle.begin_watch::<Fenced>(),
            // SeqCst, partner: the publisher's fence (F in `idle`), as for the outermost one.
            _ => P::fence(Ordering::SeqCst),
        }
    }

    fn end_watch(&self) {
        let outer = self.own(|own| {
            own.watches -= 1;
            own.watches
        });
        if outer == 0 {
            self.shared.idle.end_watch();
        }
    }

    /// Looks for a deadlock that this wait is a part of, if it is time for that. When to look again, if
    /// anything wakes this thread before; or what to report.
    fn look_for_deadlock(
        &self,
        wait: &Wait,
        now: Nanos,
        suspicion: &mut Suspicion,
    ) -> Result<Nanos, WaitError> {
        // A wait with a deadline ends by itself.
        if wait.is_timed() || !self.may_be_in_cycle() {
            return Ok(Nanos::MAX);
        }
        if now < suspicion.next {
            return Ok(suspicion.next);
        }
        let Some(error) = self.find_cycle(wait.target) else {
            let then = self.shared.platform.now();
            suspicion.since = None;
            suspicion.next = then + Nanos(DEADLOCK_REST * (then - now).0);
            // What closes a cycle later looks for it, too.
            return Ok(Nanos::MAX);
        };
        let since = *suspicion.since.get_or_insert(now);
        suspicion.next = since + DEADLOCK_CONFIRM;
        match now - since >= DEADLOCK_CONFIRM {
            true => Err(error),
            false => Ok(suspicion.next),
        }
    }

    fn patience(&self, deadline: Nanos) -> Patience {
        let full = self.shared.spin_time();
        // A worker that waits inside a job goes on as the policy says: when it parks it is replaced.
        let learns =
            self.shared.spin.policy == WaitPolicy::Adaptive && self.seat.role == Role::Guest;
        let time = match learns {
            true => self.own(|own| own.wait_habit.time(full)),
            false => full,
        };
        let spin_until = self.deadline_in(time).min(deadline);
        let quiet_until = match spin_until {
            Nanos::ZERO => Nanos::ZERO,
            later => later.min(self.shared.platform.now() + Tuning::SPIN_MAX),
        };
        Patience {
            quiet_until,
            spin_until,
        }
    }

    fn note_parked_since(&self, then: Nanos) {
        let away = self.shared.platform.now() - then;
        let (full, cost) = (self.shared.spin_time(), self.shared.wake_cost.get());
        self.own(|own| own.wait_habit.parked(away, full, cost));
    }

    /// The last look around, then rest until `until`: parked, or spinning as long as the policy says
    /// so. Meanwhile this thread counts as blocked, and everything that others could run is theirs.
    fn rest(
        &self,
        wait: &Wait,
        walk: &mut Walk,
        vigil: &Vigil<'_, P>,
        (spin_until, until): (Nanos, Nanos),
    ) -> Rest {
        self.promote_all();
        self.forget_stamp();
        let epoch = self.shared.idle.epoch();
        self.begin_block();
        // SeqCst, partner: the publisher's fence (F in `idle`): it sees the marks, or we its ticket.
        P::fence(Ordering::SeqCst);
        let found = match self.may_help(wait) {
            true => self
                .find_ancestor(wait.target, walk)
                .or_else(|| self.find_descendant(wait.target, Look::Thorough)),
            false => None,
        };
        let mut rest = Rest::None;
        let is_over = || self.shared.slot(wait.target).is_over(wait.target);
        if found.is_none() && !is_over() && !self.must_run_anything(wait, walk) {
            if let Some(stuck) = self.replace_blocked() {
                self.end_block();
                self.tell_stuck(&stuck);
                return Rest::None;
            }
            if self.shared.platform.now() < spin_until {
                self.shared.idle.spin(epoch, spin_until.min(until));
                rest = Rest::Spun;
            } else {
                self.seat.counters.parks.add(1);
                self.record(EventKind::Park, wait.target, 0);
                self.seat.parker.park(until.min(vigil.sleeps_until()));
                self.record_unpark(wait.target);
                rest = Rest::Parked;
            }
        }
        self.end_block();
        if let Some(job) = found {
            self.help(job, self.shared.slot(job), wait.target);
        }
        rest
    }

    /// Whether there are no workers, and something that this thread has to run therefore.
    fn must_run_anything(&self, wait: &Wait, walk: &Walk) -> bool {
        self.may_run_anything(walk) && self.may_help(wait) && self.shared.has_work()
    }

    /// When this thread has to look again whether it is on its own, if there is work that it could run then.
    fn last_resort(&self, walk: &mut Walk, now: Nanos) -> Nanos {
        if self.shared.crew.active() == 0 && self.is_called_back() && self.shared.has_work() {
            walk.last_resort = walk.last_resort.min(now + LAST_RESORT);
        }
        walk.last_resort
    }

    #[cold]
    fn poll_for(&self, wait: &Wait, walk: &mut Walk) -> Result<bool, WaitError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        let vigil = self.shared.adapt.watch();
        loop {
            let now = self.shared.platform.now();
            if self.help_until_stuck(wait, walk) || now >= wait.deadline {
                return Ok(self.shared.slot(wait.target).is_over(wait.target));
            }
            let until = wait.deadline.min(now + PERIOD);
            self.rest(wait, walk, &vigil, (Nanos::ZERO, until));
        }
    }
}
