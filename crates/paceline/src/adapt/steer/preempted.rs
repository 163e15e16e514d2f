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
use platform::{Atomic, Ordering, Platform};

use super::overdue::NUDGE;
use crate::context::Context;
use crate::seat::{Role, Seat};

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

impl<P: Platform> Context<'_, P> {
    /// For a waiter without anything to run: nudges workers that have no CPU, and says until when to spin
    /// before it looks again. `None`: there is none, or that took too long; it may sleep.
    pub(crate) fn nudge_preempted(
        &self,
        nudging: &mut Option<Nudging>,
        now: Nanos,
    ) -> Option<Nanos> {
        let shared = self.shared;
        if !shared.nudges_pay() {
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
        let is_off_cpu = |seat: &&Seat<P>| {
            shared.with_worker_thread(seat, |thread| {
                shared.platform.is_on_cpu(thread) == Some(false)
            })
        };
        let workers = shared.seats.iter().filter(|seat| self.may_hold_work(seat));
        let nudged = workers.filter(is_off_cpu).filter(|seat| self.nudge(seat));
        (nudged.count() > 0).then(|| {
            nudging.next = now + NUDGE;
            nudging.next
        })
    }

    /// Whether the worker on this seat may be in the middle of something. One that has been signalled and has
    /// not started is nobody's business here.
    fn may_hold_work(&self, seat: &Seat<P>) -> bool {
        let index = seat.index as usize;
        // Relaxed: hints all of them.
        seat.role != Role::Guest
            && seat.index != self.seat.index
            && seat.signalled().is_none()
            && seat.waits_for.load(Ordering::Relaxed) == 0
            && !self.shared.idle.is_asleep(index)
            && !self.shared.slow.idle.is_asleep(index)
    }
}
