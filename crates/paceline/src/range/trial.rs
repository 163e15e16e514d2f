//! Whether slow workers make the ranges of one place in the program shorter. Plain arithmetic; it knows no
//! platform.
//!
//! By itself another CPU that takes a part is a gain, and [`slow`](super::slow) sees to it that nobody waits
//! for it. But where the kernel chooses clocks by load, fast CPUs that have less to do are clocked lower: the
//! kernel means them to be busy for four fifths of the time, and what little cores do for them lets their
//! clocks fall until they are again. Then a frame takes as long as before or longer, and more energy. That is
//! not seen inside of a range (clocks follow over tens of milliseconds), and it cannot be known before:
//! with fixed clocks, or clocks at their highest, the gain is real. So it is tried, and what counts is the
//! time that an item of the range takes all threads together, from the beginning to the end of a run:
//!
//! 1. The first runs are with slow workers, for [`LEARN`]: a range may come only a few times, and clocks that
//!    have not risen yet have not fallen either.
//! 2. Then without until clocks have settled: [`RUNS`] runs that took as long as each other, or [`LEARN`].
//! 3. Then the other way round for [`TRY`]; if that was by [`MARGIN`] better it is kept, else all is as it
//!    was. A try with slow workers ends at once when it is by as much worse.
//! 4. After [`HOLD`] once more as in 3, later and later up to [`HOLD_MAX`], sooner again when something has
//!    changed: a try costs its frames, and the machine may be another one by now.
//!
//! Each phase has [`RUNS`] runs at least, and its result is an average in which the last ones count most,
//! since they are those with settled clocks. What comes of it in the simulator: docs/topology.md.

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

/// How long clocks take to settle at most: eight of PELT's half-lives.
const LEARN: Nanos = Nanos::from_millis(250);
/// How long the other way is tried.
const TRY: Nanos = Nanos::from_millis(200);
/// Runs in a phase at least.
const RUNS: u32 = 4;
/// By one in so many parts it has to be better.
const MARGIN: u64 = 32;
/// How long the better way is kept at first, and at most.
const HOLD: Nanos = Nanos::from_secs(2);
const HOLD_MAX: Nanos = Nanos::from_secs(32);

/// What is known of the ranges of one label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    phase: Phase,
    /// When it began, and how many runs there were since then.
    began: Nanos,
    runs: u32,
    /// What an item has taken in this phase, in picoseconds; 0 as long as there was no run.
    cost: u64,
    /// The same in the last run alone, and how many runs in a row have taken as long as the one before.
    last: u64,
    steady: u32,
    /// How long the better way is kept the next time.
    hold: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// With, before anything is known.
    First,
    /// Without, until clocks have settled.
    Settling,
    /// The better way, as far as that is known.
    Kept { with: bool, until: Nanos },
    /// The other one; the better way took so long.
    Trying { with: bool, against: u64 },
}

impl Trial {
    pub(crate) fn new() -> Trial {
        Trial {
            phase: Phase::First,
            began: Nanos::ZERO,
            runs: 0,
            cost: 0,
            last: 0,
            steady: 0,
            hold: HOLD,
        }
    }

    /// Whether slow workers are to take part in the next run.
    pub(crate) fn is_with(&self) -> bool {
        match self.phase {
            Phase::First => true,
            Phase::Settling => false,
            Phase::Kept { with, .. } | Phase::Trying { with, .. } => with,
        }
    }

    /// A run is over: so many items took so long, with slow workers or without.
    pub(crate) fn ran(&mut self, with: bool, items: u64, took: Nanos, now: Nanos) {
        if with != self.is_with() || items == 0 {
            return; // It began before the phase did.
        }
        let cost = (took.0.saturating_mul(1000) / items).clamp(1, u64::MAX / 4);
        self.cost = match self.cost {
            0 => cost,
            average => average - average / 4 + cost / 4,
        };
        if (self.phase, self.runs) == (Phase::First, 0) {
            self.began = now;
        }
        self.runs += 1;
        self.steady = match cost.abs_diff(self.last) <= cost / (2 * MARGIN) {
            true => self.steady + 1,
            false => 0,
        };
        self.last = cost;
        let is_due = match self.phase {
            Phase::First => now >= self.began + LEARN,
            Phase::Settling => self.steady + 1 >= RUNS || now >= self.began + LEARN,
            Phase::Kept { until, .. } => now >= until,
            Phase::Trying { .. } => false,
        };
        match self.phase {
            Phase::First if is_due && self.runs >= RUNS => self.begin(Phase::Settling, now),
            Phase::Settling | Phase::Kept { .. } if is_due && self.runs >= RUNS => {
                let (with, against) = (!with, self.cost);
                self.begin(Phase::Trying { with, against }, now);
            }
            Phase::Trying { with, against } => self.judge(with, against, now),
            _ => {}
        }
    }

    fn judge(&mut self, with: bool, against: u64, now: Nanos) {
        let is_hopeless = with && self.runs > 1 && self.cost > against + against / MARGIN;
        let is_over = self.runs >= RUNS && now >= self.began + TRY;
        if !is_over && !is_hopeless {
            return;
        }
        // In doubt without: that takes less energy.
        let is_better = match with {
            true => self.cost + self.cost / MARGIN <= against,
            false => self.cost <= against + against / MARGIN,
        };
        self.hold = match is_better {
            true => HOLD,
            false => Nanos(2 * self.hold.0).min(HOLD_MAX),
        };
        let until = now + self.hold;
        self.begin(
            Phase::Kept {
                with: with == is_better,
                until,
            },
            now,
        );
    }

    fn begin(&mut self, phase: Phase, now: Nanos) {
        *self = Trial {
            phase,
            began: now,
            runs: 0,
            cost: 0,
            last: 0,
            steady: 0,
            hold: self.hold,
        };
    }
}

/// How a run of a range is made, from the moment at which it was first worth offering.
pub(crate) struct Tried<M: Memory> {
    /// 0: not decided; else 1 more than whether with slow workers. Relaxed, as the others: decided under
    /// the lock of [`Trials`], and read at the end by the last one to leave the range.
    decision: M::AtomicU32,
    /// When it was decided, and how many items were left.
    at: M::AtomicU64,
    items: M::AtomicU64,
}

impl<M: Memory> Tried<M> {
    pub(super) fn new() -> Tried<M> {
        Tried {
            decision: M::AtomicU32::new(0),
            at: M::AtomicU64::new(0),
            items: M::AtomicU64::new(0),
        }
    }

    /// The block is another range's.
    pub(super) fn forget(&self) {
        self.decision.store(0, Ordering::Relaxed);
    }

    /// Whether with slow workers, if that is decided.
    #[inline]
    pub(super) fn decided(&self) -> Option<bool> {
        match self.decision.load(Ordering::Relaxed) {
            0 => None,
            decision => Some(decision == 2),
        }
    }
}

/// The trials of all labels.
pub(crate) struct Trials<M: Memory>(M::Lock<Vec<Trial>>);

impl<M: Memory> Trials<M> {
    pub(crate) fn new() -> Trials<M> {
        Trials(M::Lock::new(Vec::new()))
    }

    fn with<R>(&self, label: u32, with: impl FnOnce(&mut Trial) -> R) -> R {
        /// Labels beyond that share what is known.
        const LABELS_MAX: usize = 1 << 12;
        let label = label as usize % LABELS_MAX;
        self.0.with(|trials| {
            if trials.len() <= label {
                trials.resize(label + 1, Trial::new());
            }
            with(&mut trials[label])
        })
    }

    /// Decides how a run is made, unless that was decided meanwhile.
    pub(super) fn decide(&self, label: u32, tried: &Tried<M>, items: u64, now: Nanos) -> bool {
        self.with(label, |trial| {
            tried.decided().unwrap_or_else(|| {
                let with = trial.is_with();
                tried.at.store(now.0, Ordering::Relaxed);
                tried.items.store(items, Ordering::Relaxed);
                tried.decision.store(1 + u32::from(with), Ordering::Relaxed);
                with
            })
        })
    }

    /// A run is over.
    pub(super) fn learn(&self, label: u32, tried: &Tried<M>, with: bool, now: Nanos) {
        let items = tried.items.load(Ordering::Relaxed);
        let began = Nanos(tried.at.load(Ordering::Relaxed));
        self.with(label, |trial| trial.ran(with, items, now - began, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos(16_666_667);

    /// Runs, a frame each, that take what `took` says of the share of the last frames that was with slow
    /// workers. Returns the mean against that of all without, and how many were with, both in thousandths.
    fn frames(
        (from, count): (u64, u64),
        trial: &mut Trial,
        took: impl Fn(f64, bool) -> f64,
    ) -> (u64, u64) {
        let (mut settled, mut sum, mut with_sum) = (0.0, 0.0, 0);
        for frame in from..from + count {
            let with = trial.is_with();
            let time = took(settled, with);
            let now = Nanos(frame * PERIOD.0 + time as u64);
            trial.ran(with, 1_000, Nanos(time as u64), now);
            // What a governor sees: half-lives of two frames.
            settled += (f64::from(u8::from(with)) - settled) * 0.3;
            sum += time;
            with_sum += u64::from(with);
        }
        let mean = sum / count as f64;
        let share = with_sum * 1_000 / count;
        ((mean * 1_000.0 / took(0.0, false)) as u64, share)
    }

    /// Goal: a gain is kept, a loss costs next to nothing, what makes no difference is left out. Method: ten
    /// minutes on machines of one line each: clocks that do not care, those that follow the load, and one on
    /// which nothing changes.
    #[test]
    fn what_is_better_is_kept_long() {
        let gain = |_, with| if with { 7.2e6 } else { 8e6 };
        let loss = |settled, with| {
            let alone = 8e6 * (1.0 + 0.5 * settled);
            if with { alone * 0.9 } else { alone }
        };
        let (mean, share) = frames((1, 36_000), &mut Trial::new(), gain);
        assert!(mean < 905 && share > 980, "{mean} {share}");
        let (mean, share) = frames((1, 36_000), &mut Trial::new(), loss);
        assert!(mean <= 1_002 && share < 10, "{mean} {share}");
        let (_, share) = frames((1, 36_000), &mut Trial::new(), |_, _| 8e6);
        assert!(share < 10, "{share}");
    }

    /// Goal: when the machine becomes another one that is noticed. Method: a minute with a gain, a minute
    /// with a loss, and a minute with a gain again; who is part of the last quarter of each.
    #[test]
    fn another_machine_is_noticed_long() {
        let mut trial = Trial::new();
        let mut shares = [0; 3];
        for (minute, share) in (0..).zip(&mut shares) {
            let took = |_, with: bool| if with == (minute != 1) { 7e6 } else { 8e6 };
            frames((minute * 3_600, 2_700), &mut trial, took);
            *share = frames((minute * 3_600 + 2_700, 900), &mut trial, took).1;
        }
        assert!(
            shares[0] > 900 && shares[1] < 100 && shares[2] > 900,
            "{shares:?}"
        );
    }

    /// Goal: whatever runs take, nothing is divided by zero or overflows, and each way is tried. Method:
    /// random runs, some of them absurd.
    #[test]
    fn absurd_runs_are_borne_long() {
        let mut random = event::Random::new(7);
        let (mut trial, mut now, mut with) = (Trial::new(), Nanos::ZERO, [0; 2]);
        for _ in 0..10_000 {
            let is_with = trial.is_with();
            with[usize::from(is_with)] += 1;
            let took = Nanos(u64::MAX >> random.below(64));
            now = Nanos(now.0 + random.below(50_000_000));
            trial.ran(is_with, random.below(3) << random.below(60), took, now);
        }
        assert!(with[0] > 100 && with[1] > 100, "{with:?}");
    }
}
