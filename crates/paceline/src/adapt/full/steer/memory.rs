//! A worker's memory of its wake-ups, and the mask that it wants because of them.

use event::Nanos;

use crate::adapt::words::WakeReport;

/// How long a worker keeps off its waker's CPU after it was found in the way there.
const ARMED: Nanos = Nanos::from_secs(1);
/// A worker is found in the way if this happens again within this time. (Once may be an interrupt, or a
/// hypervisor that took the CPU away.) Time in which it keeps off does not count.
const AGAIN: Nanos = Nanos::from_millis(250);
/// A worker that is on its waker's CPU for longer than this is in the way. It is about the time of waking
/// another CPU in a virtual machine.
const STAY: Nanos = Nanos::from_micros(50);
/// This many late wake-ups in a row mean that the CPUs left in the mask are busy. (A single one may be an
/// interrupt, or a hypervisor that took the CPU away.)
const LATE_IN_A_ROW: u32 = 2;
/// How long a worker does without a mask that was in the way, the first time. Each further time, until a
/// wake-up is in time again, it is twice as long, at most [`ARMED`].
const HOLD_OFF: Nanos = Nanos::from_millis(30);
/// A worker that was pulled to the CPU that its mask had left out this often is better off without a mask.
const PULLED_OFTEN: u32 = 2;
/// After this time without it, that is forgotten.
const FORGET: Nanos = Nanos::from_secs(3);
/// How long it is believed that there is no other CPU, once that was found.
const ASK_AGAIN: Nanos = Nanos::from_millis(5);

/// A worker's memory of its wake-ups.
pub(crate) struct Steer {
    /// The time until which the worker keeps off its waker's CPU.
    armed_until: Nanos,
    /// The time at which the worker woke up on its waker's CPU, if it may still be there and was not yet
    /// found to stay.
    sighted_at: Option<Nanos>,
    /// The time until which the next stay there arms steering.
    expected_until: Nanos,
    /// The time until which steering is not armed again.
    held_off_until: Nanos,
    /// Late wake-ups with a mask since the last one that was in time.
    late: u32,
    /// How often, and when last, it ended up on the CPU that its mask had left out, as soon as it might.
    pulled: u32,
    pulled_at: Nanos,
    /// The CPU to avoid, and the CPU that the mask excludes now.
    avoid: Option<u32>,
    excluded: Option<u32>,
    /// The last wake-up put the worker on its waker's CPU.
    displaces_waker: bool,
}

impl Steer {
    pub(crate) fn new() -> Steer {
        Steer {
            armed_until: Nanos::ZERO,
            sighted_at: None,
            expected_until: Nanos::ZERO,
            held_off_until: Nanos::ZERO,
            late: 0,
            pulled: 0,
            pulled_at: Nanos::ZERO,
            avoid: None,
            excluded: None,
            displaces_waker: false,
        }
    }

    /// Learns from a wake-up at `now` that was `late` or not. True if the worker was late because its waker
    /// was in its way. Then the caller calls [`found`](Steer::found).
    pub(super) fn learn(&mut self, report: &WakeReport, now: Nanos, late: bool) -> bool {
        self.sighted_at = None;
        if self.excluded.is_some() {
            self.late = if late { self.late + 1 } else { 0 };
        }
        if self.excluded.is_some() && self.late >= LATE_IN_A_ROW {
            self.hold_off(now, self.late - LATE_IN_A_ROW);
        } else if report.colocated && now >= self.held_off_until {
            self.sighted_at = Some(now);
        }
        self.avoid = report.waker_cpu;
        self.displaces_waker = report.colocated;
        let waited = late && self.sighted_at.is_some();
        if waited {
            self.sighted_at = None;
        }
        waited
    }

    /// Whether the worker may be in its waker's way.
    pub(super) fn may_stay(&self) -> bool {
        self.sighted_at.is_some()
    }

    /// Whether it has just turned out at `now` that the worker is in the way. Then the caller calls
    /// [`found`](Steer::found).
    #[inline]
    pub(super) fn stays(&mut self, now: Nanos) -> bool {
        let stays = self.sighted_at.is_some_and(|since| now - since >= STAY);
        if stays {
            self.sighted_at = None;
        }
        stays
    }

    /// Worker or waker is in the other's way. `have_room`: there is another CPU for one of them.
    pub(super) fn found(&mut self, now: Nanos, have_room: bool) {
        if !have_room {
            self.held_off_until = now + ASK_AGAIN;
            return;
        }
        if now < self.expected_until {
            self.armed_until = now + ARMED;
        }
        self.expected_until = now.max(self.armed_until) + AGAIN;
    }

    /// The worker sleeps, and is no longer in the way.
    pub(super) fn has_left(&mut self) {
        self.sighted_at = None;
    }

    /// Another thread has undone the last change.
    pub(super) fn mask_is_full(&mut self) {
        self.excluded = None;
    }

    /// A waiter has undone the last change, and left its CPU to this worker, which is on CPU `here` now. If
    /// that is the CPU that was left out, then the worker did not get on elsewhere.
    pub(super) fn was_widened(&mut self, here: Option<u32>, now: Nanos) {
        let was_pulled = here.is_some() && self.excluded == here;
        self.excluded = None;
        if !was_pulled {
            return;
        }
        if now - self.pulled_at > FORGET {
            self.pulled = 0;
        }
        self.pulled += 1;
        self.pulled_at = now;
        if let Some(more) = self.pulled.checked_sub(PULLED_OFTEN) {
            self.hold_off(now, more);
        }
    }

    /// The mask was in the way, `more` times more often than would be enough to say so.
    fn hold_off(&mut self, now: Nanos, more: u32) {
        self.armed_until = Nanos::ZERO;
        self.sighted_at = None;
        self.held_off_until = now + Nanos(HOLD_OFF.0 << more.min(10)).min(ARMED);
    }

    /// The CPU to exclude from now on, if that is a change. `Some(None)`: no CPU.
    pub(super) fn change(&mut self, now: Nanos) -> Option<Option<u32>> {
        let wanted = self.avoid.filter(|_| now < self.armed_until);
        (wanted != self.excluded).then(|| {
            self.excluded = wanted;
            wanted
        })
    }

    /// Whether the last wake-ups were late while a CPU was left out.
    pub(super) fn was_late(&self) -> bool {
        self.late >= LATE_IN_A_ROW
    }

    /// Whether there was no wake-up from a known CPU yet.
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
            at: Nanos::ZERO,
            latency: Nanos::from_micros(5),
            colocated,
            waker_cpu: Some(3),
        }
    }

    /// The worker wakes up on its waker's CPU at `now`, and stays there while another CPU idles. Returns the
    /// time at which that is found.
    fn stay(steer: &mut Steer, now: Nanos) -> Nanos {
        steer.learn(&wake(true), now, false);
        assert_eq!(steer.change(now), None, "it may be gone at once");
        assert!(!steer.stays(now + STAY - Nanos(1)) && steer.stays(now + STAY));
        assert!(!steer.may_stay(), "that is known by now");
        steer.found(now + STAY, true);
        now + STAY
    }

    /// Arms steering a little after `now`. Returns the time.
    fn arm(steer: &mut Steer, now: Nanos) -> Nanos {
        let now = stay(steer, now);
        if now < steer.armed_until {
            now
        } else {
            stay(steer, now)
        }
    }

    /// Goal: a mask is wanted for a second when the worker stays on its waker's CPU twice in a short time
    /// while another CPU idles. Method: wake-ups on other CPUs, and on the waker's CPU: a short stay, a long
    /// one without an idle CPU, long ones with an idle CPU, far from each other and near.
    #[test]
    fn staying_in_the_way_arms_for_a_second() {
        let (mut steer, now) = (Steer::new(), Nanos(1));
        steer.learn(&wake(false), now, false);
        assert!(!steer.may_stay());
        steer.learn(&wake(true), now, false);
        assert!(steer.may_stay());
        steer.has_left();
        assert!(!steer.stays(now + STAY), "it was soon gone");
        steer.learn(&wake(true), now, false);
        assert!(steer.stays(now + STAY));
        steer.found(now + STAY, false);
        assert_eq!(steer.change(now + STAY), None, "no CPU idles");
        steer.learn(&wake(true), now + STAY, false);
        assert!(!steer.may_stay(), "it does not ask again at once");
        let now = stay(&mut steer, now + STAY + ASK_AGAIN);
        assert_eq!(steer.change(now), None, "once is no habit");
        let now = stay(&mut steer, now + AGAIN);
        assert_eq!(steer.change(now), None, "that was long ago");
        let now = stay(&mut steer, now);
        assert_eq!(steer.change(now), Some(Some(3)));
        assert_eq!(steer.change(now + Nanos(10)), None, "already so");
        assert_eq!(steer.displaced(), Some(3));
        let later = now + ARMED;
        assert_eq!(steer.change(later), Some(None), "not seen for a while");
        let later = stay(&mut steer, later);
        assert_eq!(steer.change(later), Some(Some(3)), "a habit is remembered");
    }

    /// Goal: a worker that waits behind its waker leaves as well. Method: a late wake-up on the waker's
    /// CPU, after which the worker does not stay long.
    #[test]
    fn waiting_behind_the_waker_arms() {
        let (mut steer, now) = (Steer::new(), Nanos(1));
        assert!(!steer.learn(&wake(true), now, false) && !steer.learn(&wake(false), now, true));
        assert!(steer.learn(&wake(true), now, true));
        steer.found(now, true);
        steer.has_left();
        assert_eq!(steer.change(now), None, "once is no habit");
        assert!(steer.learn(&wake(true), now, true));
        steer.found(now, true);
        assert_eq!(steer.change(now), Some(Some(3)));
    }

    /// Goal: a mask that is in the way is left off, longer each time. Method: one late wake-up, then every
    /// second one late, then late ones only.
    #[test]
    fn late_wake_ups_hold_it_off() {
        let mut steer = Steer::new();
        let mut now = arm(&mut steer, Nanos(0));
        assert_eq!(steer.change(now), Some(Some(3)));
        for late in [true, false, true] {
            steer.learn(&wake(false), now, late);
            assert_eq!(steer.change(now), None, "once is no proof");
        }
        for times in [1, 2, 4] {
            steer.learn(&wake(false), now, true);
            assert_eq!(steer.change(now), Some(None), "the mask was in the way");
            let until = now + Nanos(times * HOLD_OFF.0);
            steer.learn(&wake(true), until - Nanos(1), false);
            assert!(!steer.may_stay(), "not yet, but then");
            now = arm(&mut steer, until);
            assert_eq!(steer.change(now), Some(Some(3)));
        }
    }

    /// Goal: a worker that is pulled to the CPU that its mask left out, as soon as it may go there, does
    /// without a mask, longer each time; one that goes on elsewhere keeps its mask. Method: masks that a
    /// waiter has widened, with the worker here and there; then a long time without.
    #[test]
    fn a_worker_that_is_pulled_back_does_without() {
        let mut steer = Steer::new();
        let mut now = arm(&mut steer, Nanos(0));
        for here in [Some(2), None] {
            assert_eq!(steer.change(now), Some(Some(3)));
            steer.was_widened(here, now);
        }
        assert_eq!(steer.change(now), Some(Some(3)), "it has gone on elsewhere");
        steer.was_widened(Some(3), now);
        assert_eq!(steer.change(now), Some(Some(3)), "once is no proof");
        for times in [1, 2, 4] {
            steer.was_widened(Some(3), now);
            assert_eq!(
                steer.change(now),
                None,
                "the mask was in the way, and is gone"
            );
            let until = now + Nanos(times * HOLD_OFF.0);
            steer.learn(&wake(true), until - Nanos(1), false);
            assert!(!steer.may_stay(), "not yet, but then");
            now = arm(&mut steer, until);
            assert_eq!(steer.change(now), Some(Some(3)));
        }
        now += FORGET;
        assert_eq!(steer.change(now), Some(None), "not seen for a while");
        now = arm(&mut steer, now);
        assert_eq!(steer.change(now), Some(Some(3)));
        steer.was_widened(Some(3), now + Nanos(1));
        assert_eq!(steer.change(now), Some(Some(3)), "the others are forgotten");
    }

    /// Goal: a mask that another thread has undone is asked for again while it is wanted. Method: undo it.
    #[test]
    fn a_restored_mask_is_asked_for_again() {
        let mut steer = Steer::new();
        let now = arm(&mut steer, Nanos(0));
        assert_eq!(steer.change(now), Some(Some(3)));
        for (wanted, why) in [(Some(Some(3)), "once"), (None, "twice late: full it stays")] {
            steer.learn(&wake(false), now, true);
            steer.mask_is_full();
            assert_eq!(steer.change(now), wanted, "{why}");
        }
    }
}
