//! A wish for the kernel's help, and whom it was granted to: all who adopted and all workers, or nobody.

use event::Nanos;
use platform::{Class, Machine, Platform, SchedParams, SchedParamsError};

use crate::adapt::words::WorkerWords;
use crate::adapt::workers::Workers;

/// A thread whose scheduling parameters were changed.
struct Helped {
    thread: u64,
    /// Workers: their index.
    worker: Option<usize>,
    /// How to undo it.
    undo: SchedParams,
}

/// One wish and what became of it.
pub(super) struct Wish {
    pub(super) asked: SchedParams,
    /// The parameters that are set for it.
    params: SchedParams,
    pub(super) refused: Option<String>,
    helped: Vec<Helped>,
}

impl Wish {
    /// `slice`: what a thread of ordinary share is to have, if nobody wished for another one.
    pub(super) fn new(asked: SchedParams, slice: Option<Nanos>) -> Wish {
        let mut params = asked.clone();
        params.slice = asked.slice.or_else(|| fitting_slice(asked.class?, slice?));
        Wish {
            asked,
            params,
            refused: None,
            helped: Vec::new(),
        }
    }

    /// How many threads have parameters to be undone.
    #[cfg(test)]
    pub(super) fn helped(&self) -> usize {
        self.helped.len()
    }

    /// The worker with this index ends.
    pub(super) fn forget(&mut self, worker: usize) {
        self.helped.retain(|helped| helped.worker != Some(worker));
    }

    /// A thread that had adopted ends.
    pub(super) fn forget_adopted(&mut self, thread: u64) {
        self.helped
            .retain(|helped| helped.worker.is_some() || helped.thread != thread);
    }

    /// Notes what the system said about a thread. Refused: it is undone for all. Not under the roster's lock.
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

    /// Does it for the calling thread, unless it was refused before.
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

    /// Does it for the calling thread, a worker that has just come. Whoever started it may have had help, and
    /// the kernel then begins it as most threads are: what it goes back to is what the other workers were.
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

    /// The latest first: what was there before all of it is what remains.
    pub(super) fn undo_all<P: Platform>(&mut self, workers: &impl Workers<P>) {
        while let Some(helped) = self.helped.pop() {
            helped.undo(workers);
        }
    }

    /// The latest of a thread that had adopted.
    pub(super) fn undo_last_of<P: Platform>(&mut self, workers: &impl Workers<P>, thread: u64) {
        let is_its = |helped: &Helped| helped.worker.is_none() && helped.thread == thread;
        if let Some(last) = self.helped.iter().rposition(is_its) {
            self.helped.remove(last).undo(workers);
        }
    }
}

/// The slice for a thread with a larger share than others: larger by as much. For kernels count a slice in
/// time weighed by shares. Where an ordinary thread comes to its turn soon enough with a short slice, one
/// with nine times the share still does with nine times the slice; with the short one it would lose its CPU
/// at the first tick, for as long as others run between two ticks, although they get a ninth.
fn fitting_slice(class: Class, slice: Nanos) -> Option<Nanos> {
    /// What a step of niceness is worth, 1.25 (sched(7)), and how many there are.
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
            // Refused: then nobody may do it, and the thread keeps what it has.
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

    /// Goal: who is granted a larger share gets a slice that is larger by as much, nobody else gets any, and
    /// what was wished for stays. Method: classes beside what is done for them.
    #[test]
    fn slices_fit_shares() {
        let slice = Nanos::from_micros(400);
        let done = |asked: SchedParams, slice| Wish::new(asked, slice).params.slice;
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
