//! When frames begin: at the slots of an absolute schedule, as a display has.
//!
//! A frame that is late for its next slot waits for the first one that has not passed: one delay does not
//! make every later frame late.

use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Os, Parker, Platform};

/// How a thread passes the time until its next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Lets others have its CPU.
    Sleep,
    /// Computes nothing, and keeps its CPU.
    Spin,
}

/// The schedule.
pub struct Pace<P: Platform = Os> {
    platform: P,
    /// None: as fast as possible.
    period: Option<Nanos>,
    /// When the next frame may begin; none before the first.
    slot: Option<Nanos>,
    pause: Pause,
    /// Sleeps until an absolute time; nothing unparks it.
    sleep: P::Parker,
    /// Is spun on, and never changes.
    still: P::AtomicU64,
}

impl<P: Platform> Pace<P> {
    /// A schedule of this period, or of none: then frames are as fast as possible.
    pub fn new(platform: P, period: Option<Duration>, pause: Pause) -> Pace<P> {
        Pace {
            sleep: platform.parker(),
            platform,
            period: period.map(Nanos::from),
            slot: None,
            pause,
            still: Atomic::new(0),
        }
    }

    /// Waits until a frame is to begin (the first: at once); the time it has.
    pub fn next_frame(&mut self) -> Duration {
        let Some(period) = self.period else {
            return Duration::MAX;
        };
        let now = self.platform.now();
        let slot = self.slot.map_or(now, |slot| slot_from(slot, period, now));
        loop {
            let now = self.platform.now();
            if now >= slot {
                let end = slot + period;
                self.slot = Some(end);
                return (end - now).into();
            }
            match self.pause {
                Pause::Sleep => self.sleep.park(slot),
                Pause::Spin => {
                    P::spin_until(&self.still, |word| word != 0, slot);
                }
            }
        }
    }

    /// When the frame that has begun should have begun.
    pub fn due(&self) -> Nanos {
        match (self.slot, self.period) {
            (Some(end), Some(period)) => end - period,
            _ => Nanos::ZERO,
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
        let mut pace = Pace::new(Os, None, Pause::Sleep);
        assert_eq!(pace.next_frame(), Duration::MAX);
        assert_eq!(pace.next_frame(), Duration::MAX);
        assert_eq!(pace.due(), Nanos::ZERO);
    }

    /// Goal: a frame is never begun before it is due, and the dues are a grid. Method: short frames,
    /// slept for and spun for.
    #[test]
    fn frames_begin_when_they_are_due() {
        for pause in [Pause::Sleep, Pause::Spin] {
            let period = Nanos::from_micros(200);
            let mut pace = Pace::new(Os, Some(period.into()), pause);
            pace.next_frame();
            let first = pace.due();
            for _ in 0..5 {
                pace.next_frame();
                assert!(Os.now() >= pace.due());
                assert_eq!((pace.due() - first).0 % period.0, 0);
            }
        }
    }
}
