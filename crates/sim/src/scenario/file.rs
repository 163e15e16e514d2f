//! What a scenario file says, and whether it makes sense.

use std::collections::BTreeMap;
use std::fmt;

use event::Nanos;
use policy::{Attr, Discipline};
use serde::Deserialize;

use super::changes::Change;
use super::quota::QuotaPlan;
use super::span::{self, Span};
use crate::kernel::{admits, task};
use crate::{Perturb, SimConfig};

/// The thread of a scenario's program.
pub(super) const MAIN: &str = "main";

/// The most threads of a scenario, and the most phases of one.
const THREADS_MAX: usize = 4096;
const PHASES_MAX: usize = 10_000;
/// How deep phases are repeated inside of repeated ones.
const DEPTH_MAX: usize = 8;

/// A scenario. Names of mutexes, queues, semaphores, flags and barriers are those the phases use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What it is called; the file's name if the file does not say.
    #[serde(default)]
    pub name: String,
    /// What it shows, in a line.
    pub about: String,
    /// Where it is from.
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
    /// When it is over, if it does not end by itself.
    #[serde(default, deserialize_with = "span::maybe")]
    pub until: Option<Nanos>,
    /// How long a thread may wait for a CPU; longer is a violation, found at the next tick or when the kernel
    /// decides next. See [`SimConfig::starvation`](crate::SimConfig::starvation).
    #[serde(default, deserialize_with = "span::maybe")]
    pub starvation: Option<Nanos>,
    /// The threads, in the order in which they are started.
    #[serde(default, rename = "thread")]
    pub threads: Vec<ThreadPlan>,
    /// Mutexes whose holders inherit from those who wait.
    #[serde(default)]
    pub inheriting_mutexes: Vec<String>,
    /// How many messages a queue holds; 16 if it is not named here.
    #[serde(default)]
    pub queues: BTreeMap<String, usize>,
    /// Where a semaphore stands at the beginning; 0 if it is not named here.
    #[serde(default)]
    pub semaphores: BTreeMap<String, u64>,
    /// How much CPU time threads may use.
    #[serde(default)]
    pub quota: Option<QuotaPlan>,
    /// What happens to the machine from outside.
    #[serde(default, rename = "change")]
    pub changes: Vec<Change>,
    /// What is disturbed on purpose, drawn from the seed.
    #[serde(default)]
    pub perturb: Perturb,
    /// Real code that runs beside the threads; whoever runs the scenario knows what it means.
    #[serde(default)]
    pub program: Option<toml::Table>,
}

/// Threads of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThreadPlan {
    /// What it is called; copies get numbers.
    pub name: String,
    /// How many of them.
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
    /// ThreadX: who may preempt it.
    #[serde(default)]
    pub threshold: Option<u8>,
    /// Percentage slices.
    #[serde(default)]
    pub percent: Option<u8>,
    /// Where it may run; everywhere if not given.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// When it begins.
    #[serde(default, deserialize_with = "span::maybe")]
    pub start: Option<Nanos>,
    /// How often the phases are gone through.
    #[serde(default)]
    pub repeat: Repeat,
    /// What it does.
    pub phases: Vec<Phase>,
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

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Repeat {
    /// So often.
    Times(u64),
    /// Until the scenario is over.
    Word(Forever),
}

/// The word for it.
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
    /// It works; so long on the machine's fastest CPU.
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
    /// It counts a semaphore down.
    Take(String),
    /// It counts a flag up.
    Set(String),
    /// It waits until a flag has been counted up once more than it has waited for it already.
    Wait {
        /// Which flag.
        flag: String,
        /// How.
        by: WaitKind,
    },
    /// It keeps its CPU busy until so much time has passed, however fast the CPU is and whoever else had it
    /// meanwhile.
    Spin(Span),
    /// It sleeps until a timer rings that it starts again at once: `period` after the timer last rang. A
    /// timer that nobody has used yet counts as having rung when the thread began.
    Timer {
        /// Which timer.
        name: String,
        /// How long after it last rang.
        period: Span,
        /// Whether a timer that should have rung already counts from then on. If not, it counts from when it
        /// was looked at, and one delay delays all that follow.
        #[serde(default)]
        absolute: bool,
        /// Whether all threads use the same timer of this name; if not, each has its own.
        #[serde(default)]
        shared: bool,
    },
    /// It waits until all threads that have this barrier among their phases have come there.
    Barrier(String),
    /// It sleeps until somebody signals a condition; a signal nobody waits for is lost.
    Await {
        /// Which condition.
        condition: String,
        /// A mutex that it holds: given back meanwhile.
        #[serde(default)]
        mutex: Option<String>,
    },
    /// It wakes the one that has waited longest for a condition.
    Signal(String),
    /// It wakes all that wait for a condition.
    Broadcast(String),
    /// It calls `sched_yield`.
    Yield,
    /// Something begins that is measured.
    Begin(String),
    /// It ends.
    End(String),
    /// Phases, several times.
    Repeat {
        /// How often.
        times: u64,
        /// Which.
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
    /// What this text says. `name`: what it is called in errors, and if it does not say.
    ///
    /// # Errors
    /// If it is no TOML, has keys that are not known, or asks for what makes no sense.
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
        if let Some(quota) = &self.quota {
            quota.check(self)?;
        }
        self.perturb.check()?;
        self.changes.iter().try_for_each(Change::check)
    }

    /// Whether the policy of this configuration takes all threads that are there when time begins.
    ///
    /// # Errors
    /// Which policy refuses which thread, and why, in a line.
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
    /// What this copy of the thread is called.
    pub(super) fn name_of(&self, copy: usize) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{} {copy}", self.name),
        }
    }

    /// What the thread asks of the scheduler.
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

/// Whether phases that take no time are repeated so often that nobody would see the end.
fn check_repeat(times: u64, phases: &[Phase]) -> Result<(), String> {
    const TIMELESS_MAX: u64 = 1_000_000;
    if times > TIMELESS_MAX && !phases.iter().any(takes_time) {
        return Err(format!(
            "it repeats {times} times what takes no time: at most {TIMELESS_MAX}"
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
