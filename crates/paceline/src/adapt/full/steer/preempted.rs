//! Workers that lost their CPU with work in their hands that a waiter needs.
//!
//! A fair kernel takes the CPU from a thread whose slice is over at one tick, and gives it back at another
//! one, although the thread may be due to run much earlier: 4 ms for a piece of a loop that has 10 us to
//! go. So where wake-ups are known to take long, a waiter that has nothing left to run looks for workers
//! that are neither asleep nor waiting and have no CPU, and nudges them (see `overdue`). Meanwhile the
//! waiter spins. The job that it waits for is nearly done then, and a waiter that sleeps beside busy
//! threads gets a CPU back only when they leave one.
//!
//! It does so for no longer than a slice of those busy threads may take. A worker that runs is left alone:
//! a nudge would end its slice, not theirs.

use event::Nanos;
use platform::{Machine, Platform};

use super::Steerer;
use super::overdue::NUDGE;
use crate::adapt::workers::{Caller, Workers};

/// The longest slice that Linux gives by itself is 2.8 ms, and half of that on two CPUs.
const LONGEST: Nanos = Nanos::from_millis(3);

/// A waiter's memory of its nudges, from the moment when it has nothing to run until it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Nudging {
    /// From then on there are no more nudges.
    ends: Nanos,
    /// Until then the waiter spins and nudges no worker, even if something makes it look around meanwhile.
    next: Nanos,
}

impl<P: Platform, C: Caller<P>> Steerer<'_, P, C> {
    /// For a waiter with nothing to run: nudges workers that have no CPU. Returns the time until which the
    /// waiter spins before it looks again. `None`: the waiter may sleep, because there is no such worker,
    /// or because it took too long.
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

    /// Whether a worker may have work in its hands. A worker that has been signalled and has not started is
    /// the concern of `overdue`.
    pub(super) fn may_hold_work(&self, index: usize) -> bool {
        let workers = self.caller.workers();
        index != self.caller.index()
            && workers.signalled(index).is_none()
            && !workers.is_at_rest(index)
    }
}
