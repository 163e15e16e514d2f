//! The contents of a scenario file, and whether they make sense.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use event::Nanos;
use policy::{Attr, Discipline};
use serde::Deserialize;

use super::changes::Change;
use super::quota::QuotaPlan;
use super::segments::Segments;
use super::span::{self, Span};
use crate::kernel::{admits, task};
use crate::{Perturb, SimConfig};

/// The thread of a scenario's program.
pub(super) const MAIN: &str = "main";

/// The largest number of threads of a scenario, and of phases of a thread.
const THREADS_MAX: usize = 4096;
const PHASES_MAX: usize = 10_000;
/// How deep repeated phases may be nested.
const DEPTH_MAX: usize = 8;

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
    #[serde(default)]
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
    /// Reads the text of a scenario. `name`: the name in errors, and of a scenario that gives none.
    ///
    /// # Errors
    /// If the text is no TOML, has unknown keys, or asks for something that makes no sense.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, BadScenario> {
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| 1 + text[..span.start].matches('\n').count());
            let place = line.map_or(String::new(), |line| format!(" line {line}:"));
            let what = error.message().replace('\n', " ");
            BadScenario(format!("scenario {name}:{place} {what}"))
        })?;
        if scenario.name.is_empty() {
            scenario.name = name.to_owned();
        }
        match scenario.check() {
            Ok(()) => Ok(scenario),
            Err(what) => Err(BadScenario(format!("scenario {name}: {what}"))),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.threads.is_empty() && self.program.is_none() {
            return Err("there is neither a [[thread]] nor a [program]".into());
        }
        let threads: usize = self.threads.iter().map(|thread| thread.count).sum();
        if threads > THREADS_MAX {
            return Err(format!(
                "{threads} threads are too many: at most {THREADS_MAX}"
            ));
        }
        for thread in &self.threads {
            let of = |what: String| format!("thread {:?}: {what}", thread.name);
            thread.check().map_err(of)?;
            if thread.repeat == Repeat::Word(Forever::Forever) && self.until.is_none() {
                return Err(of(
                    "it repeats for ever: say `until` when the scenario is over".into(),
                ));
            }
        }
        self.check_names()?;
        if let Some(quota) = &self.quota {
            quota.check(self)?;
        }
        self.perturb.check()?;
        self.changes.iter().try_for_each(Change::check)
    }

    /// Whether the threads exist that segments name, each once.
    fn check_names(&self) -> Result<(), String> {
        if self.threads.iter().all(|plan| plan.segments.is_empty()) {
            return Ok(());
        }
        let plans = self.threads.iter();
        let names = plans.flat_map(|plan| (0..plan.count).map(|copy| plan.name_of(copy)));
        let mut known = BTreeSet::new();
        for name in names {
            if let Some(twice) = known.replace(name) {
                return Err(format!(
                    "two threads are called {twice:?}, and segments name threads"
                ));
            }
        }
        for plan in &self.threads {
            if let Some(name) = plan.segments.names().find(|name| !known.contains(&***name)) {
                let of = &plan.name;
                return Err(format!(
                    "thread {of:?}: its segments name {name:?}, which is no thread"
                ));
            }
        }
        Ok(())
    }

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

    fn check(&self) -> Result<(), String> {
        if !(-20..=19).contains(&self.nice) {
            return Err(format!("nice {}: give -20 to 19", self.nice));
        }
        if self.attr().discipline.is_realtime() && !(1..=99).contains(&self.priority) {
            return Err(format!("priority {}: give 1 to 99", self.priority));
        }
        if !self.segments.is_empty() {
            return match (self.count, self.phases.as_slice(), self.repeat) {
                (1, [], Repeat::Times(1)) => Ok(()),
                _ => Err("it has segments: leave out count, phases and repeat".into()),
            };
        }
        if self.count == 0 || self.phases.is_empty() {
            return Err("it does nothing: give a count and phases".into());
        }
        match self.repeat {
            Repeat::Word(Forever::Forever) if !self.phases.iter().any(takes_time) => {
                return Err("it repeats for ever and nothing it does takes time".into());
            }
            Repeat::Times(times) => check_repeat(times, &self.phases)?,
            Repeat::Word(_) => {}
        }
        let mut count = 0;
        check_phases(&self.phases, 0, &mut count)
    }
}

/// Whether time passes in it, whatever the costs of the machine.
fn takes_time(phase: &Phase) -> bool {
    match phase {
        Phase::Work(span) | Phase::Sleep(span) | Phase::Period(span) | Phase::Spin(span) => {
            span.least > Nanos::ZERO
        }
        Phase::Timer { period, .. } => period.least > Nanos::ZERO,
        Phase::Receive(_) | Phase::Take(_) | Phase::Wait { .. } => true,
        Phase::Barrier(_) | Phase::Await { .. } => true,
        Phase::Repeat { times, phases } => *times > 0 && phases.iter().any(takes_time),
        _ => false,
    }
}

/// Whether phases that take no time are repeated so often that the run would practically never end.
fn check_repeat(times: u64, phases: &[Phase]) -> Result<(), String> {
    const TIMELESS_MAX: u64 = 1_000_000;
    if times > TIMELESS_MAX && !phases.iter().any(takes_time) {
        return Err(format!(
            "it repeats phases that take no time {times} times: at most {TIMELESS_MAX}"
        ));
    }
    Ok(())
}

fn check_phases(phases: &[Phase], depth: usize, count: &mut usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("phases are repeated more than {DEPTH_MAX} deep"));
    }
    for phase in phases {
        *count += 1;
        if *count > PHASES_MAX {
            return Err(format!("more than {PHASES_MAX} phases"));
        }
        match phase {
            Phase::Repeat { times, phases } => {
                check_repeat(*times, phases)?;
                check_phases(phases, depth + 1, count)?;
            }
            Phase::Period(span) | Phase::Timer { period: span, .. }
                if span.least == Nanos::ZERO || span.least != span.most =>
            {
                return Err("a period is one length of time, and more than nothing".into());
            }
            _ => {}
        }
    }
    Ok(())
}
