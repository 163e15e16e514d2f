//! A clock for systems that have none: the program's, or else a counter.
//!
//! A module that a browser runs has no clock of its own. It could import one, but then it could not be
//! instantiated without glue that provides it. So a program says what the time is, if it has a clock, and
//! needs none otherwise: then time is what passes while the clock is read.
//!
//! Invariant: each reading is later than the one before it. So a spin until a deadline ends, whatever the
//! program's clock does (some hosts stop it while a module runs).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that passes with a reading, in ns, if the program has no clock: about what a reading costs.
const STEP: u64 = 100;

pub(super) struct ProgramClock {
    /// The latest time that was shown, in ns. Relaxed: read-modify-writes of one word, with which nothing is
    /// published.
    latest: AtomicU64,
    given: OnceLock<GivenClock>,
}

/// The program's clock.
struct GivenClock {
    read: fn() -> Duration,
    /// What it said when it was set.
    then: Duration,
    /// The latest time shown at that moment, which went on from there.
    shown_then: u64,
}

impl ProgramClock {
    pub(super) const fn new() -> ProgramClock {
        ProgramClock {
            latest: AtomicU64::new(0),
            given: OnceLock::new(),
        }
    }

    /// The time in ns.
    pub(super) fn now(&self) -> u64 {
        let Some(given) = self.given.get() else {
            return self.latest.fetch_add(STEP, Ordering::Relaxed) + STEP;
        };
        let passed = (given.read)().saturating_sub(given.then).as_nanos() as u64;
        let time = given.shown_then + passed;
        if self.latest.fetch_max(time, Ordering::Relaxed) < time {
            time
        } else {
            self.latest.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    /// From now on time is what `read` says. False if there is such a clock already, which stays.
    pub(super) fn set(&self, read: fn() -> Duration) -> bool {
        let given = GivenClock {
            read,
            then: read(),
            shown_then: self.latest.load(Ordering::Relaxed),
        };
        self.given.set(given).is_ok()
    }

    /// Passes the time until `deadline`, in ns. A counter is set to it. A clock cannot be slept by, so it is
    /// read until then.
    pub(super) fn pass_until(&self, deadline: u64) {
        if self.given.get().is_none() {
            self.latest.fetch_max(deadline, Ordering::Relaxed);
        }
        while self.now() < deadline {
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: without a clock of the program's time passes all the same, and a rest takes no reading for each
    /// nanosecond of it. Method: some readings around a rest of a day.
    #[test]
    fn time_passes_without_a_clock() {
        const DAY: u64 = 86_400_000_000_000;
        let clock = ProgramClock::new();
        assert_eq!((clock.now(), clock.now()), (STEP, 2 * STEP));
        clock.pass_until(DAY);
        assert_eq!(clock.now(), DAY + 2 * STEP);
        clock.pass_until(DAY);
        assert_eq!(clock.now(), DAY + 4 * STEP, "it was over");
    }

    /// Goal: the program's clock goes on where the counter was, and each reading is later than the one
    /// before, although the clock stands still or goes back. Method: one that does both; a second one is
    /// refused.
    #[test]
    fn the_clock_of_the_program_goes_on_where_the_counter_was() {
        static AT: AtomicU64 = AtomicU64::new(1_000_000);
        fn read() -> Duration {
            Duration::from_nanos(AT.load(Ordering::Relaxed))
        }
        let clock = ProgramClock::new();
        assert_eq!(clock.now(), STEP);
        assert!(clock.set(read));
        assert!(!clock.set(|| Duration::ZERO), "there is one");
        let mut shown = Vec::new();
        for at in [1_000_000, 1_000_500, 1_000_500, 900_000, 2_000_000] {
            AT.store(at, Ordering::Relaxed);
            shown.push(clock.now());
        }
        let after = |ns| STEP + ns;
        let expected = [
            after(1),
            after(500),
            after(501),
            after(502),
            after(1_000_000),
        ];
        assert_eq!(shown, expected);
        clock.pass_until(after(1_000_010));
        assert_eq!(clock.now(), after(1_000_011), "it stood still");
    }
}
