//! How a run ended.
//!
//! Invariant: everything in a report is a function of the configuration, the seed and the program;
//! two reports of one seed are equal, so "the runs were equal" is `==`.

use std::fmt;
use std::panic::Location;

use event::{KernelEvent, Nanos};

use crate::SimConfig;

/// How a run ended and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct SimReport {
    /// How it ended.
    pub outcome: Outcome,
    /// How many steps were taken.
    pub steps: u64,
    /// A hash over (thread, operation, word) of every step, of a policy that is asked at each: equal for
    /// equal schedules. 0 with other policies.
    pub schedule_hash: u64,
    /// A hash over what the kernel did: equal for equal runs.
    pub trace_hash: u64,
    /// How many kernel events there were.
    pub events: u64,
    /// The virtual time at the end.
    pub now: Nanos,
    /// The threads in the order they were spawned.
    pub threads: Vec<ThreadReport>,
    /// What the machine's clusters did, in the order of its file: energy, frequencies, temperature.
    pub clusters: Vec<ClusterUse>,
    /// What the quota of CPU time did, if there was one.
    pub quota: Option<QuotaUse>,
    /// What the kernel did, in order, if it was asked for.
    pub trace: Vec<KernelEvent>,
    /// The first thing that the policy promises and did not keep, if it was asked for.
    pub violation: Option<(Nanos, String)>,
    /// The first thread that the policy did not take ([`policy::Class::admits`]), and why; whoever wanted to
    /// start it was told.
    pub refused: Option<String>,
    /// What was run; `config.seed` replays it.
    pub config: SimConfig,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All threads have ended, none by a panic.
    Finished,
    /// The time that the configuration gives was up.
    TimeUp,
    /// No thread can ever go on. Those that have not ended, and why.
    Deadlock(Vec<Blocked>),
    /// The step limit was reached: a livelock, or a limit that is too small.
    StepLimit,
    /// A panic reached the entry of a thread (the first one, if several). It is an outcome even if
    /// `join` handed the payload out, since job systems tend to ignore that on their way down; and
    /// it goes before a deadlock, of which it is the likely cause.
    Panicked {
        /// The thread's number.
        thread: usize,
        /// What the panic said, and where.
        message: String,
    },
}

/// A thread that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The thread's number, in spawn order.
    pub thread: usize,
    /// Its name.
    pub name: String,
    /// What it waits for.
    pub on: On,
}

/// What a thread waits for. Ids count the objects of a run in the order they are first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A token.
    Parker {
        /// The parker's id.
        id: u32,
        /// The line that asked for it.
        made_at: &'static Location<'static>,
    },
    /// A write to a word.
    Word {
        /// The word's id.
        id: u32,
        /// The line that made it.
        made_at: &'static Location<'static>,
    },
    /// A lock.
    Lock {
        /// The lock's id.
        id: u32,
        /// The line that made it.
        made_at: &'static Location<'static>,
        /// The thread that holds it.
        held_by: usize,
    },
    /// A mutex of the kernel.
    Mutex {
        /// Its number, in the order of making.
        number: u32,
        /// The thread that holds it.
        held_by: usize,
    },
    /// A message, or room for one.
    Queue {
        /// The queue's number, in the order of making.
        number: u32,
    },
    /// A semaphore.
    Semaphore {
        /// Its number, in the order of making.
        number: u32,
    },
    /// The end of a thread.
    Join {
        /// That thread's number.
        thread: usize,
    },
    /// The end of its own charged work. Only in the report of a run that was stopped.
    Work,
}

/// What one cluster did in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUse {
    /// Its name.
    pub name: String,
    /// The energy it used; 0 if its machine file says nothing about power.
    pub microjoules: u64,
    /// For how long its cores were busy at each operating point, added up over the cores: (kHz, time),
    /// slowest first.
    pub busy: Vec<(u32, Nanos)>,
    /// For how long its cores idled, added up.
    pub idle: Nanos,
    /// How warm it got, in thousandths of a degree, if it has a thermal model.
    pub hottest_millidegrees: Option<i64>,
}

/// What a quota did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// How many periods there were, the last one included.
    pub periods: u64,
    /// At the end of how many of them somebody was throttled.
    pub throttled_periods: u64,
    /// For how long CPUs were throttled, added up over the CPUs.
    pub throttled: Nanos,
}

/// Where a task's time has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// On a CPU.
    pub run: Nanos,
    /// Ready for one.
    pub runnable: Nanos,
    /// The part of it during which its group's quota kept it from running.
    pub throttled: Nanos,
    /// Waiting for something else.
    pub sleep: Nanos,
}

/// One thread of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// How many steps it took, with a policy that is asked at each; else 0.
    pub steps: u64,
    /// The work it charged.
    pub charged: Nanos,
    /// When it began.
    pub began: Nanos,
    /// When it ended; [`Nanos::MAX`] if it did not.
    pub ended: Nanos,
    /// Where its time went.
    pub spent: Spent,
    /// How often it gave up its CPU because it waited.
    pub voluntary: u64,
    /// How often it lost its CPU although it could have gone on.
    pub involuntary: u64,
    /// How often it had a CPU for a while: from getting it to losing it.
    pub stints: u64,
    /// What it did when the run ended.
    pub state: ThreadState,
}

/// What a thread did when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It had ended.
    Ended,
    /// It had ended by a panic that said this.
    Panicked(String),
    /// It could have gone on.
    Runnable,
    /// It waited.
    Blocked(On),
}

impl SimReport {
    /// Passes the report through if the run finished.
    ///
    /// # Panics
    /// If it did not; the text holds the report and the seed.
    #[track_caller]
    pub fn expect_finished(self) -> SimReport {
        assert!(self.outcome == Outcome::Finished, "{self}");
        self
    }

    /// Who waits for what, if the run ended in a deadlock.
    pub fn deadlocked(&self) -> Option<&[Blocked]> {
        match &self.outcome {
            Outcome::Deadlock(blocked) => Some(blocked),
            _ => None,
        }
    }
}

impl fmt::Display for SimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Finished => f.write_str("finished")?,
            Outcome::TimeUp => f.write_str("the time was up")?,
            Outcome::Deadlock(_) => f.write_str("deadlock")?,
            Outcome::StepLimit => f.write_str("step limit reached (livelock?)")?,
            Outcome::Panicked { thread, message } => {
                write!(f, "thread {thread} panicked: {message}")?
            }
        }
        writeln!(
            f,
            ", after {} steps, at {}; {}",
            self.steps, self.now, self.config
        )?;
        for (number, thread) in self.threads.iter().enumerate() {
            writeln!(
                f,
                "  thread {number} \"{}\": {} ({} steps, {} of work)",
                thread.name, thread.state, thread.steps, thread.charged
            )?;
        }
        if let Some(refused) = &self.refused {
            writeln!(f, "  {refused}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadState::Ended => f.write_str("ended"),
            ThreadState::Panicked(message) => write!(f, "panicked: {message}"),
            ThreadState::Runnable => f.write_str("runnable"),
            ThreadState::Blocked(on) => write!(f, "waits for {on}"),
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "thread {} \"{}\" waits for {}",
            self.thread, self.name, self.on
        )
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            On::Parker { id, made_at } => write!(f, "the token of parker {id} ({made_at})"),
            On::Word { id, made_at } => write!(f, "a write to word {id} ({made_at})"),
            On::Lock {
                id,
                made_at,
                held_by,
            } => {
                write!(f, "lock {id} ({made_at}), held by thread {held_by}")
            }
            On::Mutex { number, held_by } => {
                write!(f, "mutex {number}, held by thread {held_by}")
            }
            On::Queue { number } => write!(f, "queue {number}"),
            On::Semaphore { number } => write!(f, "semaphore {number}"),
            On::Join { thread } => write!(f, "the end of thread {thread}"),
            On::Work => f.write_str("the end of its work"),
        }
    }
}
