//! When ticks come: at multiples of the tick's length, on each CPU at the same times; with a perturbation
//! somewhat later, each by an amount of its own. A late tick does not make the next one later.

use event::{Nanos, Random};

/// The clock of ticks.
#[derive(Debug)]
pub(super) struct Ticks {
    /// The time between two ticks; zero: no ticks.
    length: Nanos,
    /// The largest delay of a tick: less than its length.
    late_max: Nanos,
    random: Random,
}

impl Ticks {
    /// Ticks of this length, late by at most `late_max`.
    pub(super) fn new(length: Nanos, late_max: Nanos, seed: u64) -> Ticks {
        let late_max = late_max.min(Nanos(length.0.saturating_sub(1)));
        let random = Random::new(seed);
        Ticks {
            length,
            late_max,
            random,
        }
    }

    /// The tick after this time; after a tick that was late, the one after that.
    #[inline]
    pub(super) fn after(&mut self, now: Nanos) -> Nanos {
        if self.length == Nanos::ZERO {
            return Nanos::MAX;
        }
        let exact = Nanos((now.0 / self.length.0 + 1) * self.length.0);
        match self.late_max {
            Nanos::ZERO => exact,
            most => exact + Nanos(self.random.below(most.0 + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ticks are late by no more than the limit, none is left out, and delays do not add up. Method: a
    /// thousand ticks, exact ones and late ones.
    #[test]
    fn lateness_does_not_add_up() {
        for late_max in [0, 30, 10_000] {
            let mut ticks = Ticks::new(Nanos(1000), Nanos(late_max), 7);
            let mut now = Nanos::ZERO;
            let mut latest = 0;
            for number in 1..=1000 {
                now = ticks.after(now);
                let late = now.0 - number * 1000;
                assert!(late <= late_max.min(999), "tick {number}: {late}");
                latest = latest.max(late);
            }
            assert!(latest >= late_max.min(999) * 9 / 10, "{latest}");
        }
    }

    /// Goal: a machine without ticks has none. Method: a length of zero.
    #[test]
    fn no_length_no_ticks() {
        assert_eq!(
            Ticks::new(Nanos::ZERO, Nanos(5), 1).after(Nanos(3)),
            Nanos::MAX
        );
    }
}
