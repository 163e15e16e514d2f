//! The contents of a scenario file.

use std::collections::BTreeMap;
use std::fmt;

use event::Nanos;
use policy::{Attr, Discipline};
use serde::Deserialize;

use super::changes::Change;
use super::quota::QuotaPlan;
use super::read;
use super::segments::Segments;
use super::span::{self, Span};
use crate::kernel::{admits, task};
use crate::{Perturb, SimConfig};

/// The thread of a scenario's program.
pub(super) const MAIN: &str = "main";

/// A scenario. Names of mutexes, queues, semaphores, flags and barriers are those the phases use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Its name; the file's name if the file gives none.
    #[serde(default)]
    pub name: String,
    /// What it shows, in one line.
    pub about: String,
    /// Its source.
    #[serde(default)]
    pub source: Option<String>,
    /// The machine it is meant for.
    pub machine: String,
    /// The policy it is meant for.
    pub policy: String,
    /// Whether every CPU runs at its highest frequency, whatever the machine's governors say: for scenarios
    /// that begin in the middle of something.
    #[serde(default)]
    pub full_speed: bool,
    /// Whether threads say what they wait for, as programs can do that share memory with a scheduler: a
    /// mutex's holder; for a flag, semaphore, queue or condition the threads whose phases can end the wait,
    /// if there are at most eight. A thread that spins calls `sched_yield` once when it has said it. See
    /// [`SimConfig::hints`](crate::SimConfig::hints).
    #[serde(default)]
    pub hints: bool,
    /// When it ends, if it does not end by itself.
    #[serde(default, deserialize_with = "span::maybe")]
    pub until: Option<Nanos>,
    /// The longest time that a thread may wait for a CPU; longer is a violation, found at the next tick or at
    /// the kernel's next decision. See [`SimConfig::starvation`](crate::SimConfig::starvation).
    #[serde(default, deserialize_with = "span::maybe")]
    pub starvation: Option<Nanos>,
    /// The threads, in the order in which they are started.
    #[serde(default, rename = "thread")]
    pub threads: Vec<ThreadPlan>,
    /// Mutexes whose holders inherit from their waiters.
    #[serde(default)]
    pub inheriting_mutexes: Vec<String>,
    /// The capacity of queues in messages; 16 for a queue without an entry.
    #[serde(default)]
    pub queues: BTreeMap<String, usize>,
    /// The first value of semaphores; 0 for a semaphore without an entry.
    #[serde(default)]
    pub semaphores: BTreeMap<String, u64>,
    /// A limit on the CPU time of threads.
    #[serde(default)]
    pub quota: Option<QuotaPlan>,
    /// Changes of the machine from outside.
    #[serde(default, rename = "change")]
    pub changes: Vec<Change>,
    /// Disturbances, drawn from the seed.
    #[serde(default)]
    pub perturb: Perturb,
    /// Real code that runs beside the threads; its meaning is known to the code that runs the scenario.
    #[serde(default)]
    pub program: Option<toml::Table>,
}

/// Threads of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThreadPlan {
    /// Its name; copies get numbers.
    pub name: String,
    /// The program that it belongs to, with all threads that name the same one; else it is of the scenario's
    /// own program. What would help a thread may depend on it: it can only change its own program.
    #[serde(default)]
    pub process: Option<String>,
    /// The number of copies.
    #[serde(default = "once")]
    pub count: usize,
    /// Linux's discipline: fair, batch, idle, fifo, rr.
    #[serde(default)]
    pub discipline: DisciplineName,
    /// Linux: −20 to 19.
    #[serde(default)]
    pub nice: i8,
    /// Of tasks with fixed priority.
    #[serde(default)]
    pub priority: u8,
    /// The slice it asks for, or promises to use.
    #[serde(default, deserialize_with = "span::maybe")]
    pub slice: Option<Nanos>,
    /// ThreadX: its preemption-threshold.
    #[serde(default)]
    pub threshold: Option<u8>,
    /// Percentage slices.
    #[serde(default)]
    pub percent: Option<u8>,
    /// The CPUs it may run on; all if not given.
    #[serde(default, deserialize_with = "read::cpus")]
    pub cpus: Vec<u32>,
    /// When it begins.
    #[serde(default, deserialize_with = "span::maybe")]
    pub start: Option<Nanos>,
    /// How many times the phases are run.
    #[serde(default)]
    pub repeat: Repeat,
    /// Its phases.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// Instead of phases: what it does once, in this order.
    #[serde(default)]
    pub segments: Segments,
}

fn once() -> usize {
    1
}

/// A discipline as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineName {
    /// `SCHED_OTHER`.
    #[default]
    Fair,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
}

/// A number of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Repeat {
    /// This many times.
    Times(u64),
    /// Until the scenario is over.
    Word(Forever),
}

/// The word for endless repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forever {
    /// Until the scenario is over.
    Forever,
}

impl Default for Repeat {
    fn default() -> Repeat {
        Repeat::Times(1)
    }
}

/// One thing a thread does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It works for this long, as measured on the machine's fastest CPU.
    Work(Span),
    /// It sleeps.
    Sleep(Span),
    /// It sleeps until the next multiple of this time since it began.
    Period(Span),
    /// It takes a mutex.
    Lock(String),
    /// It gives it back.
    Unlock(String),
    /// It sends a message to a queue.
    Send(String),
    /// It takes a message from a queue.
    Receive(String),
    /// It counts a semaphore up.
    Post(String),
    /// It counts a semaphore down, waiting while it is zero.
    Take(String),
    /// It counts a flag up.
    Set(String),
    /// It waits until a flag has been counted up once more than the number of its waits for the flag so far.
    Wait {
        /// The flag.
        flag: String,
        /// How it waits.
        by: WaitKind,
    },
    /// It keeps its CPU busy until this much time has passed, however fast the CPU is, and even if other
    /// threads had it meanwhile.
    Spin(Span),
    /// It sleeps until a timer rings, and restarts the timer at once: the timer rings `period` after it last
    /// rang. A timer that was never used counts as having rung when the thread began.
    Timer {
        /// The timer.
        name: String,
        /// The time between two rings.
        period: Span,
        /// Whether a timer that should have rung already counts from the time of that ring. Otherwise it
        /// counts from the time it was looked at, and one delay delays all rings after it.
        #[serde(default)]
        absolute: bool,
        /// Whether all threads use the same timer of this name; if not, each has its own.
        #[serde(default)]
        shared: bool,
    },
    /// It waits until all threads that have this barrier among their phases have come there.
    Barrier(String),
    /// It sleeps until a condition is signalled; a signal without a waiter is lost.
    Await {
        /// The condition.
        condition: String,
        /// A mutex that it holds: given back meanwhile.
        #[serde(default)]
        mutex: Option<String>,
    },
    /// It wakes the thread that has waited longest for a condition.
    Signal(String),
    /// It wakes all threads that wait for a condition.
    Broadcast(String),
    /// It calls `sched_yield`.
    Yield,
    /// A measured stretch of time begins.
    Begin(String),
    /// It ends.
    End(String),
    /// Phases, several times.
    Repeat {
        /// The number of repetitions.
        times: u64,
        /// The phases.
        phases: Vec<Phase>,
    },
}

/// How a thread waits for a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// It looks again and again.
    Spin,
    /// It calls `sched_yield` between two looks.
    Yield,
    /// It sleeps until it is woken.
    Park,
}

/// A scenario that cannot be read, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScenario(pub String);

impl fmt::Display for BadScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadScenario {}

impl Scenario {
    /// Whether the policy of this configuration takes all threads that are there when time begins.
    ///
    /// # Errors
    /// The policy, the thread that it refuses, and the reason, in one line.
    ///
    /// # Panics
    /// If there is no policy of that name.
    pub fn is_admitted(&self, config: &SimConfig) -> Result<(), BadScenario> {
        let mut class = config.class();
        class.set_cpus(config.machine.cpus.len());
        let plans = self.threads.iter();
        let planned =
            plans.flat_map(|plan| (0..plan.count).map(|copy| (plan.name_of(copy), plan.attr())));
        let main = self.program.as_ref();
        let main = main.map(|_| (MAIN.to_owned(), Attr::default()));
        for (number, (name, attr)) in planned.chain(main).enumerate() {
            admits(&*class, &name, &attr)
                .map_err(|why| BadScenario(format!("scenario {}: {why}", self.name)))?;
            class.add(task(number), &attr);
        }
        Ok(())
    }
}

impl ThreadPlan {
    /// The name of this copy of the thread.
    pub(super) fn name_of(&self, copy: usize) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{} {copy}", self.name),
        }
    }

    /// The attributes that the thread asks the scheduler for.
    pub fn attr(&self) -> Attr {
        Attr {
            discipline: match self.discipline {
                DisciplineName::Fair => Discipline::Fair,
                DisciplineName::Batch => Discipline::Batch,
                DisciplineName::Idle => Discipline::Idle,
                DisciplineName::Fifo => Discipline::Fifo,
                DisciplineName::Rr => Discipline::RoundRobin,
            },
            nice: self.nice,
            priority: self.priority,
            slice: self.slice,
            threshold: self.threshold,
            percent: self.percent,
        }
    }
}
