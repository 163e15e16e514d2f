//! Decisions with numbers: how long to spin, how to split, how much to hold back.
//!
//! Mechanism elsewhere asks; the answers are here, each with its unit and its reason.

use std::fmt;
use std::str::FromStr;

use event::Nanos;
use platform::{Atomic, Memory, Ordering};

/// What a thread without work does before it parks.
///
/// In code by [`Builder::wait_policy`](crate::Builder::wait_policy); the environment variable
/// `PACELINE_WAIT` (`active`, `passive`, `adaptive`, or a time such as `20us`) wins over it, so that
/// a shipped program can be tuned on the machine at hand.
///
/// ```
/// use paceline::WaitPolicy;
/// use event::Nanos;
/// assert_eq!("passive".parse(), Ok(WaitPolicy::Passive));
/// assert_eq!("20us".parse(), Ok(WaitPolicy::For(Nanos::from_micros(20))));
/// assert!("sometimes".parse::<WaitPolicy>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitPolicy {
    /// Spin until there is work: lowest latency, a core burnt per idle worker. For programs that own
    /// their machine.
    Active,
    /// Park at once: no cycle wasted, every new job pays a wake-up.
    Passive,
    /// Spin this long, then park.
    For(Nanos),
    /// Spin about as long as a wake-up costs on this machine, as measured while running: never more
    /// than twice the cost of the best choice in hindsight (Karlin et al., "Competitive Snoopy
    /// Caching", 1988). Shorter, down to not at all, where spinning has been in vain lately. No
    /// spinning if there are more threads than CPUs to run them, or if CPU time is rationed (by the quota of
    /// a control group).
    #[default]
    Adaptive,
}

/// A wait policy that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitPolicyError(String);

impl fmt::Display for WaitPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no wait policy: use active, passive, adaptive, or a time such as 500ns, 20us, 2ms",
            self.0
        )
    }
}

impl std::error::Error for WaitPolicyError {}

impl FromStr for WaitPolicy {
    type Err = WaitPolicyError;

    fn from_str(text: &str) -> Result<WaitPolicy, WaitPolicyError> {
        let time = |digits: &str, unit: u64| {
            let number = digits.trim().parse::<u64>();
            number.map(|n| WaitPolicy::For(Nanos(n.saturating_mul(unit))))
        };
        let word = text.trim().to_ascii_lowercase();
        let policy = match word.as_str() {
            "active" => Ok(WaitPolicy::Active),
            "passive" => Ok(WaitPolicy::Passive),
            "adaptive" => Ok(WaitPolicy::Adaptive),
            _ => [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000)]
                .iter()
                .find_map(|(suffix, unit)| Some(time(word.strip_suffix(suffix)?, *unit)))
                .unwrap_or_else(|| time("", 1)),
        };
        policy.map_err(|_| WaitPolicyError(text.to_string()))
    }
}

/// How finely a range may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grain {
    /// By time: blocks grow until one takes a few microseconds.
    #[default]
    Auto,
    /// Not fewer than this many items at a time, except at the end of what a thread has taken over.
    /// For bodies that gain from long runs, such as vectorised loops.
    Items(u32),
}

impl Grain {
    pub(crate) fn items(self) -> u32 {
        match self {
            Grain::Auto => 1,
            Grain::Items(items) => items.max(1),
        }
    }
}

/// The numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning;

impl Tuning {
    /// Time a block of a range should take: about fifty times what taking it costs (a CAS, a clock
    /// stamp, the call of the body, a look at who is idle: about 75 ns). A single item may take longer.
    pub(crate) const BLOCK: Nanos = Nanos(4_000);
    /// Most blocks taken at once from a range that is still long while somebody wants a part of it.
    pub(crate) const BLOCKS_AT_ONCE: u32 = 3;
    /// The longest block while nobody does. If items cost more towards the end than the first ones
    /// promised, this is what the others may have to wait for.
    pub(crate) const BLOCK_UNWANTED: Nanos = Nanos(8 * Tuning::BLOCK.0);
    /// How long a thread inside a range goes by what an item took before, until it looks at the time again:
    /// as long as a block may take. If items have become dearer, it is found as late as in a long block.
    pub(crate) const STAMP: Nanos = Tuning::BLOCK_UNWANTED;
    /// Remaining work of a range that is worth a spinning helper: a hand-over of the range's lines
    /// costs a few hundred nanoseconds.
    pub(crate) const WORTH_SHARING: Nanos = Nanos(1_500);
    /// How long what is left of a range must be expected to take for slow workers to be woken (and twice what
    /// waking one of them takes): each wake-up costs the waker two microseconds.
    pub(crate) const WORTH_SLOW: Nanos = Nanos::from_micros(200);
    /// What waking a slow worker is taken to cost before one was measured: little cores sleep deeply.
    pub(crate) const SLOW_WAKE_GUESS: Nanos = Nanos::from_micros(500);
    /// Slow workers leave a range to the fast ones when these have less than this to do: what is left is
    /// theirs in a moment, and whoever leaves last has to end the job.
    pub(crate) const SLOW_LEAVES: Nanos = Nanos::from_micros(20);
    /// How many times as long as a slow worker's first piece of a range should take, the fast ones must have
    /// something to do. Phones' little cores wake up at a sixth of the frequency that their capacity is of.
    pub(crate) const MARGIN_FIRST: u64 = 8;
    /// The same for further pieces, when it is known what an item takes there.
    pub(crate) const MARGIN: u64 = 2;
    /// How long a slow worker's piece should take at most. Taking one moves some cache lines between the
    /// clusters, which takes a microsecond.
    pub(crate) const PIECE: Nanos = Nanos(16 * Tuning::BLOCK.0);
    /// What a wake-up is taken to cost before one was measured.
    pub(crate) const WAKE_GUESS: Nanos = Nanos::from_micros(10);
    /// Spinning never lasts longer than this, whatever was measured: on a machine that wakes so
    /// slowly a core is worth more than the latency.
    pub(crate) const SPIN_MAX: Nanos = Nanos::from_micros(50);
    /// Jobs published without a wake-up before the rest of the batch is announced anyway.
    pub(crate) const UNSIGNALLED_MAX: u32 = 64;
    /// The slice that workers ask for: shorter than the kernel's own (0.7 ms for one CPU, 1.4 for two, 2.8
    /// for eight and more), so that a woken worker goes before threads that compute without end; and not
    /// much shorter, since a thread whose slice is over loses its CPU at the next tick. (Beside four such
    /// threads on two CPUs 0.2 to 0.7 ms do equally well, and better than 0.1, the least that Linux grants,
    /// and 1.3.) Row `load` of `paceline bench` measures what it is worth beside such threads (*kernel's
    /// slice* is the row without).
    pub(crate) const SLICE: Nanos = Nanos::from_micros(400);
    /// Every this many jobs a worker looks elsewhere before it takes the newest of its own, so that jobs
    /// which keep making jobs cannot shut everybody else out. (Go uses the same number.)
    pub(crate) const FAIRNESS: u32 = 61;
    /// Private forks a seat keeps on offer. A fork list serves thieves from its old end, and each
    /// steal takes half of what is left of the tree, so a few are as good as all of them; joins
    /// beyond that run both halves in place.
    pub(crate) const FORKS_ON_OFFER: u32 = 4;
    /// Tickets moved from the injector at a time.
    pub(crate) const INJECTOR_BATCH: usize = 256;
    /// Jobs visited by one search for runnable ancestors that are known to have been visited by their marks
    /// alone; from then on the search keeps a set of them.
    pub(crate) const SEARCH_VISITS_BY_MARK: usize = 1 << 16;
}

/// What waking a worker takes, as measured: a moving average.
///
/// A sample is the time from the waker's call to the sleeper's first step. Racing updates lose a sample,
/// which an average can bear.
pub(crate) struct WakeCost<M: Memory> {
    ns: M::AtomicU64,
    /// A sample counts for one part in so many.
    parts: u64,
    /// No sample counts for more.
    most: Nanos,
}

impl<M: Memory> WakeCost<M> {
    /// Of workers that may spin. They are woken thousands of times a second, so that eight samples are a
    /// moment; what takes much longer than anybody would spin for says that somebody else had the CPU, and
    /// nothing about the next wake-up.
    pub(crate) fn fast() -> WakeCost<M> {
        WakeCost::new(Tuning::WAKE_GUESS, 8, Nanos(10 * Tuning::SPIN_MAX.0))
    }

    /// Of slow workers. They are woken once in a while, from states of sleep that differ a thousandfold in
    /// what leaving them takes: the last few tell most, and a millisecond may be true.
    pub(crate) fn slow() -> WakeCost<M> {
        WakeCost::new(Tuning::SLOW_WAKE_GUESS, 4, Nanos::from_millis(10))
    }

    fn new(guess: Nanos, parts: u64, most: Nanos) -> WakeCost<M> {
        WakeCost {
            ns: M::AtomicU64::new(guess.0),
            parts,
            most,
        }
    }

    // Relaxed, here and below: a number that nothing is published with.
    #[inline]
    pub(crate) fn get(&self) -> Nanos {
        Nanos(self.ns.load(Ordering::Relaxed))
    }

    pub(crate) fn learn(&self, latency: Nanos) {
        let new = (self.get().0 * (self.parts - 1) + latency.min(self.most).0) / self.parts;
        self.ns.store(new, Ordering::Relaxed);
    }
}

/// How wide the machine is, for those who ask often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    /// Threads that can run at the same time.
    pub(crate) threads: usize,
    /// There is less CPU time than CPUs.
    pub(crate) is_rationed: bool,
}

impl Width {
    pub(crate) fn pack(self) -> u32 {
        (self.threads as u32) << 1 | u32::from(self.is_rationed)
    }

    pub(crate) fn unpack(word: u32) -> Width {
        Width {
            threads: (word >> 1) as usize,
            is_rationed: word & 1 != 0,
        }
    }
}

/// How long threads of one job system spin before they park.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinPolicy {
    pub(crate) policy: WaitPolicy,
}

impl SpinPolicy {
    /// The time to spin, given the measured cost of a wake-up, how many threads of ours want a CPU, and
    /// how many can have one. [`Nanos::MAX`] never parks.
    pub(crate) fn spin_time(&self, wake_cost: Nanos, threads: usize, width: Width) -> Nanos {
        match self.policy {
            WaitPolicy::Active => Nanos::MAX,
            WaitPolicy::Passive => Nanos::ZERO,
            WaitPolicy::For(time) => time,
            WaitPolicy::Adaptive if threads > width.threads || width.is_rationed => Nanos::ZERO,
            WaitPolicy::Adaptive => wake_cost.min(Tuning::SPIN_MAX),
        }
    }
}

/// Whether spinning has paid lately, for one thread in one sort of situation.
///
/// Each spin in vain halves the next one, down to none; one that found work, or a sleep so short that
/// spinning would have been cheaper, brings back the full time. So a worker of a 60 Hz program does
/// not burn its spinning time at the end of every frame, and one whose gaps are short spins (Karlin,
/// Li, Manasse and Owicki, "Empirical Studies of Competitive Spinning for a Shared-Memory
/// Multiprocessor", 1991).
#[derive(Clone, Copy, Default)]
pub(crate) struct SpinHabit {
    in_vain: u32,
}

impl SpinHabit {
    /// So many in a row, and there is no spinning any more.
    const GIVES_UP: u32 = 4;

    /// How long to spin, of the `full` time that the policy allows.
    pub(crate) fn time(self, full: Nanos) -> Nanos {
        match self.in_vain {
            SpinHabit::GIVES_UP => Nanos::ZERO,
            times => Nanos(full.0 >> times),
        }
    }

    /// Spinning found work.
    pub(crate) fn paid(&mut self) {
        self.in_vain = 0;
    }

    /// It did not, and the thread parked; it was back after `away`. `full` as above, and what a
    /// wake-up costs.
    pub(crate) fn parked(&mut self, away: Nanos, full: Nanos, wake_cost: Nanos) {
        match away <= full + wake_cost {
            true => self.in_vain = 0,
            false => self.in_vain = (self.in_vain + 1).min(SpinHabit::GIVES_UP),
        }
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    #[test]
    fn policies_are_read_as_documented() {
        let read = |text: &str| text.parse::<WaitPolicy>();
        assert_eq!(read(" Active "), Ok(WaitPolicy::Active));
        assert_eq!(read("2ms"), Ok(WaitPolicy::For(Nanos::from_millis(2))));
        assert_eq!(read("500ns"), Ok(WaitPolicy::For(Nanos(500))));
        for bad in ["", "us", "-1us", "1.5us", "20", "20s", "adaptiv"] {
            assert!(
                read(bad).unwrap_err().to_string().contains("use active"),
                "{bad}"
            );
        }
    }

    /// Goal: spinning stops when it is in vain and comes back when it would pay. Method: sleeps as
    /// between frames, then one of a few microseconds; and one spin that paid.
    #[test]
    fn spinning_in_vain_stops_until_it_would_pay() {
        let (full, cost, frame) = (Nanos(40_000), Nanos(60_000), Nanos::from_millis(14));
        let mut habit = SpinHabit::default();
        for expected in [40_000, 20_000, 10_000, 5_000, 0, 0, 0] {
            assert_eq!(habit.time(full), Nanos(expected));
            habit.parked(frame, full, cost);
        }
        habit.parked(full + cost + Nanos(1), full, cost);
        assert_eq!(habit.time(full), Nanos::ZERO);
        habit.parked(full + cost, full, cost);
        assert_eq!(habit.time(full), full);
        habit.parked(frame, full, cost);
        habit.paid();
        assert_eq!(habit.time(full), full);
    }

    /// Goal: an average begins with the guess, follows what is measured, and is not carried away by one
    /// sample. Method: equal samples until it is there, then one that took a second.
    #[test]
    fn the_cost_of_a_wake_up_follows_what_is_measured() {
        for (cost, guess, most) in [
            (WakeCost::<Os>::fast(), Tuning::WAKE_GUESS, 500_000 / 8),
            (WakeCost::slow(), Tuning::SLOW_WAKE_GUESS, 10_000_000 / 4),
        ] {
            assert_eq!(cost.get(), guess);
            (0..100).for_each(|_| cost.learn(Nanos(40_000)));
            let before = cost.get();
            assert!((39_990..=40_000).contains(&before.0), "{before}");
            cost.learn(Nanos::from_secs(1));
            assert!(cost.get().0 <= before.0 + most, "{}", cost.get());
        }
    }

    #[test]
    fn adaptive_does_not_spin_with_more_threads_than_cpus() {
        let spin = SpinPolicy {
            policy: WaitPolicy::Adaptive,
        };
        let two = Width {
            threads: 2,
            is_rationed: false,
        };
        let rationed = Width {
            is_rationed: true,
            ..two
        };
        assert_eq!(spin.spin_time(Nanos(7_000), 2, two), Nanos(7_000));
        assert_eq!(spin.spin_time(Nanos(7_000), 3, two), Nanos::ZERO);
        assert_eq!(spin.spin_time(Nanos(7_000), 2, rationed), Nanos::ZERO);
        assert_eq!(
            spin.spin_time(Nanos::from_secs(1), 2, two),
            Tuning::SPIN_MAX
        );
    }
}
