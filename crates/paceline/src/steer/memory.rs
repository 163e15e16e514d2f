//! What a worker remembers of its wake-ups, and the mask it wants because of them.

use event::Nanos;

use crate::seat::WakeReport;

/// How long one sighting keeps a worker off its waker's CPU.
const ARMED: Nanos = Nanos::from_secs(1);
/// So many late wake-ups in a row mean that the CPUs left in the mask are busy. (One alone may be an
/// interrupt, or a hypervisor that took the CPU away.)
const LATE_IN_A_ROW: u32 = 2;
/// How long to do without a mask that was in the way, the first time; twice as long each further time
/// until a wake-up is in time again, at most [`ARMED`].
const HOLD_OFF: Nanos = Nanos::from_millis(30);
/// How long to take it that no CPU idles after it turned out so.
const ASK_AGAIN: Nanos = Nanos::from_millis(5);

/// A worker's memory of its wake-ups.
pub(crate) struct Steer {
    /// Until when to stay off the waker's CPU.
    armed_until: Nanos,
    /// Until when not to be armed again.
    held_off_until: Nanos,
    /// Late wake-ups with a mask since the last one in time.
    late: u32,
    /// The CPU that is to be avoided, and the one that the mask excludes now.
    avoid: Option<u32>,
    excluded: Option<u32>,
    /// The last wake-up put the worker on its waker's CPU, and so in the waker's place.
    displaces_waker: bool,
}

impl Steer {
    pub(crate) fn new() -> Steer {
        Steer {
            armed_until: Nanos::ZERO,
            held_off_until: Nanos::ZERO,
            late: 0,
            avoid: None,
            excluded: None,
            displaces_waker: false,
        }
    }

    /// Whether this wake-up at `now` is a reason to be armed if a CPU idles: finding that out costs
    /// something. Once armed, every sighting counts.
    pub(super) fn would_arm(&self, report: &WakeReport, now: Nanos) -> bool {
        report.colocated && now >= self.held_off_until
    }

    /// Learns from a wake-up at `now` that was `late` or not. `packed`: it would arm, and the threads
    /// could have had CPUs of their own.
    pub(super) fn learn(&mut self, report: &WakeReport, now: Nanos, late: bool, packed: bool) {
        if self.excluded.is_some() {
            self.late = if late { self.late + 1 } else { 0 };
        }
        if self.excluded.is_some() && self.late >= LATE_IN_A_ROW {
            let times = 1 << (self.late - LATE_IN_A_ROW).min(10);
            self.armed_until = Nanos::ZERO;
            self.held_off_until = now + Nanos(HOLD_OFF.0 * times).min(ARMED);
        } else if packed {
            self.armed_until = now + ARMED;
        } else if self.would_arm(report, now) {
            self.held_off_until = now + ASK_AGAIN;
        }
        self.avoid = report.waker_cpu;
        self.displaces_waker = report.colocated;
    }

    /// Somebody else has undone what the last change asked for.
    pub(super) fn mask_is_full(&mut self) {
        self.excluded = None;
    }

    /// The CPU to exclude from now on, if that is a change.
    pub(super) fn change(&mut self, now: Nanos) -> Option<Option<u32>> {
        let wanted = self.avoid.filter(|_| now < self.armed_until);
        (wanted != self.excluded).then(|| {
            self.excluded = wanted;
            wanted
        })
    }

    /// Whether there was no wake-up yet from a known CPU.
    pub(super) fn has_seen_nothing(&self) -> bool {
        self.avoid.is_none()
    }

    /// The CPU that the last wake-up took from its waker.
    pub(super) fn displaced(&self) -> Option<u32> {
        self.avoid.filter(|_| self.displaces_waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(colocated: bool) -> WakeReport {
        WakeReport {
            latency: Nanos::from_micros(5),
            colocated,
            waker_cpu: Some(3),
        }
    }

    /// Goal: a mask is wanted after a sighting while a CPU idles, and for a second. Method: wake-ups
    /// elsewhere, on the waker's CPU without an idle one, and with one.
    #[test]
    fn a_sighting_arms_for_a_second() {
        let mut steer = Steer::new();
        steer.learn(&wake(false), Nanos(0), false, false);
        assert_eq!(steer.change(Nanos(0)), None, "nothing before a sighting");
        assert!(steer.would_arm(&wake(true), Nanos(1)));
        steer.learn(&wake(true), Nanos(1), false, false);
        assert_eq!(steer.change(Nanos(1)), None, "no CPU idles");
        assert!(
            !steer.would_arm(&wake(true), Nanos(2)),
            "nobody asks at once"
        );
        let now = Nanos(1) + ASK_AGAIN;
        assert!(steer.would_arm(&wake(true), now) && !steer.would_arm(&wake(false), now));
        steer.learn(&wake(true), now, false, true);
        assert_eq!(steer.change(now), Some(Some(3)));
        assert_eq!(steer.change(now + Nanos(10)), None, "already so");
        assert_eq!(steer.displaced(), Some(3));
        assert_eq!(
            steer.change(now + ARMED),
            Some(None),
            "not seen for a while"
        );
    }

    /// Goal: a mask that is in the way is left off, longer each time. Method: one late wake-up, every
    /// second one late, then late ones only.
    #[test]
    fn late_wake_ups_hold_it_off() {
        let mut steer = Steer::new();
        steer.learn(&wake(true), Nanos(0), false, true);
        assert_eq!(steer.change(Nanos(0)), Some(Some(3)));
        for late in [true, false, true] {
            steer.learn(&wake(false), Nanos(5), late, false);
            assert_eq!(steer.change(Nanos(5)), None, "once is no proof");
        }
        let mut now = Nanos(5);
        for times in [1, 2, 4] {
            steer.learn(&wake(false), now, true, false);
            assert_eq!(steer.change(now), Some(None), "the mask was in the way");
            let until = now + Nanos(times * HOLD_OFF.0);
            assert!(!steer.would_arm(&wake(true), until - Nanos(1)));
            assert!(steer.would_arm(&wake(true), until), "but then");
            steer.learn(&wake(true), until, false, true);
            assert_eq!(steer.change(until), Some(Some(3)));
            now = until;
        }
    }

    /// Goal: what somebody else undid is asked for anew while it is wanted. Method: undo it.
    #[test]
    fn a_restored_mask_is_asked_for_anew() {
        let mut steer = Steer::new();
        steer.learn(&wake(true), Nanos(0), false, true);
        assert_eq!(steer.change(Nanos(0)), Some(Some(3)));
        steer.learn(&wake(false), Nanos(9), true, false);
        steer.mask_is_full();
        assert_eq!(steer.change(Nanos(9)), Some(Some(3)));
        steer.learn(&wake(false), Nanos(10), true, false);
        steer.mask_is_full();
        assert_eq!(steer.change(Nanos(10)), None, "twice late: full it stays");
    }
}
