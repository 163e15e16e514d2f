//! A word that threads wait for, and the ways to wait for it.

use std::fmt;
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Lock, Ordering, Padded, Parker, Platform, Poll, Polling};

/// A way to wait until a word has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NaiveWait {
    /// Look again at once.
    Spin,
    /// The CPU's hint between two looks.
    Pause,
    /// `sched_yield` between two looks.
    Yield,
    /// Sleep between two looks, twice as long each time.
    Backoff {
        /// How long at first; at least 1 ns.
        first: Nanos,
        /// How long at most.
        most: Nanos,
    },
    /// Sleep for this long between two looks.
    Sleep(Nanos),
    /// Look again at once for this long, then [`Park`](NaiveWait::Park), as runtimes of OpenMP do.
    SpinPark(Nanos),
    /// Block until the writer wakes the thread: not naive, to compare with.
    Park,
}

impl NaiveWait {
    /// The shortest sleep there is, as a reader of source 002 recommends. It is not the shortest that can be
    /// asked for: Linux's timers ring up to 50 us late by default (`PR_SET_TIMERSLACK`), so a sleep of 1 ns
    /// takes that long. Here a deadline that has passed before the thread parks would be no sleep at all.
    pub const SHORTEST_SLEEP: NaiveWait = NaiveWait::Sleep(Nanos::from_micros(50));
    /// Back-off from a microsecond to a millisecond. The numbers are ours; the source gives none.
    pub const BACKOFF: NaiveWait = NaiveWait::Backoff {
        first: Nanos::from_micros(1),
        most: Nanos::from_millis(1),
    };
    /// As LLVM's runtime of OpenMP waits by default (`KMP_BLOCKTIME`): 200 ms in its CPU's way before it
    /// blocks.
    pub const BLOCKTIME: NaiveWait = NaiveWait::SpinPark(Nanos::from_millis(200));
    /// One of each kind.
    pub const ALL: [NaiveWait; 7] = [
        NaiveWait::Spin,
        NaiveWait::Pause,
        NaiveWait::Yield,
        NaiveWait::BACKOFF,
        NaiveWait::SHORTEST_SLEEP,
        NaiveWait::BLOCKTIME,
        NaiveWait::Park,
    ];

    /// The name of its kind on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            NaiveWait::Spin => "spin",
            NaiveWait::Pause => "pause",
            NaiveWait::Yield => "yield",
            NaiveWait::Backoff { .. } => "backoff",
            NaiveWait::Sleep(_) => "sleep",
            NaiveWait::SpinPark(_) => "spin-park",
            NaiveWait::Park => "park",
        }
    }

    /// The one of [`ALL`](NaiveWait::ALL) with this name.
    pub fn named(name: &str) -> Option<NaiveWait> {
        NaiveWait::ALL.into_iter().find(|wait| wait.name() == name)
    }

    /// Waits until `wanted` holds for the value of the flag. Returns how often it looked in vain.
    ///
    /// ```
    /// use platform::Os;
    /// use paceline_workload::naive::{Flag, NaiveWait};
    ///
    /// let flag = Flag::<Os>::new(0);
    /// flag.set(1);
    /// assert_eq!(NaiveWait::Yield.until(&Os, &flag, |value| value == 1), 0);
    /// ```
    pub fn until<P: Polling>(
        self,
        platform: &P,
        flag: &Flag<P>,
        wanted: impl Fn(u64) -> bool,
    ) -> u64 {
        let mut turns = Turns::new(self, platform);
        let mut in_vain = 0;
        while !wanted(flag.get()) {
            turns.turn(platform, flag, &wanted);
            in_vain += 1;
        }
        in_vain
    }
}

impl fmt::Display for NaiveWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NaiveWait::Backoff { first, most } => write!(f, "backoff {first} to {most}"),
            NaiveWait::Sleep(length) => write!(f, "sleep {length}"),
            NaiveWait::SpinPark(length) => write!(f, "spin-park after {length}"),
            other => f.write_str(other.name()),
        }
    }
}

/// A word that threads wait for, on a line of its own.
pub struct Flag<P: Platform> {
    word: Padded<P::AtomicU64>,
    /// Those that asked to be woken by the next write.
    parked: P::Lock<Vec<Arc<P::Parker>>>,
}

impl<P: Platform> Flag<P> {
    /// A flag with this value.
    pub fn new(value: u64) -> Flag<P> {
        Flag {
            word: Padded(P::on_own_lines(|| P::AtomicU64::new(value))),
            parked: P::Lock::new(Vec::new()),
        }
    }

    /// Its value. Acquire, partner: the Release in [`set`](Flag::set).
    pub fn get(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// Writes it and wakes those that are parked.
    ///
    /// The lock is taken whether or not a thread is parked (one more read-modify-write and one store): a
    /// waiter either puts itself on the list before and is woken, or looks after and sees the value.
    pub fn set(&self, value: u64) {
        // Release, partner: the Acquire in `get`.
        self.word.store(value, Ordering::Release);
        let parked = self.parked.with(std::mem::take);
        for parker in &parked {
            parker.unpark();
        }
    }
}

/// The state of a wait from one look to the next.
pub(crate) struct Turns<P: Platform> {
    wait: NaiveWait,
    /// For the waits that block; no other thread has it in those that sleep.
    parker: Option<Arc<P::Parker>>,
    /// How long the next sleep is.
    sleep: Nanos,
    /// How much longer it looks again at once before it parks: from its first turn on. Zero afterwards.
    spin: Nanos,
}

impl<P: Polling> Turns<P> {
    pub(crate) fn new(wait: NaiveWait, platform: &P) -> Turns<P> {
        let sleep = match wait {
            NaiveWait::Backoff { first, .. } => first.max(Nanos(1)),
            NaiveWait::Sleep(length) => length,
            _ => Nanos::ZERO,
        };
        let blocks = !matches!(wait, NaiveWait::Spin | NaiveWait::Pause | NaiveWait::Yield);
        Turns {
            wait,
            parker: blocks.then(|| Arc::new(platform.parker())),
            sleep,
            spin: match wait {
                NaiveWait::SpinPark(length) => length,
                _ => Nanos::ZERO,
            },
        }
    }

    /// The step between two looks at the flag. All looks of a wait that spins before it parks are one step.
    pub(crate) fn turn(&mut self, platform: &P, flag: &Flag<P>, wanted: impl Fn(u64) -> bool) {
        let Some(parker) = &self.parker else {
            let kind = match self.wait {
                NaiveWait::Pause => Poll::Pause,
                NaiveWait::Yield => Poll::Yield,
                _ => Poll::Spin,
            };
            return platform.poll(kind, &flag.word);
        };
        if self.spin > Nanos::ZERO {
            let deadline = platform.now() + std::mem::take(&mut self.spin);
            while platform.now() < deadline && !wanted(flag.get()) {
                platform.poll(Poll::Spin, &flag.word);
            }
            return;
        }
        if matches!(self.wait, NaiveWait::Park | NaiveWait::SpinPark(_)) {
            return park(parker, flag, wanted);
        }
        let deadline = platform.now() + self.sleep;
        while platform.now() < deadline {
            parker.park(deadline);
        }
        if let NaiveWait::Backoff { most, .. } = self.wait {
            self.sleep = (self.sleep + self.sleep).min(most.max(Nanos(1)));
        }
    }
}

/// Blocks until the next write, unless it has come.
fn park<P: Platform>(parker: &Arc<P::Parker>, flag: &Flag<P>, wanted: impl Fn(u64) -> bool) {
    let waits = flag.parked.with(|parked| {
        if wanted(flag.get()) {
            return false;
        }
        // It is there already if the last park returned early.
        if !parked.iter().any(|other| Arc::ptr_eq(other, parker)) {
            parked.push(Arc::clone(parker));
        }
        true
    });
    if waits {
        parker.park(Nanos::MAX);
    }
}
