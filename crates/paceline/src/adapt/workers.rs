//! A job system as adaptation sees it: its workers, and the thread that calls.
//!
//! The core implements both traits. Nothing in this folder knows contexts, thread slots or the shared
//! state.

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Ordering, Platform, SpawnError};

use super::AdaptLocal;
use super::words::{PlacedThread, WorkerWords};
use crate::stats::Counters;

/// The system refused a worker's thread.
#[derive(Debug)]
pub(crate) struct RefusedWorker {
    /// The number of regular workers before it, all of which have been started.
    pub(crate) before: usize,
    pub(crate) error: SpawnError,
}

/// The workers of a job system. A worker is identified by the index of its thread slot.
pub(crate) trait Workers<P: Platform> {
    /// The platform that they run on.
    fn platform(&self) -> &P;

    /// The machine below it.
    fn machine(&self) -> &P::Machine {
        self.platform().machine()
    }

    /// The number of threads that the job system knows, its own and others. Their indices are smaller.
    fn threads(&self) -> usize;

    /// The words of a thread of the job system's own. `None`: the thread is from outside.
    fn worker(&self, index: usize) -> Option<&WorkerWords<P>>;

    /// The time of the last wake-up that was sent to a thread, if the thread has not started yet.
    fn signalled(&self, index: usize) -> Option<Nanos>;

    /// A thread's counters.
    fn counters(&self, index: usize) -> &Counters<P>;

    /// The number of frames that have begun.
    fn frames(&self) -> u64;

    /// The number of workers at this moment.
    fn active(&self) -> usize;

    /// The number of regular workers wanted.
    fn target(&self) -> usize;

    /// From now on this number of regular workers is wanted. Changes nothing before
    /// [`fill`](Workers::fill).
    fn set_target(&self, workers: usize);

    /// Makes the number of regular workers the wanted one.
    ///
    /// # Errors
    /// The first refusal of the system, after which fewer workers run.
    fn fill(&self) -> Result<(), RefusedWorker>;

    /// Starts the workers that are missing. If the system refuses one, `settle` is to set a target that does
    /// not need it: those before it.
    ///
    /// # Errors
    /// The first refusal.
    fn fill_or_settle(&self, settle: impl Fn(RefusedWorker)) -> Result<(), SpawnError> {
        let mut first = Ok(());
        // Each round wants fewer of them.
        while let Err(refused) = self.fill() {
            if first.is_ok() {
                first = Err(refused.error.clone());
            }
            settle(refused);
        }
        first
    }

    /// The slice that workers ask the kernel for.
    fn slice(&self) -> Option<Nanos>;

    /// Whether a worker certainly has no work in its hands: it sleeps, or waits.
    fn is_at_rest(&self, index: usize) -> bool;

    /// Calls `f`. Meanwhile no worker can end, and no other one can begin in its place.
    fn while_they_live<R>(&self, f: impl FnOnce() -> R) -> R;

    /// Calls `with` with the mask that a worker's thread was started with or was given since, if any. The
    /// mask does not change meanwhile.
    fn with_given_mask(&self, index: usize, with: impl FnOnce(&CpuSet));

    /// The threads of all workers that have published their ids, each with the mask that it was given.
    fn placed(&self) -> Vec<PlacedThread>;

    /// Calls `with` with the id of a worker's thread. The thread does not end meanwhile. False if the
    /// worker has published none.
    fn with_thread(&self, words: &WorkerWords<P>, with: impl FnOnce(u64) -> bool) -> bool {
        // Relaxed: an id that is not zero was written by a thread that is alive, because the thread takes
        // it back under this lock before it ends.
        self.while_they_live(|| match words.thread.load(Ordering::Relaxed) {
            0 => false,
            thread => with(thread),
        })
    }

    /// All workers that have a thread slot. Some of them may have no thread at this moment.
    fn each(&self) -> impl Iterator<Item = (usize, &WorkerWords<P>)> {
        (0..self.threads()).filter_map(|index| Some((index, self.worker(index)?)))
    }
}

/// The thread that calls: a thread that is inside the job system.
pub(crate) trait Caller<P: Platform> {
    /// The job system's workers.
    type Workers: Workers<P>;

    /// The job system's workers.
    fn workers(&self) -> &Self::Workers;

    /// This thread's index.
    fn index(&self) -> usize;

    /// This thread's words, if it is a worker.
    fn words(&self) -> Option<&WorkerWords<P>> {
        self.workers().worker(self.index())
    }

    /// Calls `f` with this thread's memory. `f` does not come back here.
    fn local<R>(&self, f: impl FnOnce(&mut AdaptLocal) -> R) -> R;

    /// This thread's counters.
    fn counters(&self) -> &Counters<P>;

    /// Records an event. `job`: a number that is recorded in the place of a job.
    fn note(&self, kind: EventKind, job: u64, arg: u64);

    /// Wakes a worker that sleeps, if there is one; a slow worker if there is a choice.
    fn wake_one(&self);
}
