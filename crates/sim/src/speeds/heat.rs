//! The temperature of a cluster, and the operating points that it allows.
//!
//! One heat capacity and one resistance: the temperature approaches ambient + resistance · power with one
//! time constant. It is looked at once in a period: above the limit the highest allowed point goes down by
//! one, below it up by one. That is the step-wise governor of Linux's thermal framework with one trip point,
//! without hysteresis.
//!
//! A cluster without events is not looked at; the steps up that it has missed are made up.

use event::Nanos;

use super::decay::{decayed, half_life_of};
use crate::machine::Thermal;

/// The temperature of a cluster. Temperatures are kept in 10⁻⁹ degrees: microwatts times thousandths of a
/// degree per watt.
#[derive(Debug)]
pub(super) struct Heat {
    spec: Thermal,
    half_life: Nanos,
    temperature: i64,
    hottest: i64,
    /// The time up to which the temperature has been followed, and the energy used until then, in
    /// femtojoules.
    at: Nanos,
    used: u128,
    /// The time of the last look.
    looked: Nanos,
    /// The highest allowed point, and the highest of all.
    allowed: usize,
    highest: usize,
}

const NANO_PER_MILLI: i64 = 1_000_000;

impl Heat {
    pub(super) fn new(spec: Thermal, points: usize) -> Heat {
        let temperature = spec.ambient_millidegrees.saturating_mul(NANO_PER_MILLI);
        Heat {
            half_life: half_life_of(spec.time_constant),
            temperature,
            hottest: temperature,
            at: Nanos::ZERO,
            used: 0,
            looked: Nanos::ZERO,
            allowed: points - 1,
            highest: points - 1,
            spec,
        }
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        now - self.looked >= self.spec.period
    }

    /// Looks at the temperature. `used`: the energy used since the beginning, in femtojoules.
    pub(super) fn look(&mut self, now: Nanos, used: u128) {
        self.follow(now, used);
        let periods = (now - self.looked).0 / self.spec.period.0.max(1);
        self.looked = now;
        let limit = self.spec.limit_millidegrees.saturating_mul(NANO_PER_MILLI);
        self.allowed = if self.temperature > limit {
            self.allowed.saturating_sub(1)
        } else {
            (self.allowed + periods.min(self.highest as u64) as usize).min(self.highest)
        };
    }

    /// Follows the temperature up to now, as if the energy had been used evenly.
    pub(super) fn follow(&mut self, now: Nanos, used: u128) {
        let (passed, femtojoules) = (now - self.at, used - self.used);
        if passed == Nanos::ZERO {
            return;
        }
        (self.at, self.used) = (now, used);
        let microwatts = (femtojoules / u128::from(passed.0)).min(i64::MAX as u128) as i64;
        let rise = microwatts.saturating_mul(self.spec.millidegrees_per_watt);
        let ambient = self
            .spec
            .ambient_millidegrees
            .saturating_mul(NANO_PER_MILLI);
        let target = ambient.saturating_add(rise);
        let left = decayed(self.temperature.abs_diff(target), passed, self.half_life) as i64;
        self.temperature = if self.temperature < target {
            target - left
        } else {
            target.saturating_add(left)
        };
        self.hottest = self.hottest.max(self.temperature);
    }

    /// The highest allowed point.
    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// The highest temperature so far, in thousandths of a degree.
    pub(super) fn hottest_millidegrees(&self) -> i64 {
        self.hottest / NANO_PER_MILLI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Thermal = Thermal {
        ambient_millidegrees: 25_000,
        millidegrees_per_watt: 20_000,
        time_constant: Nanos::from_secs(10),
        limit_millidegrees: 85_000,
        period: Nanos::from_millis(100),
    };

    /// The energy of a cluster up to this time if its power is always `milliwatts`.
    fn used(now: Nanos, milliwatts: u128) -> u128 {
        milliwatts * 1000 * u128::from(now.0)
    }

    /// Goal: after one time constant 63.2 % of a change have come, after five almost all, both ways.
    /// Method: 4 W for 10 s from 25 °C towards 105 °C must give 75.57 °C; then idle for 10 s, 43.6 °C;
    /// looked at every 100 ms.
    #[test]
    fn the_time_constant_is_kept() {
        let mut heat = Heat::new(SPEC, 1);
        let mut look = |tenth: u64| {
            let now = Nanos::from_millis(100 * tenth);
            let end = Nanos::from_secs(10).min(now);
            heat.look(now, used(end, 4000));
            heat.temperature / NANO_PER_MILLI
        };
        let after: Vec<i64> = (1..=600).map(&mut look).collect();
        assert!(after[99].abs_diff(75_570) <= 100, "{}", after[99]);
        assert!(after[199].abs_diff(43_604) <= 100, "{}", after[199]);
        assert!(after[599].abs_diff(25_340) <= 100, "{}", after[599]);
        assert_eq!(heat.hottest_millidegrees(), after[99]);
    }

    /// Goal: one look after a long time is as good as many. Method: 10 s of 4 W looked at 100 times and
    /// once.
    #[test]
    fn rare_looks_see_the_same_temperature() {
        let (mut often, mut once) = (Heat::new(SPEC, 1), Heat::new(SPEC, 1));
        for tenth in 1..=100 {
            let now = Nanos::from_millis(100 * tenth);
            often.look(now, used(now, 4000));
        }
        let now = Nanos::from_secs(10);
        once.look(now, used(now, 4000));
        assert!(often.temperature.abs_diff(once.temperature) < NANO_PER_MILLI as u64);
    }

    /// Goal: throttling goes down a point a look above the limit and up below it. Method: five points, 5 W
    /// for 30 s, whose limit is passed at the ninth second (85 °C of 125 °C: −10 s · ln 0.4 = 9.16 s); then
    /// idle: one look after a long time gives all points back.
    #[test]
    fn points_are_taken_and_given_back() {
        let mut heat = Heat::new(SPEC, 5);
        let mut down = Vec::new();
        for tenth in 1..=300 {
            let now = Nanos::from_millis(100 * tenth);
            let before = heat.allowed();
            heat.look(now, used(now, 5000));
            if heat.allowed() != before {
                down.push((tenth, heat.allowed()));
            }
        }
        assert_eq!(down, [(92, 3), (93, 2), (94, 1), (95, 0)]);
        heat.look(Nanos::from_secs(60), used(Nanos::from_secs(30), 5000));
        assert_eq!(heat.allowed(), 4);
    }
}
