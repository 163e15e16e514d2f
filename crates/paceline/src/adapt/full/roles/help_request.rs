//! A request for the kernel's help, and the threads that it was granted to: all threads with a role and all
//! workers, or no thread.

use event::Nanos;
use platform::{Class, Machine, Platform, SchedParams, SchedParamsError};

use crate::adapt::words::WorkerWords;
use crate::adapt::workers::Workers;

/// A thread whose scheduling parameters were changed.
struct Helped {
    thread: u64,
    /// Workers: their index.
    worker: Option<usize>,
    /// The parameters that undo it.
    undo: SchedParams,
}

/// One request and its outcome.
pub(super) struct HelpRequest {
    pub(super) asked: SchedParams,
    /// The parameters that are set to grant it.
    params: SchedParams,
    pub(super) refused: Option<String>,
    helped: Vec<Helped>,
}

impl HelpRequest {
    /// `slice`: the slice for a thread of ordinary share, if no other slice was requested.
    pub(super) fn new(asked: SchedParams, slice: Option<Nanos>) -> HelpRequest {
        let mut params = asked.clone();
        params.slice = asked.slice.or_else(|| fitting_slice(asked.class?, slice?));
        HelpRequest {
            asked,
            params,
            refused: None,
            helped: Vec::new(),
        }
    }

    /// The number of threads whose parameters are to be undone.
    #[cfg(test)]
    pub(super) fn helped(&self) -> usize {
        self.helped.len()
    }

    /// The worker with this index ends.
    pub(super) fn forget(&mut self, worker: usize) {
        self.helped.retain(|helped| helped.worker != Some(worker));
    }

    /// A thread that had adopted a role ends.
    pub(super) fn forget_adopted(&mut self, thread: u64) {
        self.helped
            .retain(|helped| helped.worker.is_some() || helped.thread != thread);
    }

    /// Notes the system's answer for a thread. If it is a refusal the request is undone for all threads.
    /// Not called under the lock of the workers' table.
    fn note<P: Platform>(
        &mut self,
        workers: &impl Workers<P>,
        (thread, worker): (u64, Option<usize>),
        answer: Result<SchedParams, SchedParamsError>,
    ) {
        match answer {
            Ok(undo) => self.helped.push(Helped {
                thread,
                worker,
                undo,
            }),
            Err(error) => {
                self.refused = Some(error.reason());
                self.undo_all(workers);
            }
        }
    }

    /// Grants the request to the calling thread, unless it was refused before.
    pub(super) fn grant_caller<P: Platform>(
        &mut self,
        workers: &impl Workers<P>,
        worker: Option<usize>,
    ) {
        if self.refused.is_none() {
            let thread = workers.platform().thread_id();
            let answer = workers.machine().set_sched_params(thread, &self.params);
            self.note(workers, (thread, worker), answer);
        }
    }

    /// Grants the request to the calling thread, a new worker. The thread that started it may have had
    /// help. Then the kernel begins the worker with usual parameters. So the worker goes back to the class
    /// that the other workers had.
    pub(super) fn grant_newcomer<P: Platform>(&mut self, workers: &impl Workers<P>, worker: usize) {
        let others = self.helped.iter().find(|helped| helped.worker.is_some());
        let class = others.map(|helped| helped.undo.class);
        self.grant_caller(workers, Some(worker));
        let own = self.helped.last_mut();
        let own = own.filter(|helped| helped.worker == Some(worker));
        if let (Some(own), Some(class)) = (own, class) {
            own.undo.class = class;
        }
    }

    pub(super) fn grant_worker<P: Platform>(
        &mut self,
        workers: &impl Workers<P>,
        worker: usize,
        words: &WorkerWords<P>,
    ) {
        if self.refused.is_some() {
            return;
        }
        let mut said = None;
        workers.with_thread(words, |thread| {
            said = Some((
                thread,
                workers.machine().set_sched_params(thread, &self.params),
            ));
            true
        });
        if let Some((thread, answer)) = said {
            self.note(workers, (thread, Some(worker)), answer);
        }
    }

    /// Undoes the latest grant first, so that the parameters from before all grants remain.
    pub(super) fn undo_all<P: Platform>(&mut self, workers: &impl Workers<P>) {
        while let Some(helped) = self.helped.pop() {
            helped.undo(workers);
        }
    }

    /// Undoes the latest grant to a thread that had adopted a role.
    pub(super) fn undo_last_of<P: Platform>(&mut self, workers: &impl Workers<P>, thread: u64) {
        let is_its = |helped: &Helped| helped.worker.is_none() && helped.thread == thread;
        if let Some(last) = self.helped.iter().rposition(is_its) {
            self.helped.remove(last).undo(workers);
        }
    }
}

/// The slice for a thread with a larger share than others: it is larger by as much, because kernels count a
/// slice in time weighed by shares. If an ordinary thread has its turn soon enough with a short slice, a
/// thread with nine times the share still has it with nine times the slice. With the short slice it would
/// lose its CPU at the first tick, for as long as others run between two ticks, although they get a ninth.
fn fitting_slice(class: Class, slice: Nanos) -> Option<Nanos> {
    /// The worth of a step of niceness, 1.25 (sched(7)), and the number of steps.
    const STEP: (u128, u128) = (5, 4);
    const STEPS: u32 = 20;
    match class {
        Class::Fair { nice } if nice < 0 => {
            let steps = u32::from(nice.unsigned_abs()).min(STEPS);
            let larger = u128::from(slice.0) * STEP.0.pow(steps) / STEP.1.pow(steps);
            Some(Nanos(larger.try_into().unwrap_or(u64::MAX)))
        }
        _ => None,
    }
}

impl Helped {
    fn undo<P: Platform>(&self, workers: &impl Workers<P>) {
        let undo = |thread: u64| {
            // Refused: then no thread may do it, and this one keeps its parameters.
            thread == self.thread
                && workers
                    .machine()
                    .set_sched_params(thread, &self.undo)
                    .is_ok()
        };
        let words = self.worker.and_then(|worker| workers.worker(worker));
        match words {
            Some(words) => workers.with_thread(words, undo),
            None => undo(self.thread),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thread that is granted a larger share gets a slice that is larger by as much, no other
    /// thread gets one, and a slice that was requested stays. Method: classes beside the slices for them.
    #[test]
    fn slices_fit_shares() {
        let slice = Nanos::from_micros(400);
        let done = |asked: SchedParams, slice| HelpRequest::new(asked, slice).params.slice;
        let micros = |nice| done(SchedParams::nice(nice), Some(slice)).map(|slice| slice.0 / 1_000);
        assert_eq!([0, 5].map(micros), [None; 2]);
        assert_eq!(
            [-1, -3, -10].map(micros),
            [Some(500), Some(781), Some(3_725)]
        );
        assert_eq!(done(SchedParams::round_robin(1), Some(slice)), None);
        assert_eq!(
            done(SchedParams::nice(-10), None),
            None,
            "the kernel's is wanted"
        );
        let other = Nanos::from_micros(300);
        assert_eq!(done(SchedParams::slice(other), Some(slice)), Some(other));
    }
}
