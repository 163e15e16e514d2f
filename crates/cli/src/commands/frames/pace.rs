//! When frames begin: at the slots of an absolute schedule, as a display has.
//!
//! A frame that is late for its next slot waits for the first one that has not passed: being late
//! once does not make every later frame late.

use std::time::Duration;

use event::Nanos;
use platform::{Os, Parker, Platform};

/// The schedule.
pub(super) struct Pace {
    /// None: as fast as possible.
    period: Option<Nanos>,
    /// When the next frame may begin; none before the first.
    slot: Option<Nanos>,
    /// Sleeps until an absolute time; nobody unparks it.
    sleep: <Os as Platform>::Parker,
}

impl Pace {
    pub(super) fn new(period: Option<Duration>) -> Pace {
        Pace {
            period: period.map(Nanos::from),
            slot: None,
            sleep: Os.parker(),
        }
    }

    /// Sleeps until a frame is to begin (the first: at once); the time it has.
    pub(super) fn next_frame(&mut self) -> Duration {
        let Some(period) = self.period else {
            return Duration::MAX;
        };
        let now = Os.now();
        let slot = self.slot.map_or(now, |slot| slot_from(slot, period, now));
        loop {
            let now = Os.now();
            if now >= slot {
                let end = slot + period;
                self.slot = Some(end);
                return (end - now).into();
            }
            self.sleep.park(slot);
        }
    }
}

/// The first slot that has not passed, from `slot` on.
fn slot_from(slot: Nanos, period: Nanos, now: Nanos) -> Nanos {
    match now.0.checked_sub(slot.0) {
        // In time.
        Some(0) | None => slot,
        Some(late) => slot + Nanos(late.div_ceil(period.0.max(1)).saturating_mul(period.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a late frame waits for the next slot of the old schedule. Method: in time, late by a
    /// little, by exactly one period, by more than two.
    #[test]
    fn late_frames_stay_on_the_schedule() {
        let slot = |now| slot_from(Nanos(100), Nanos(10), Nanos(now)).0;
        assert_eq!(
            [90, 100, 101, 110, 121].map(slot),
            [100, 100, 110, 110, 130]
        );
    }

    /// Goal: without a rate there is no waiting and no deadline. Method: ask for two frames.
    #[test]
    fn without_a_rate_frames_have_all_the_time() {
        let mut pace = Pace::new(None);
        assert_eq!(pace.next_frame(), Duration::MAX);
        assert_eq!(pace.next_frame(), Duration::MAX);
    }
}
