//! How long a process of the campaign goes on, and how long each of its slices is.

use std::time::{Duration, Instant};

use crate::line::Tally;

/// The longest slice: a job system lives this long.
const SLICE: Duration = Duration::from_secs(1);
/// The shortest one that does more than start threads.
const SLICE_MIN: Duration = Duration::from_millis(20);
/// Slices of the first round, when an end is not known by time.
const SLICE_FIRST: Duration = Duration::from_millis(200);

/// Slices that each combination has at least: memory is compared with that after the first round. A number of
/// programs is for one slice.
const ROUNDS: u64 = 2;

/// The end of a campaign. Each combination has its slices, whatever it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Budget {
    /// This much time.
    Time(Duration),
    /// This many jobs in all.
    Jobs(u64),
    /// This many programs in one slice of each combination.
    Programs(u64),
}

impl Budget {
    /// This part of it, in hundredths.
    pub(crate) fn part(self, hundredths: u32) -> Budget {
        match self {
            Budget::Time(time) => Budget::Time(time * hundredths / 100),
            Budget::Jobs(jobs) => Budget::Jobs((jobs / 100 * u64::from(hundredths)).max(1)),
            Budget::Programs(programs) => Budget::Programs(programs),
        }
    }
}

/// Where in its budget a process is.
pub(crate) struct Pace {
    budget: Budget,
    began: Instant,
    combinations: u64,
}

impl Pace {
    pub(crate) fn new(budget: Budget, combinations: usize, now: Instant) -> Pace {
        Pace {
            budget,
            began: now,
            combinations: combinations as u64,
        }
    }

    /// The length of the next slice; `None`: its programs are counted instead.
    pub(crate) fn slice(&self, done: &Tally) -> Option<Duration> {
        match self.budget {
            Budget::Time(time) => {
                let slices = u32::try_from(ROUNDS * self.combinations).unwrap_or(u32::MAX);
                Some((time / slices.max(1)).clamp(SLICE_MIN, SLICE))
            }
            Budget::Jobs(_) if done.slices < self.combinations => Some(SLICE_FIRST),
            Budget::Jobs(_) => Some(SLICE),
            Budget::Programs(_) => None,
        }
    }

    /// The most programs of a slice.
    pub(crate) fn programs(&self) -> u64 {
        match self.budget {
            Budget::Programs(programs) => programs,
            Budget::Time(_) | Budget::Jobs(_) => u64::MAX,
        }
    }

    /// The part that is over, from 0 to 1.
    pub(crate) fn fraction(&self, done: &Tally, now: Instant) -> f64 {
        let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        let rounds = match self.budget {
            Budget::Time(_) | Budget::Jobs(_) => ROUNDS,
            Budget::Programs(_) => 1,
        };
        let round = part(done.slices as f64, (rounds * self.combinations) as f64);
        let fraction = match self.budget {
            Budget::Time(time) => {
                let elapsed = now.saturating_duration_since(self.began);
                part(elapsed.as_secs_f64(), time.as_secs_f64())
            }
            Budget::Jobs(jobs) => part(done.jobs as f64, jobs as f64),
            Budget::Programs(_) => round,
        };
        fraction.min(round).min(1.0)
    }

    /// Whether memory is still to settle: the first tenth, and until each combination has had a slice.
    pub(crate) fn is_early(&self, done: &Tally, now: Instant) -> bool {
        done.slices <= self.combinations || self.fraction(done, now) < 0.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(slices: u64, jobs: u64) -> Tally {
        Tally {
            slices,
            jobs,
            ..Tally::default()
        }
    }

    /// Goal: every length covers all combinations. Method: a second and a day for 24 of them.
    #[test]
    fn each_combination_has_its_turn() {
        let begin = Instant::now();
        let pace = |time| Pace::new(Budget::Time(time), 24, begin);
        let short = pace(Duration::from_secs(1));
        let slice = short.slice(&done(0, 0)).expect("by time");
        assert!(slice >= SLICE_MIN && slice * 24 <= Duration::from_millis(1100));
        let later = begin + Duration::from_secs(10);
        assert!(short.fraction(&done(47, 0), later) < 1.0);
        assert!(short.fraction(&done(48, 0), later) >= 1.0);
        let day = pace(Duration::from_secs(86_400));
        assert_eq!(day.slice(&done(0, 0)), Some(SLICE));
    }

    /// Goal: jobs are counted, and memory is looked at after a tenth. Method: a million of them.
    #[test]
    fn jobs_end_it() {
        let begin = Instant::now();
        let pace = Pace::new(Budget::Jobs(1_000_000), 4, begin);
        assert!(pace.fraction(&done(100, 999_999), begin) < 1.0);
        assert!(pace.fraction(&done(7, 2_000_000), begin) < 1.0);
        assert!(pace.fraction(&done(100, 1_000_000), begin) >= 1.0);
        assert!(pace.is_early(&done(4, 500_000), begin));
        assert!(pace.is_early(&done(9, 90_000), begin));
        assert!(!pace.is_early(&done(9, 110_000), begin));
        assert_eq!(pace.programs(), u64::MAX);
        assert_eq!(Budget::Jobs(1_000_000).part(30), Budget::Jobs(300_000));
    }
}
