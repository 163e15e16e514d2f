//! Workers that lost their CPU with something in their hands that a waiter needs.
//!
//! A fair kernel takes the CPU from a thread whose slice is over at a tick, and gives it back at another,
//! although it may be due to it much earlier: 4 ms for a piece of a loop that has 10 us to go. A waiter
//! that has nothing left to run therefore looks, where wake-ups are known to take long, for workers that
//! are neither asleep nor waiting and have no CPU, and nudges them (see `overdue`). Meanwhile it spins:
//! what it waits for is nearly done then, and a waiter that sleeps beside busy threads gets back when they
//! let it.
//!
//! It does so for no longer than a slice of those others may take. A worker that runs is left alone: a nudge
//! would end its slice, not theirs.

use event::Nanos;
use platform::{Machine, Platform};

use super::Steerer;
use super::overdue::NUDGE;
use crate::adapt::workers::{Caller, Workers};

/// The longest slice that Linux gives by itself is 2.8 ms; half of that on two CPUs.
const LONGEST: Nanos = Nanos::from_millis(3);

/// What a waiter remembers of it, from when it has nothing to run until it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Nudging {
    /// Not any more from then on.
    ends: Nanos,
    /// Until then it spins, whatever makes it look around meanwhile, and asks for nothing.
    next: Nanos,
}

impl<P: Platform, C: Caller<P>> Steerer<'_, P, C> {
    /// For a waiter without anything to run: nudges workers that have no CPU, and says until when to spin
    /// before it looks again. `None`: there is none, or that took too long; it may sleep.
    pub(in crate::adapt) fn nudge_preempted(
        &self,
        nudging: &mut Option<Nudging>,
        now: Nanos,
    ) -> Option<Nanos> {
        if !self.nudges_pay() {
            return None;
        }
        let nudging = nudging.get_or_insert(Nudging {
            ends: now + LONGEST,
            next: now,
        });
        if now < nudging.next {
            return Some(nudging.next);
        }
        if now >= nudging.ends {
            return None;
        }
        let workers = self.caller.workers();
        let is_off_cpu = |thread| workers.machine().is_on_cpu(thread) == Some(false);
        let mut nudged = 0;
        for (index, words) in workers.each() {
            if self.may_hold_work(index)
                && workers.with_thread(words, is_off_cpu)
                && self.nudge(index, words)
            {
                nudged += 1;
            }
        }
        (nudged > 0).then(|| {
            nudging.next = now + NUDGE;
            nudging.next
        })
    }

    /// Whether a worker may be in the middle of something. A worker that has been signalled and has not
    /// started is looked after by `overdue`.
    fn may_hold_work(&self, index: usize) -> bool {
        let workers = self.caller.workers();
        index != self.caller.index()
            && workers.signalled(index).is_none()
            && !workers.is_at_rest(index)
    }
}
