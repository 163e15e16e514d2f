//! Steering: a remedy for kernels that put a woken worker on its waker's CPU.
//!
//! Some schedulers (in virtual machines, on phones) place a thread on the CPU of the thread that woke
//! it although another one idles. A frame then runs on one CPU however many workers there are. A
//! worker that finds itself so placed, while there are CPUs enough for all threads of this job
//! system, excludes its waker's CPU from its own mask, which moves it at once, and again before it
//! parks if the waker was elsewhere.
//!
//! It is a remedy and not the default path: nothing happens before the first such wake-up; the full
//! mask comes back (when the worker next parks) after [`ARMED`] without one, and after two wake-ups in
//! a row that took so long that the mask itself must have been in the way (the other CPUs were busy).
//! How long it then stays away doubles with every further late wake-up, until one comes through in
//! time. Only a worker's own mask is ever changed, by itself, and never that of an outside thread.

use event::Nanos;
use platform::{CpuSet, Platform};

use crate::context::Context;
use crate::seat::WakeReport;

/// How long one sighting keeps a worker off its waker's CPU.
const ARMED: Nanos = Nanos::from_secs(1);
/// A wake-up slower than this, and another one, mean that the CPUs left in the mask are busy. (One
/// alone may be an interrupt, or a hypervisor that took the CPU away.)
const LATE: Nanos = Nanos::from_micros(500);
const LATE_IN_A_ROW: u32 = 2;
/// How long to do without a mask that was in the way, the first time; at most [`ARMED`].
const HOLD_OFF: Nanos = Nanos::from_millis(30);

/// What a worker remembers of its wake-ups.
pub(crate) struct Steer {
    /// Until when to stay off the waker's CPU.
    armed_until: Nanos,
    /// Until when not to be armed again: the mask was in the way.
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

    /// Learns from a wake-up at `now`. `spare_cpus`: all our threads could run at the same time.
    fn learn(&mut self, report: &WakeReport, now: Nanos, spare_cpus: bool) {
        if self.excluded.is_some() {
            self.late = if report.latency > LATE {
                self.late + 1
            } else {
                0
            };
        }
        if self.excluded.is_some() && self.late >= LATE_IN_A_ROW {
            let times = 1 << (self.late - LATE_IN_A_ROW).min(10);
            self.armed_until = Nanos::ZERO;
            self.held_off_until = now + Nanos(HOLD_OFF.0 * times).min(ARMED);
        } else if report.colocated && spare_cpus && now >= self.held_off_until {
            self.armed_until = now + ARMED;
        }
        self.avoid = report.waker_cpu;
        self.displaces_waker = report.colocated;
    }

    /// The CPU to exclude from now on, if that is a change.
    fn change(&mut self, now: Nanos) -> Option<Option<u32>> {
        let wanted = self.avoid.filter(|_| now < self.armed_until);
        (wanted != self.excluded).then(|| {
            self.excluded = wanted;
            wanted
        })
    }
}

impl<P: Platform> Context<'_, P> {
    /// After a wake-up.
    pub(crate) fn learn_placement(&self, report: &WakeReport) {
        let shared = self.shared;
        let spare_cpus = shared.steering && shared.crew.active() < shared.spin.parallelism;
        let now = shared.platform.now();
        self.own(|own| own.steer.learn(report, now, spare_cpus));
    }

    /// Whether this worker has taken its waker's CPU, where the waker most likely waits to go on: a
    /// worker without work should leave it then instead of spinning.
    pub(crate) fn displaces_waker(&self) -> bool {
        let place = self.own(|own| own.steer.avoid.filter(|_| own.steer.displaces_waker));
        place.is_some() && self.shared.platform.current_cpu() == place
    }

    /// Before a worker parks, and when it finds itself on its waker's CPU.
    pub(crate) fn steer(&self) {
        if self.own(|own| own.steer.avoid.is_none()) {
            return;
        }
        let now = self.shared.platform.now();
        let Some(exclude) = self.own(|own| own.steer.change(now)) else {
            return;
        };
        let allowed = self.shared.platform.topology().allowed();
        let mut mask: CpuSet = allowed.clone();
        exclude.iter().for_each(|&cpu| mask.remove(cpu));
        if mask.is_empty() {
            mask = allowed.clone();
        }
        // Refused: the worker stays where it may be, which is no worse than before.
        let _ = self.shared.platform.set_mask(&mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(latency: Nanos, colocated: bool) -> WakeReport {
        WakeReport {
            latency,
            colocated,
            waker_cpu: Some(3),
        }
    }

    #[test]
    fn steers_after_a_sighting_and_lets_go_when_late_or_after_a_while() {
        let (mut steer, quick) = (Steer::new(), Nanos::from_micros(5));
        steer.learn(&wake(quick, false), Nanos(0), true);
        assert_eq!(steer.change(Nanos(0)), None, "nothing before a sighting");
        steer.learn(&wake(quick, true), Nanos(10), true);
        assert_eq!(steer.change(Nanos(10)), Some(Some(3)));
        assert_eq!(steer.change(Nanos(20)), None, "already so");
        assert_eq!(
            steer.change(Nanos(11) + ARMED),
            Some(None),
            "not seen for a while"
        );

        let late = wake(LATE + Nanos(1), false);
        steer.learn(&wake(quick, true), Nanos(0), true);
        assert_eq!(steer.change(Nanos(0)), Some(Some(3)));
        steer.learn(&late, Nanos(5), true);
        assert_eq!(steer.change(Nanos(5)), None, "once is no proof");
        steer.learn(&wake(quick, false), Nanos(5), true);
        steer.learn(&late, Nanos(5), true);
        assert_eq!(steer.change(Nanos(5)), None, "nor is every second time");
        let mut now = Nanos(5);
        for times in [1, 2, 4] {
            steer.learn(&late, now, true);
            assert_eq!(steer.change(now), Some(None), "the mask was in the way");
            let until = now + Nanos(times * HOLD_OFF.0);
            steer.learn(&wake(quick, true), until - Nanos(1), true);
            assert_eq!(steer.change(now), None, "and is not tried again at once");
            steer.learn(&wake(quick, true), until, true);
            assert_eq!(steer.change(until), Some(Some(3)), "but then");
            now = until;
        }
        let mut steer = Steer::new();
        steer.learn(&wake(quick, true), Nanos(6) + ARMED, false);
        assert_eq!(steer.change(Nanos(6) + ARMED), None, "no CPU to spare");
    }
}
