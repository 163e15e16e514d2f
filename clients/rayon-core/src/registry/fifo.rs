//! Jobs that run in the order in which a thread made them, where a job system takes the newest first.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::Here;

/// A job that is nowhere else.
pub(crate) type BoxedJob = Box<dyn FnOnce(&Here) + Send>;

/// The jobs of one thread. For each there is a job of the job system, which runs the oldest of them: so the
/// first that is run is the first that was made, whatever the order in which they are taken.
#[derive(Default)]
pub(crate) struct JobFifo(Mutex<VecDeque<BoxedJob>>);

impl JobFifo {
    pub(crate) fn push(&self, job: BoxedJob) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push_back(job);
    }

    /// Runs the oldest one.
    pub(crate) fn run_oldest(&self, here: &Here) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = jobs.pop_front();
        drop(jobs);
        oldest.expect("there are as many jobs as calls")(here);
    }
}
