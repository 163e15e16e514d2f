//! Decisions with numbers: how long to spin, how to split, how much to hold back.
//!
//! Each number is here with its unit and its reason; the mechanisms that use it are elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Memory, Ordering};

/// What a thread without work does before it parks.
///
/// A program sets it by [`Builder::wait_policy`](crate::Builder::wait_policy). The environment variable
/// `PACELINE_WAIT` (`active`, `passive`, `adaptive`, or a time such as `20us`) wins over that, so that
/// a shipped program can be tuned on the machine at hand.
///
/// ```
/// use std::time::Duration;
/// use paceline::WaitPolicy;
/// assert_eq!("passive".parse(), Ok(WaitPolicy::Passive));
/// assert_eq!("20us".parse(), Ok(WaitPolicy::For(Duration::from_micros(20))));
/// assert!("sometimes".parse::<WaitPolicy>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitPolicy {
    /// Spin until there is work. The latency is lowest, and each idle worker burns a core. For programs that
    /// own their machine.
    Active,
    /// Park at once. No cycle is wasted, and every new job pays a wake-up.
    Passive,
    /// Spin for this time, then park.
    For(Duration),
    /// Spin about as long as a wake-up takes on this machine, as measured while running. That costs at most
    /// twice as much as the best choice in hindsight (Karlin et al., "Competitive Snoopy Caching", 1988).
    ///
    /// The time is shorter, down to nothing, where spinning has been in vain lately. There is no spinning if
    /// there are more threads than CPUs to run them, or if CPU time is rationed (by the quota of a control
    /// group).
    #[default]
    Adaptive,
}

/// What a thread may run while it waits in the middle of a job.
///
/// A program sets it by [`Builder::wait_rule`](crate::Builder::wait_rule).
///
/// ```
/// use paceline::WaitRule;
/// assert_eq!(WaitRule::default(), WaitRule::Needed);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(not(feature = "pools"), allow(dead_code, unreachable_pub))]
pub enum WaitRule {
    /// What the wait needs: the awaited job, those that it depends on, and those that these have made. An
    /// unrelated job on top of a wait could take for ever, or wait for something that the waiter holds.
    #[default]
    Needed,
    /// The newest job of the thread's own queue first, then what the wait needs, then any other job that is
    /// ready. A job that no other thread is free for is run then, even if what is awaited depends on it by
    /// means that the job system does not know (a channel, a lock, another job system). And a
    /// [`join`](crate::Context::join) wakes a thread for its second half whenever one sleeps. For programs
    /// that were written for pools which work like that.
    Anything,
}

impl WaitRule {
    /// Whether it is the second one. Never without feature `pools`.
    #[inline(always)]
    pub(crate) fn is_anything(self) -> bool {
        cfg!(feature = "pools") && self == WaitRule::Anything
    }
}

/// A text that is no wait policy; from the [`FromStr`] of [`WaitPolicy`].
///
/// ```
/// let error = "sometimes".parse::<paceline::WaitPolicy>().unwrap_err();
/// assert!(error.to_string().starts_with("'sometimes' is no wait policy: use active, "));
/// ```
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
        let word = text.trim_ascii();
        let policy = match word {
            _ if is_word(word, "active") => Some(WaitPolicy::Active),
            _ if is_word(word, "passive") => Some(WaitPolicy::Passive),
            _ if is_word(word, "adaptive") => Some(WaitPolicy::Adaptive),
            _ => read_time(word).map(WaitPolicy::For),
        };
        policy.ok_or_else(|| WaitPolicyError(text.to_owned()))
    }
}

/// Whether two words are the same, in letters of either case. It is called once for each word that is known,
/// and inlined there it would be most of the code.
#[inline(never)]
fn is_word(text: &str, known: &str) -> bool {
    text.eq_ignore_ascii_case(known)
}

fn read_time(word: &str) -> Option<Duration> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at_checked(digits)?;
    let unit = unit.trim_ascii_start();
    let nanos = match unit {
        _ if is_word(unit, "ns") => 1,
        _ if is_word(unit, "us") || is_word(unit, "µs") => 1_000,
        _ if is_word(unit, "ms") => 1_000_000,
        _ => return None,
    };
    let number = number.parse::<u64>().ok()?;
    Some(Duration::from_nanos(number.saturating_mul(nanos)))
}

/// How finely a range may be cut.
///
/// ```
/// use paceline::Grain;
/// let js = paceline::JobSystem::new();
/// js.parallel_for(0..1000, Grain::Auto, |part, _| assert!(!part.is_empty()));
/// js.parallel_for(0..1000, Grain::Items(64), |part, _| assert!(!part.is_empty()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grain {
    /// By time: blocks grow until one takes a few microseconds.
    #[default]
    Auto,
    /// At least this many items at a time, and more where items are short; 0 counts as 1. A range that has
    /// fewer than twice as many is one part, which one thread runs. For bodies that gain from long runs, such
    /// as vectorised loops.
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

/// The numbers that were found by measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning;

impl Tuning {
    /// The time that a block of a range should take: about fifty times the cost of taking it (a CAS, a clock
    /// stamp, the call of the body, a look for idle threads: about 75 ns). A single item may take longer.
    pub(crate) const BLOCK: Nanos = Nanos(4_000);
    /// The most blocks taken at once from a range that is still long while a thread wants a part of it.
    pub(crate) const BLOCKS_AT_ONCE: u32 = 3;
    /// The longest block while no thread wants a part. Other threads may have to wait for one if items cost
    /// more towards the end than the first ones promised.
    pub(crate) const BLOCK_UNWANTED: Nanos = Nanos(8 * Tuning::BLOCK.0);
    /// The time for which a thread inside a range relies on the measured time of an item, until it reads the
    /// clock again: the time of the longest block. Items that have become dearer are noticed as late as in
    /// such a block.
    pub(crate) const STAMP: Nanos = Tuning::BLOCK_UNWANTED;
    /// Remaining work of a range that is worth a spinning helper: a hand-over of the range's lines
    /// costs a few hundred nanoseconds.
    pub(crate) const WORTH_SHARING: Nanos = Nanos(1_500);
    /// Pieces of an idempotent job for each thread that can take part, if the program does not say how many.
    /// At the end of the job threads wait for the last piece: that is less than two hundredths of it.
    pub(crate) const REPEATABLE_PIECES: usize = 64;
    /// Slow workers are woken for a range only if its rest is expected to take at least this long, and at
    /// least twice as long as waking one of them: each wake-up costs the waker two microseconds.
    pub(crate) const WORTH_SLOW: Nanos = Nanos::from_micros(200);
    /// The assumed time of waking a slow worker before one was measured: little cores sleep deeply.
    pub(crate) const SLOW_WAKE_GUESS: Nanos = Nanos::from_micros(500);
    /// Slow workers leave a range to the fast ones when these have less than this to do: the fast ones will
    /// do the rest in a moment, and the last participant to leave has to end the job.
    pub(crate) const SLOW_LEAVES: Nanos = Nanos::from_micros(20);
    /// A slow worker takes its first piece of a range only if the fast ones have work for this many times as
    /// long as the piece should take. Phones' little cores wake up at a sixth of the frequency at which they
    /// have their capacity.
    pub(crate) const MARGIN_FIRST: u64 = 8;
    /// The same for further pieces, when it is known how long an item takes there.
    pub(crate) const MARGIN: u64 = 2;
    /// The longest time that a slow worker's piece should take. Taking one moves some cache lines between the
    /// clusters, which takes a microsecond.
    pub(crate) const PIECE: Nanos = Nanos(16 * Tuning::BLOCK.0);
    /// The assumed time of a wake-up before one was measured.
    pub(crate) const WAKE_GUESS: Nanos = Nanos::from_micros(10);
    /// The longest time of spinning, whatever was measured: on a machine that wakes more slowly than that, a
    /// core is worth more than the latency.
    pub(crate) const SPIN_MAX: Nanos = Nanos::from_micros(50);
    /// A thread that makes way for sleeping callers looks at the epoch for this long in between.
    pub(crate) const LOOK: Nanos = Nanos(300);
    /// Jobs published without a wake-up before the rest of the batch is announced anyway.
    pub(crate) const UNSIGNALLED_MAX: u32 = 64;
    /// The slice that workers ask for: shorter than the kernel's own (0.7 ms for one CPU, 1.4 for two, 2.8
    /// for eight and more), so that a woken worker goes before threads that compute without end; and not
    /// much shorter, since a thread whose slice is over loses its CPU at the next tick. (Beside four such
    /// threads on two CPUs 0.2 to 0.7 ms do equally well, and better than 0.1, the least that Linux grants,
    /// and 1.3.) `cargo run --release -p paceline-bench -- load` measures what it is worth beside such
    /// threads (*kernel's slice* is without).
    pub(crate) const SLICE: Nanos = Nanos::from_micros(400);
    /// Every this many jobs a worker looks elsewhere before it takes the newest of its own, so that jobs
    /// which keep making jobs cannot shut all others out. (Go uses the same number.)
    pub(crate) const FAIRNESS: u32 = 61;
    /// Jobs of a graph are put in order if they take at least so long in the mean: the turn at the shared
    /// queue then costs some percent of them.
    pub(crate) const RANK: Nanos = Nanos(4_000);
    /// The same for each thread: the turns of all threads at that queue follow each other. With 400 ns frames
    /// of short jobs took up to 8 % longer on 16 threads and more; with 2500 chains of short jobs were no
    /// longer begun first (`cargo test -p paceline-workload --test order` has both kinds).
    pub(crate) const RANK_TURN: Nanos = Nanos(1_500);
    /// Private forks that a thread keeps on offer. A fork list serves thieves from its old end, and each
    /// steal takes half of the rest of the tree, so a few are as good as all of them. Joins beyond that run
    /// both halves in place.
    pub(crate) const FORKS_ON_OFFER: u32 = 4;
    /// Tickets moved from the injector at a time.
    pub(crate) const INJECTOR_BATCH: usize = 256;
    /// Jobs that one search for runnable ancestors visits with marks alone, which say that a job was visited.
    /// After that many the search keeps a set of the visited ones.
    pub(crate) const SEARCH_VISITS_BY_MARK: usize = 1 << 16;
}

/// The time of waking a worker, as measured: a moving average.
///
/// A sample is the time from the waker's call to the sleeper's first step. Racing updates lose a sample; an
/// average can bear that.
pub(crate) struct WakeCost<M: Memory> {
    ns: M::AtomicU64,
    /// The weight of a sample is one part in this many.
    parts: u64,
    /// A longer sample counts as this.
    most: Nanos,
}

impl<M: Memory> WakeCost<M> {
    /// The cost of waking workers that may spin. They are woken thousands of times a second, so that eight
    /// samples are a moment. A sample that is much longer than the longest spin says that another thread had
    /// the CPU, and nothing about the next wake-up.
    pub(crate) fn fast() -> WakeCost<M> {
        WakeCost::new(Tuning::WAKE_GUESS, 8, Nanos(10 * Tuning::SPIN_MAX.0))
    }

    /// The cost of waking slow workers. They are woken once in a while, from states of sleep that differ a
    /// thousandfold in the time of leaving them: the last few samples tell most, and a millisecond may be
    /// true.
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

/// The width of the machine, in a word that all threads may read at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    /// Threads that can run at the same time.
    pub(crate) threads: usize,
    /// The job system may use less CPU time than its CPUs have.
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
    /// The time to spin, given the measured cost of a wake-up, the number of our threads that want a CPU, and
    /// the number that can have one. [`Nanos::MAX`]: never park.
    pub(crate) fn spin_time(&self, wake_cost: Nanos, threads: usize, width: Width) -> Nanos {
        match self.policy {
            WaitPolicy::Active => Nanos::MAX,
            WaitPolicy::Passive => Nanos::ZERO,
            WaitPolicy::For(time) => time.into(),
            WaitPolicy::Adaptive if threads > width.threads || width.is_rationed => Nanos::ZERO,
            WaitPolicy::Adaptive => wake_cost.min(Tuning::SPIN_MAX),
        }
    }
}

/// Whether spinning has paid lately, for one thread in one sort of situation.
///
/// Each spin in vain halves the next one, down to none. The full time is back after a spin that found work,
/// and after a sleep so short that spinning would have been cheaper. So a worker of a 60 Hz program does
/// not burn its spinning time at the end of every frame, and a worker whose gaps are short spins (Karlin,
/// Li, Manasse and Owicki, "Empirical Studies of Competitive Spinning for a Shared-Memory
/// Multiprocessor", 1991).
#[derive(Clone, Copy, Default)]
pub(crate) struct SpinHabit {
    in_vain: u32,
}

impl SpinHabit {
    /// After this many spins in vain in a row there is no spinning any more.
    const GIVES_UP: u32 = 4;

    /// The time to spin, of the `full` time that the policy allows.
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

    /// Spinning found no work. The thread parked and was back after `away`. `full`: as above. `wake_cost`:
    /// the measured time of a wake-up.
    pub(crate) fn parked(&mut self, away: Nanos, full: Nanos, wake_cost: Nanos) {
        if away <= full + wake_cost {
            self.in_vain = 0
        } else {
            self.in_vain = (self.in_vain + 1).min(SpinHabit::GIVES_UP)
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
        assert_eq!(read("2ms"), Ok(WaitPolicy::For(Duration::from_millis(2))));
        assert_eq!(
            read("500ns"),
            Ok(WaitPolicy::For(Duration::from_nanos(500)))
        );
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

    /// Goal: an average begins with the guess, follows the samples, and is not carried away by one of them.
    /// Method: equal samples until the average is there, then one that took a second.
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
