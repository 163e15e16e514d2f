//! Whether slow workers make the ranges of one place in the program shorter. This is plain arithmetic; it
//! knows no platform.
//!
//! By itself another CPU that takes a part is a gain, and [`slow`](super::slow) makes sure that no thread
//! waits for it. But where the kernel chooses clocks by load, fast CPUs that have less to do are clocked
//! lower. The kernel means them to be busy for four fifths of the time. If little cores take work from them,
//! their clocks fall until they are that busy again. Then a frame takes as long as before or longer, and more
//! energy. That cannot be seen inside a range (clocks follow over tens of milliseconds), and it cannot be
//! known before: with fixed clocks, or clocks at their highest, the gain is real. So it is tried. The measure
//! is the time of an item of the range on all threads together, from the beginning to the end of a run:
//!
//! 1. The first runs are with slow workers, for [`LEARN`]. A range may come only a few times, and clocks that
//!    have not risen yet have not fallen either.
//! 2. Then runs are without slow workers until clocks have settled: [`RUNS`] runs that took as long as each
//!    other, or [`LEARN`].
//! 3. Then the other way is tried for [`TRY`]. If it was better by [`MARGIN`] it is kept; otherwise the way
//!    before it is. A try with slow workers ends at once when it is worse by as much.
//! 4. After [`HOLD`] step 3 is repeated, later and later up to [`HOLD_MAX`], and sooner again when something
//!    has changed: a try costs its frames, and the machine may have changed by now.
//!
//! Each phase has at least [`RUNS`] runs. Its result is an average in which the last runs count most, since
//! they are those with settled clocks. docs/topology.md has the results in the simulator.

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

/// How long clocks take to settle at most: eight of PELT's half-lives.
const LEARN: Nanos = Nanos::from_millis(250);
/// How long the other way is tried.
const TRY: Nanos = Nanos::from_millis(200);
/// The least number of runs in a phase.
const RUNS: u32 = 4;
/// The other way has to be better by one part in this many.
const MARGIN: u64 = 32;
/// How long the better way is kept at first, and at most.
const HOLD: Nanos = Nanos::from_secs(2);
const HOLD_MAX: Nanos = Nanos::from_secs(32);

/// The state of the trial for the ranges of one label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    phase: TrialPhase,
    /// When the phase began, and how many runs there were since then.
    began: Nanos,
    runs: u32,
    /// The cost of an item in this phase, in picoseconds; 0 before its first run.
    cost: u64,
    /// The cost in the last run alone, and how many runs in a row have taken as long as the one before.
    last: u64,
    steady: u32,
    /// How long the better way is kept the next time.
    hold: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TrialPhase {
    /// With slow workers, before anything is known.
    First,
    /// Without slow workers, until clocks have settled.
    Settling,
    /// The better way, as far as that is known.
    Kept { with: bool, until: Nanos },
    /// The other way. `against`: the cost of the better way.
    Trying { with: bool, against: u64 },
}

impl Trial {
    pub(crate) fn new() -> Trial {
        Trial {
            phase: TrialPhase::First,
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
            TrialPhase::First => true,
            TrialPhase::Settling => false,
            TrialPhase::Kept { with, .. } | TrialPhase::Trying { with, .. } => with,
        }
    }

    /// A run is over: it had `items` items and took `took`, with slow workers or without.
    pub(crate) fn ran(&mut self, with: bool, items: u64, took: Nanos, now: Nanos) {
        if with != self.is_with() || items == 0 {
            return; // It began before the phase did.
        }
        let cost = (took.0.saturating_mul(1000) / items).clamp(1, u64::MAX / 4);
        self.cost = match self.cost {
            0 => cost,
            average => average - average / 4 + cost / 4,
        };
        if (self.phase, self.runs) == (TrialPhase::First, 0) {
            self.began = now;
        }
        self.runs += 1;
        self.steady = if cost.abs_diff(self.last) <= cost / (2 * MARGIN) {
            self.steady + 1
        } else {
            0
        };
        self.last = cost;
        let is_due = match self.phase {
            TrialPhase::First => now >= self.began + LEARN,
            TrialPhase::Settling => self.steady + 1 >= RUNS || now >= self.began + LEARN,
            TrialPhase::Kept { until, .. } => now >= until,
            TrialPhase::Trying { .. } => false,
        };
        match self.phase {
            TrialPhase::First if is_due && self.runs >= RUNS => {
                self.begin(TrialPhase::Settling, now)
            }
            TrialPhase::Settling | TrialPhase::Kept { .. } if is_due && self.runs >= RUNS => {
                let (with, against) = (!with, self.cost);
                self.begin(TrialPhase::Trying { with, against }, now);
            }
            TrialPhase::Trying { with, against } => self.judge(with, against, now),
            _ => {}
        }
    }

    fn judge(&mut self, with: bool, against: u64, now: Nanos) {
        let is_hopeless = with && self.runs > 1 && self.cost > against + against / MARGIN;
        let is_over = self.runs >= RUNS && now >= self.began + TRY;
        if !is_over && !is_hopeless {
            return;
        }
        // In doubt the runs are without slow workers: that takes less energy.
        let is_better = if with {
            self.cost + self.cost / MARGIN <= against
        } else {
            self.cost <= against + against / MARGIN
        };
        self.hold = if is_better {
            HOLD
        } else {
            Nanos(2 * self.hold.0).min(HOLD_MAX)
        };
        let until = now + self.hold;
        self.begin(
            TrialPhase::Kept {
                with: with == is_better,
                until,
            },
            now,
        );
    }

    fn begin(&mut self, phase: TrialPhase, now: Nanos) {
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

/// How a run of a range is made, from when it was first worth offering.
pub(crate) struct Tried<M: Memory> {
    /// 0: not decided; 1: without slow workers; 2: with them. Relaxed, as the others: decided under the lock
    /// of [`Trials`], and read at the end by the last participant to leave the range.
    decision: M::AtomicU32,
    /// When it was decided, and how many items were left then.
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

    /// The block is now used for another range.
    pub(super) fn forget(&self) {
        self.decision.store(0, Ordering::Relaxed);
    }

    /// Whether the run is with slow workers, if that is decided.
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
        /// How many labels have a trial of their own. Further labels share these trials.
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

    /// Adds a run that is over to the trial of its label.
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

    /// Runs, one for each frame. `took` says how long a run takes, given the share of the last frames that
    /// was with slow workers. Returns the mean time, in thousandths of the time if all runs are without, and
    /// how many runs were with slow workers, in thousandths.
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
            // The view of a governor: half-lives of two frames.
            settled += (f64::from(u8::from(with)) - settled) * 0.3;
            sum += time;
            with_sum += u64::from(with);
        }
        let mean = sum / count as f64;
        let share = with_sum * 1_000 / count;
        ((mean * 1_000.0 / took(0.0, false)) as u64, share)
    }

    /// Goal: a gain is kept, a loss costs next to nothing, and what makes no difference is left out. Method:
    /// ten minutes on machines of one line each: clocks that stay as they are, clocks that follow the load,
    /// and a machine on which nothing changes.
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

    /// Goal: it is noticed when the machine changes. Method: a minute with a gain, a minute with a loss, and
    /// a minute with a gain again; checks which way the last quarter of each went.
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
