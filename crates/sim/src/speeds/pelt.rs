//! How busy a CPU has been lately: Linux's per-entity load tracking (PELT), for a CPU as a whole.
//!
//! Utilization rises towards 1024 while the CPU is busy and falls towards 0 while it idles, both with the
//! same half-life. Linux adds up periods of 1024 µs; this is the curve through the ends of those periods.
//!
//! It does not depend on the CPU's speed: while busy, time counts as much less as the CPU is slower than the
//! fastest of the machine at its highest frequency. The time that was left out in this way is made up when
//! the CPU goes idle, since a fast one would have idled for as long. A CPU that never idles has nothing to
//! make up.
//!
//! Left out: utilization belongs to CPUs and does not move with a task to another CPU; `util_est`; the load
//! of real-time tasks and interrupts.

use event::Nanos;

use super::decay::decayed;
use crate::quantity::FULL;

/// The utilization of a CPU that never idles.
const ALWAYS: u64 = 1024 << FRACTION_BITS;

/// The unit of utilization is one 1024th, divided by two to this power.
const FRACTION_BITS: u32 = 20;

/// From this value on, a CPU counts as one that never idled: no more than the contribution of the current
/// period is missing.
const SATURATED: u64 = 1002 << FRACTION_BITS;

/// The utilization of a CPU.
#[derive(Debug, Default)]
pub(super) struct Pelt {
    util: u64,
    /// The time up to which it has been followed.
    at: Nanos,
    /// The time that did not count since the CPU last idled.
    lost: Nanos,
}

impl Pelt {
    /// Goes on to `now`. Since the last call the CPU was busy at this speed, or idle (`None`).
    pub(super) fn advance(&mut self, now: Nanos, speed: Option<u32>, half_life: Nanos) {
        let passed = now - self.at;
        self.at = now;
        match speed {
            Some(speed) => {
                let counted = u128::from(passed.0) * u128::from(speed) / u128::from(FULL);
                let counted = Nanos(counted as u64);
                self.lost += passed - counted;
                self.util = ALWAYS - decayed(ALWAYS - self.util, counted, half_life);
            }
            None => self.util = decayed(self.util, passed, half_life),
        }
    }

    /// The CPU goes idle.
    pub(super) fn rest(&mut self, half_life: Nanos) {
        let lost = std::mem::take(&mut self.lost);
        if self.util < SATURATED {
            self.util = decayed(self.util, lost, half_life);
        }
    }

    /// From 0 to 1024.
    pub(super) fn utilization(&self) -> u32 {
        (self.util >> FRACTION_BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1_024_000;

    /// The time after which a CPU that is always busy at this speed has this utilization.
    fn reaches(util: u32, half_life: Nanos, speed: u32) -> Nanos {
        let mut pelt = Pelt::default();
        let mut now = Nanos::ZERO;
        while pelt.utilization() < util {
            now += Nanos::from_micros(10);
            pelt.advance(now, Some(speed), half_life);
        }
        now
    }

    /// Goal: the ramp of an always busy CPU is PELT's. Method: the times, in tenths of a millisecond, that
    /// sums over periods of 1024 µs give for half-lives of 32 and 8 periods, to within a period.
    #[test]
    fn the_ramp_is_that_of_the_table() {
        let utils = [205, 262, 355, 512, 645, 819, 1000];
        let tables = [
            (32, [106, 140, 200, 328, 470, 760, 1770]),
            (8, [26, 35, 50, 82, 117, 190, 440]),
        ];
        for (periods, tenths) in tables {
            for (util, tenths) in utils.into_iter().zip(tenths) {
                let time = reaches(util, Nanos(periods * PERIOD), FULL);
                let off = time.0.abs_diff(tenths * 100_000);
                assert!(off <= PERIOD, "{periods}, {util}: {time}");
            }
        }
    }

    /// Goal: the curve goes through the ends of the kernel's periods. Method: 1024·(1 − y^n) by exact
    /// integer powers of y² ^16 = 1/2 … that is, at multiples of the half-life, where it is 1024 less a
    /// power of two.
    #[test]
    fn after_whole_half_lives_it_is_exact() {
        let half_life = Nanos(32 * PERIOD);
        let mut pelt = Pelt::default();
        for (n, util) in [512, 768, 896, 960, 992].into_iter().enumerate() {
            pelt.advance(Nanos((n as u64 + 1) * half_life.0), Some(FULL), half_life);
            assert_eq!(pelt.utilization(), util);
        }
    }

    /// Goal: the same work gives the same utilization on a slow CPU. Method: 4 of 16 ms busy at full speed
    /// against 8 of 16 ms at half speed, for a second; at the ends of the idle phases they are equal.
    #[test]
    fn utilization_does_not_depend_on_speed() {
        let half_life = Nanos(32 * PERIOD);
        let (mut fast, mut slow) = (Pelt::default(), Pelt::default());
        for round in 0..64 {
            let at = |millis: u64| Nanos::from_millis(16 * round + millis);
            for (pelt, busy, speed) in [(&mut fast, 4, FULL), (&mut slow, 8, FULL / 2)] {
                pelt.advance(at(busy), Some(speed), half_life);
                pelt.rest(half_life);
                pelt.advance(at(16), None, half_life);
            }
            assert!(
                fast.utilization().abs_diff(slow.utilization()) <= 1,
                "{fast:?} {slow:?}"
            );
        }
        // A quarter of 1024, less the decay of the last 12 ms.
        assert!((200..256).contains(&fast.utilization()), "{fast:?}");
    }

    /// Goal: a CPU that never idles has nothing to make up. Method: a second of work at a quarter of the
    /// speed saturates it; a moment of idling changes little.
    #[test]
    fn a_saturated_cpu_makes_nothing_up() {
        let half_life = Nanos(32 * PERIOD);
        let mut pelt = Pelt::default();
        pelt.advance(Nanos::from_secs(1), Some(FULL / 4), half_life);
        pelt.rest(half_life);
        pelt.advance(Nanos::from_millis(1001), None, half_life);
        assert!(pelt.utilization() > 990, "{pelt:?}");
    }
}
