//! The report of a run that is over.

use std::sync::atomic::Ordering;

use super::engine::{Engine, Stop};
use super::life::Program;
use crate::kernel::{Control, TaskPhase};
use crate::report::{Blocked, On, Outcome, SimReport, ThreadReport, ThreadState};

impl Engine {
    /// The report of a run that is over.
    pub(crate) fn report(self) -> SimReport {
        let mut kernel = self.kernel.into_inner();
        let stop = self.stop.get().expect("the run is over");
        let blocked = |(thread, control): (usize, &Control)| {
            waits_for(control).map(|on| Blocked {
                thread,
                name: control.name.clone(),
                on,
                what: None,
            })
        };
        let outcome = match (self.first_panic.into_inner(), stop) {
            (Some((thread, message)), _) => Outcome::Panicked { thread, message },
            (None, Stop::AllEnded) => Outcome::Finished,
            (None, Stop::TimeUp) => Outcome::TimeUp,
            (None, Stop::StepLimit) => Outcome::StepLimit,
            (None, Stop::Deadlock) => {
                let tasks = kernel.tasks.iter().enumerate();
                Outcome::Deadlock(tasks.filter_map(blocked).collect())
            }
        };
        let now = kernel.now;
        // Relaxed: a number, nothing is published with it.
        self.shared.reached.store(now.0, Ordering::Relaxed);
        let programs = self.programs.into_inner();
        let thread = |(control, program): (&Control, &Program)| ThreadReport {
            name: control.name.clone(),
            steps: program.steps,
            charged: control.charged,
            worked: control.worked,
            began: control.began,
            ended: control.ended,
            spent: control.spent_until(now),
            voluntary: control.voluntary,
            involuntary: control.involuntary,
            stints: control.stints_until(now),
            state: match (waits_for(control), control.is_alive(), &program.panic) {
                (_, false, Some(message)) => ThreadState::Panicked(message.clone()),
                (_, false, None) => ThreadState::Ended,
                (Some(on), true, _) => ThreadState::Blocked(on),
                (None, true, _) => ThreadState::Runnable,
            },
            waits_for: None,
        };
        let threads = kernel.tasks.iter().zip(&programs).map(thread).collect();
        let (clusters, quota) = (kernel.usage(), kernel.quota_use());
        let (decisions, moved_lines) = (kernel.class.decisions(), kernel.lines.moved);
        let (trace_hash, events) = (kernel.trace.hash(), kernel.trace.events());
        let (trace, violation) = kernel.trace.into_parts();
        SimReport {
            outcome,
            steps: kernel.steps,
            schedule_hash: self.schedule_hash.get(),
            trace_hash,
            events,
            now,
            threads,
            clusters,
            quota,
            decisions,
            moved_lines,
            trace,
            violation,
            refused: self.refused.into_inner(),
            config: self.config,
        }
    }
}

/// What a thread waits for, asleep or not.
fn waits_for(control: &Control) -> Option<On> {
    match control.phase {
        TaskPhase::Blocked(on) => Some(on),
        TaskPhase::Ready | TaskPhase::Running => control.spins_on,
        TaskPhase::Throttled | TaskPhase::Ended => None,
    }
}
