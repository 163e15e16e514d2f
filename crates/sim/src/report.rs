//! How a run ended.
//!
//! Invariant: everything in a report is a function of the configuration, the seed and the program; two
//! reports of one seed are equal, so "the runs were equal" is `==`.

use std::fmt;
use std::panic::Location;

use event::{KernelEvent, Nanos};
use policy::Decisions;

use crate::SimConfig;

/// How a run ended and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct SimReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The number of steps.
    pub steps: u64,
    /// A hash over (thread, operation, word) of every step, with a policy that is asked at each: equal for
    /// equal schedules. 0 with other policies.
    pub schedule_hash: u64,
    /// A hash over the kernel's events: equal for equal runs.
    pub trace_hash: u64,
    /// The number of the kernel's events.
    pub events: u64,
    /// The virtual time at the end.
    pub now: Nanos,
    /// The threads, in the order in which they were spawned.
    pub threads: Vec<ThreadReport>,
    /// The use of the machine's clusters, in the order of its file: energy, frequencies, temperature.
    pub clusters: Vec<ClusterUse>,
    /// The use of the quota of CPU time, if there was one.
    pub quota: Option<QuotaUse>,
    /// The decisions of the policy, if a process in user space makes them.
    pub decisions: Option<Decisions>,
    /// How often a cache line had to be fetched from another CPU, or taken from CPUs that had copies. 0 on
    /// machines on which lines cost nothing.
    pub moved_lines: u64,
    /// The kernel's events, in order, if they were asked for.
    pub trace: Vec<KernelEvent>,
    /// The first broken promise of the policy, if the checks were on.
    pub violation: Option<(Nanos, String)>,
    /// The first thread that the policy refused ([`policy::Class::admits`]), and why. The caller that wanted
    /// to start it got the same error.
    pub refused: Option<String>,
    /// The configuration of the run; `config.seed` replays it.
    pub config: SimConfig,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All threads have ended, none by a panic.
    Finished,
    /// The time that the configuration gives was up.
    TimeUp,
    /// No thread can ever continue. The threads that have not ended, and why.
    Deadlock(Vec<Blocked>),
    /// The step limit was reached: a livelock, or a limit that is too small.
    StepLimit,
    /// A panic reached the entry of a thread (the first one, if several). It is the outcome even if `join`
    /// returned the payload, since job systems tend to ignore that during shutdown. It has priority over a
    /// deadlock, which it probably caused.
    Panicked {
        /// The thread's number.
        thread: usize,
        /// The panic's message and its place.
        message: String,
    },
}

/// A thread that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The thread's number, in spawn order.
    pub thread: usize,
    /// Its name.
    pub name: String,
    /// The object it waits for.
    pub on: On,
    /// The same by the name that a scenario has for it, if there is one.
    pub what: Option<String>,
}

/// The object that a thread waits for. Ids count the objects of a run in the order they are first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A token.
    Parker {
        /// The parker's id.
        id: u32,
        /// The line that made it.
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

/// The use of one cluster in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUse {
    /// Its name.
    pub name: String,
    /// The energy it used; 0 if its machine file says nothing about power.
    pub microjoules: u64,
    /// How long its cores were busy at each operating point, added up over the cores: (kHz, time), slowest
    /// first.
    pub busy: Vec<(u32, Nanos)>,
    /// How long its cores idled, added up.
    pub idle: Nanos,
    /// Its highest temperature, in thousandths of a degree, if it has a thermal model.
    pub hottest_millidegrees: Option<i64>,
}

/// The use of a quota in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// The number of periods, the last one included.
    pub periods: u64,
    /// The number of periods at the end of which at least one task was throttled.
    pub throttled_periods: u64,
    /// How long CPUs were throttled, added up over the CPUs.
    pub throttled: Nanos,
}

/// The time of a task, by its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// On a CPU.
    pub run: Nanos,
    /// Ready to run, waiting for a CPU.
    pub runnable: Nanos,
    /// The part of `runnable` during which its group's quota kept it from running.
    pub throttled: Nanos,
    /// Waiting for something else.
    pub sleep: Nanos,
}

/// One thread of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// The number of its steps, with a policy that is asked at each; else 0.
    pub steps: u64,
    /// The work it charged.
    pub charged: Nanos,
    /// How long it was on a CPU for the work it charged, as far as that was done: longer than the work where
    /// the CPU is a slow one, or shared. It is a part of its time on a CPU, and 0 with a policy that is asked
    /// at each step.
    pub worked: Nanos,
    /// When it began.
    pub began: Nanos,
    /// When it ended; [`Nanos::MAX`] if it did not.
    pub ended: Nanos,
    /// Its time, by its state.
    pub spent: Spent,
    /// How many times it gave up its CPU because it waited.
    pub voluntary: u64,
    /// How many times it lost its CPU although it could have continued.
    pub involuntary: u64,
    /// How many times it had a CPU: from getting it to losing it.
    pub stints: u64,
    /// Its state when the run ended.
    pub state: ThreadState,
    /// What it waited for then, by the name that a scenario has for it, if there is one.
    pub waits_for: Option<String>,
}

/// The state of a thread when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It had ended.
    Ended,
    /// It had ended by a panic with this message.
    Panicked(String),
    /// It could have continued.
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

    /// The threads that waited and the objects they waited for, if the run ended in a deadlock.
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
                write!(f, "thread {thread} panicked: {message}")?;
            }
        }
        writeln!(
            f,
            ", after {} steps, at {}; {}",
            self.steps, self.now, self.config
        )?;
        for (number, thread) in self.threads.iter().enumerate() {
            write!(f, "  thread {number} \"{}\": ", thread.name)?;
            match &thread.waits_for {
                Some(what) => write!(f, "waits for {what}")?,
                None => write!(f, "{}", thread.state)?,
            }
            let (steps, work) = (thread.steps, thread.charged);
            writeln!(f, " ({steps} steps, {work} of work)")?;
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
        write!(f, "thread {} \"{}\" waits for ", self.thread, self.name)?;
        match &self.what {
            Some(what) => f.write_str(what),
            None => write!(f, "{}", self.on),
        }
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
