//! Work of a wanted length that is real computation.
//!
//! A body that polls the clock until its time is over counts the time it was preempted as work: two such
//! bodies on one CPU finish together in the time of one, and every measurement of contention is wrong. A body
//! here is a fixed number of steps of a dependency chain (xorshift64, which no compiler shortens), so a
//! preempted body simply ends later. The number of steps per nanosecond is measured once, by the fastest of
//! many short runs: the time without disturbance.
//!
//! Absent on purpose: memory traffic. A chain in registers scales perfectly with cores, so a loss in a
//! measurement is the scheduler's.

use std::hint::black_box;

use event::Nanos;
use platform::Platform;

/// How long one calibration run takes at one step per nanosecond: long against the clock's 10–25
/// ns, short against the time between interrupts.
const TRIAL_STEPS: u64 = 20_000;
/// How many calibration runs; together some 10 ms, enough for a CPU to leave its idle frequency.
const TRIALS: u32 = 400;
/// Faster than one step in 1/32 ns no machine is: such a clock did not see the computation.
const RATE_LIMIT: u64 = 32 << RATE_SHIFT;
/// Rates are fixed-point numbers: steps per nanosecond times 2^32.
const RATE_SHIFT: u32 = 32;

/// A calibrated busy body, or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    rate: u64,
}

impl Busy {
    /// No computation: for simulated platforms, where charging is all that work is, and for runs
    /// that measure nothing but the scheduler.
    pub const NONE: Busy = Busy { rate: 0 };

    /// Measures how fast the calling thread computes (some 10 ms).
    ///
    /// On a platform whose clock stands still while the host computes there is nothing to measure;
    /// the result is [`Busy::NONE`].
    pub fn calibrate<P: Platform>(platform: &P) -> Busy {
        let fastest = (0..TRIALS)
            .map(|trial| {
                let start = platform.now();
                black_box(chain(TRIAL_STEPS, u64::from(trial)));
                platform.now() - start
            })
            .min()
            .unwrap_or_default();
        Busy::from_trial(fastest)
    }

    /// The rate of a machine that takes `trial` for [`TRIAL_STEPS`].
    fn from_trial(trial: Nanos) -> Busy {
        match (TRIAL_STEPS << RATE_SHIFT).checked_div(trial.0) {
            Some(rate) if rate < RATE_LIMIT => Busy { rate },
            _ => Busy::NONE,
        }
    }

    /// The same where a computation of `wanted` took `took` of CPU time: while other CPUs are busy some
    /// machines are slower than they were alone. It stays as it is if either is nothing.
    ///
    /// ```
    /// # use event::Nanos;
    /// # use paceline_workload::busy::Busy;
    /// let busy = Busy::calibrate(&platform::Os);
    /// let half = busy.paced(Nanos(100), Nanos(200));
    /// assert!(half.steps(Nanos(1_000_000)).abs_diff(busy.steps(Nanos(500_000))) <= 1);
    /// ```
    pub fn paced(self, wanted: Nanos, took: Nanos) -> Busy {
        if wanted == Nanos::ZERO || took == Nanos::ZERO {
            return self;
        }
        let rate = u128::from(self.rate) * u128::from(wanted.0) / u128::from(took.0);
        match u64::try_from(rate) {
            Ok(rate) if rate < RATE_LIMIT => Busy { rate },
            _ => self,
        }
    }

    /// The number of steps of [`chain`] that take about `length`; 0 if nothing is computed.
    pub fn steps(&self, length: Nanos) -> u64 {
        let steps = (u128::from(length.0) * u128::from(self.rate)) >> RATE_SHIFT;
        u64::try_from(steps).unwrap_or(u64::MAX)
    }

    /// Computes for about `length`; `seed` makes the work depend on something, so that it cannot
    /// begin earlier.
    #[inline]
    pub fn spin_for(&self, length: Nanos, seed: u64) {
        if self.rate != 0 {
            black_box(chain(self.steps(length), seed));
        }
    }
}

/// The work itself: `steps` steps of xorshift64 (Marsaglia, "Xorshift RNGs", 2003) from `seed`; the result.
/// Never inlined, so that the calibrated code is the code that runs. The caller has to use the result, or the
/// compiler may leave it out.
#[inline(never)]
pub fn chain(steps: u64, seed: u64) -> u64 {
    // Zero is the one state that xorshift never leaves.
    let mut state = seed | 1;
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: the computation is the one that was calibrated and is not optimised away. Method: the
    /// chain's first values from seed 1, computed by hand.
    #[test]
    fn a_step_is_xorshift64() {
        assert_eq!(chain(0, 1), 1);
        assert_eq!(chain(1, 1), 0x4082_2041);
        assert_ne!(chain(2, 1), chain(2, 3));
    }

    /// Goal: lengths become steps at the calibrated rate, and a clock that saw nothing gives no
    /// rate. Method: three trials of known length, one of them the impossible one.
    #[test]
    fn a_length_is_a_number_of_steps() {
        let two_per_nano = Busy::from_trial(Nanos(TRIAL_STEPS / 2));
        assert_eq!(two_per_nano.steps(Nanos(500)), 1_000);
        assert_eq!(two_per_nano.steps(Nanos::MAX), u64::MAX);
        let slow = Busy::from_trial(Nanos(TRIAL_STEPS * 4));
        assert_eq!(slow.steps(Nanos(500)), 125);
        assert_eq!(Busy::from_trial(Nanos(0)), Busy::NONE);
        assert_eq!(two_per_nano.paced(Nanos(1), Nanos(8)), slow);
        for (wanted, took) in [(0, 1), (1, 0), (u64::MAX, 1)] {
            assert_eq!(slow.paced(Nanos(wanted), Nanos(took)), slow);
        }
        assert_eq!(Busy::from_trial(Nanos(20)), Busy::NONE);
    }

    /// Goal: calibrating on the machine at hand gives a rate, and work of no length ends. Method:
    /// on the OS, whose clock moves while this thread computes.
    #[test]
    fn the_machine_at_hand_can_be_calibrated() {
        let busy = Busy::calibrate(&Os);
        assert_ne!(busy, Busy::NONE);
        busy.spin_for(Nanos::ZERO, 0);
        busy.spin_for(Nanos(500), 1);
    }

    /// Goal: nothing is computed where there is no rate. Method: a length of three centuries ends.
    #[test]
    fn none_computes_nothing() {
        Busy::NONE.spin_for(Nanos(u64::MAX - 1), 1);
    }
}
