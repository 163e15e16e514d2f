//! What adaptation sees of a job system: its workers, and the thread that asks or tells.
//!
//! The core implements both traits; nothing in this folder knows contexts, thread slots or the shared state.

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Ordering, Platform};

use super::local::Local;
use super::words::{PlacedThread, WorkerWords};
use crate::stats::Counters;

/// The workers of a job system. A worker is named by the index of its thread slot.
pub(crate) trait Workers<P: Platform> {
    /// The platform they run on.
    fn platform(&self) -> &P;

    /// The machine below it.
    fn machine(&self) -> &P::Machine {
        self.platform().machine()
    }

    /// How many threads the job system knows, its own and others: their indices are smaller.
    fn threads(&self) -> usize;

    /// A thread of the job system's own, or `None` for a thread from outside.
    fn worker(&self, index: usize) -> Option<&WorkerWords<P>>;

    /// When the last wake-up was sent to a thread, if it has not started yet.
    fn signalled(&self, index: usize) -> Option<Nanos>;

    /// What a thread has counted.
    fn counters(&self, index: usize) -> &Counters<P>;

    /// How many frames have begun.
    fn frames(&self) -> u64;

    /// How many workers there are at this moment.
    fn active(&self) -> usize;

    /// How many regular workers are wanted.
    fn target(&self) -> usize;

    /// So many regular workers are wanted from now on. Changes nothing before [`fill`](Workers::fill).
    fn set_target(&self, workers: usize);

    /// Makes the regular workers as many as are wanted.
    ///
    /// # Errors
    /// The first refusal of the system, after which fewer workers run.
    fn fill(&self) -> Result<(), platform::SpawnError>;

    /// Whether the machine has several last-level caches.
    fn has_many_caches(&self) -> bool;

    /// A CPU that stands for all that share a last-level cache with this one.
    fn cache_of(&self, cpu: u32) -> u32;

    /// The slice that workers ask the kernel for.
    fn slice(&self) -> Option<Nanos>;

    /// Whether a worker is certainly in the middle of nothing: it sleeps, or waits.
    fn is_at_rest(&self, index: usize) -> bool;

    /// Calls `f` while no worker can end, nor another one begin in its place.
    fn while_they_live<R>(&self, f: impl FnOnce() -> R) -> R;

    /// Calls `with` with the mask that a worker's thread was started with or given since, if any. It is not
    /// changed meanwhile.
    fn with_given_mask(&self, index: usize, with: impl FnOnce(&CpuSet));

    /// The threads of all workers that have told their names, and the masks that they were given.
    fn placed(&self) -> Vec<PlacedThread>;

    /// Calls `with` with the name of a worker's thread, which does not end meanwhile. False if it has none.
    fn with_thread(&self, words: &WorkerWords<P>, with: impl FnOnce(u64) -> bool) -> bool {
        // Relaxed: a name that is not zero was written by a thread that is alive, because it is taken
        // back under this lock before the thread ends.
        self.while_they_live(|| match words.thread.load(Ordering::Relaxed) {
            0 => false,
            thread => with(thread),
        })
    }

    /// The workers there are places for, some of which may have no thread at this moment.
    fn each(&self) -> impl Iterator<Item = (usize, &WorkerWords<P>)> {
        (0..self.threads()).filter_map(|index| Some((index, self.worker(index)?)))
    }
}

/// The thread that asks or tells: one that is inside the job system.
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

    /// Works on what this thread remembers. `f` does not come back here.
    fn local<R>(&self, f: impl FnOnce(&mut Local) -> R) -> R;

    /// This thread's counters.
    fn counters(&self) -> &Counters<P>;

    /// Records an event. `job`: a number that is recorded where a job would be.
    fn note(&self, kind: EventKind, job: u64, arg: u64);

    /// Wakes a worker that sleeps, if there is one, a slow one rather than others.
    fn wake_one(&self);
}
