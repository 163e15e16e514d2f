//! A waiter that has found nothing to run: it asks to be told, spins for a while, and parks.

use event::{EventKind, Nanos};
use platform::{Ordering, Parker, Platform};

use super::Wait;
use super::find::{Look, Walk};
use crate::context::Context;
use crate::error::WaitError;
use crate::idle::Fenced;
use crate::listen::Listener;
use crate::policy::{Tuning, WaitPolicy};
use crate::seat::Role;
use crate::steer::Nudging;

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

impl<P: Platform> Context<'_, P> {
    /// Nothing to run: asks to be told, spins, parks.
    pub(super) fn watch(
        &self,
        wait: Wait,
        walk: &mut Walk,
        deadline: Nanos,
    ) -> Result<bool, WaitError> {
        let shared = self.shared;
        let slot = shared.slot(wait.target);
        let listening = match self.listen(wait.target, Listener::Seat(self.seat.index)) {
            Ok(Some(listening)) => listening,
            Ok(None) => return Ok(true),
            // No link to be had (all are in use): look once a millisecond.
            Err(_) => return self.poll_for(wait, walk, deadline),
        };
        shared.idle.begin_watch::<Fenced>();
        let mut patience = self.patience(deadline);
        let mut nudging: Option<Nudging> = None;
        let (mut suspected, mut spun) = (None, false);
        let result = loop {
            let epoch = shared.idle.epoch();
            if self.help_until_stuck(wait, walk) {
                if spun {
                    self.own(|own| own.wait_habit.paid());
                }
                break Ok(true);
            }
            let now = shared.platform.now();
            self.check_overdue_at(now);
            if now >= deadline {
                break Ok(slot.is_over(wait.target));
            }
            if now < patience.quiet_until {
                shared.idle.spin(epoch, patience.quiet_until);
                spun = true;
                continue;
            }
            if let Some(until) = self.nudge_preempted(&mut nudging, now) {
                shared.idle.spin(epoch, until.min(deadline));
                spun = true;
                continue;
            }
            // A wait with a deadline ends, whoever waits for whom.
            let endless = deadline == Nanos::MAX;
            let cycle = endless.then(|| self.find_cycle(wait.target)).flatten();
            let until = match cycle {
                None => {
                    suspected = None;
                    deadline
                }
                Some(error) => {
                    let since = *suspected.get_or_insert(now);
                    if now - since >= DEADLOCK_CONFIRM {
                        break Err(error);
                    }
                    deadline.min(since + DEADLOCK_CONFIRM)
                }
            };
            match self.rest(wait, walk, patience.spin_until, until) {
                Rest::None => {}
                Rest::Spun => spun = true,
                Rest::Parked => {
                    self.note_parked_since(now);
                    patience = self.patience(deadline);
                    (nudging, spun) = (None, false);
                }
            }
        };
        shared.idle.end_watch();
        if !matches!(result, Ok(true)) {
            self.give_up(listening);
        }
        result
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
    fn rest(&self, wait: Wait, walk: &mut Walk, spin_until: Nanos, until: Nanos) -> Rest {
        self.promote_all();
        self.forget_stamp();
        let epoch = self.shared.idle.epoch();
        self.begin_block();
        // SeqCst, partner: the publisher's fence (F in `idle`): it sees the marks, or we its ticket.
        P::fence(Ordering::SeqCst);
        let found = self
            .find_ancestor(wait, walk)
            .or_else(|| self.find_descendant(wait, Look::Thorough));
        let mut rest = Rest::None;
        if found.is_none() && !self.shared.slot(wait.target).is_over(wait.target) {
            self.replace_blocked();
            if self.shared.platform.now() < spin_until {
                self.shared.idle.spin(epoch, spin_until.min(until));
                rest = Rest::Spun;
            } else {
                self.seat.counters.parks.add(1);
                self.record(EventKind::Park, wait.target, 0);
                self.seat.parker.park(until.min(self.overdue_at()));
                self.record_unpark(wait.target);
                rest = Rest::Parked;
            }
        }
        self.end_block();
        if let Some(job) = found {
            self.help(job, self.shared.slot(job), wait);
        }
        rest
    }

    #[cold]
    fn poll_for(&self, wait: Wait, walk: &mut Walk, deadline: Nanos) -> Result<bool, WaitError> {
        const PERIOD: Nanos = Nanos::from_millis(1);
        loop {
            let now = self.shared.platform.now();
            if self.help_until_stuck(wait, walk) || now >= deadline {
                return Ok(self.shared.slot(wait.target).is_over(wait.target));
            }
            self.rest(wait, walk, Nanos::ZERO, deadline.min(now + PERIOD));
        }
    }
}
