//! Whether the contents of a scenario make sense.

use std::collections::BTreeSet;

use event::Nanos;

use super::changes::Change;
use super::file::{Forever, Phase, Repeat, Scenario, ThreadPlan};
use super::held::Held;

/// The largest number of threads of a scenario, and of phases of a thread.
const THREADS_MAX: usize = 4096;
const PHASES_MAX: usize = 10_000;
/// How deep repeated phases may be nested.
const DEPTH_MAX: usize = 8;

impl Scenario {
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

    /// Whether threads only give back and end what they have.
    pub(super) fn check_held(&self) -> Result<(), String> {
        self.threads.iter().try_for_each(|thread| {
            let held = Held::default().check(thread.repeat.times(), &thread.phases);
            held.map_err(|what| format!("thread {:?}: {what}", thread.name))
        })
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
}

impl Repeat {
    /// The number of repetitions, as far as there is one.
    fn times(self) -> u64 {
        match self {
            Repeat::Times(times) => times,
            Repeat::Word(_) => u64::MAX,
        }
    }
}

impl ThreadPlan {
    fn check(&self) -> Result<(), String> {
        if !(-20..=19).contains(&self.nice) {
            return Err(format!("nice {}: give -20 to 19", self.nice));
        }
        if self.attr().discipline.is_realtime() && !(1..=99).contains(&self.priority) {
            return Err(format!("priority {}: give 1 to 99", self.priority));
        }
        if self
            .process
            .as_deref()
            .is_some_and(|name| name.trim().is_empty())
        {
            return Err("process: give it a name, or leave it out".into());
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
