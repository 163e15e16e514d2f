//! The facts about a single worker: words that all threads may read, and reports.

use event::Nanos;
use platform::{Atomic, CpuSet, Memory, Ordering};

/// The ordinal of a worker without one: a spare.
pub(crate) const NO_ORDINAL: u32 = u32::MAX;

/// The words of a worker that all threads may read.
pub(crate) struct WorkerWords<M: Memory> {
    /// Its mask ([`Mask`]).
    pub(super) mask: M::AtomicU32,
    /// The platform's id of its thread, as long as the thread lives; 0: none.
    pub(super) thread: M::AtomicU64,
    /// A regular worker's number among these; else [`NO_ORDINAL`].
    pub(super) ordinal: M::AtomicU32,
}

impl<M: Memory> WorkerWords<M> {
    pub(crate) fn new() -> WorkerWords<M> {
        WorkerWords {
            mask: M::AtomicU32::new(Mask::Full as u32),
            thread: M::AtomicU64::new(0),
            ordinal: M::AtomicU32::new(NO_ORDINAL),
        }
    }

    /// A regular worker's number among these.
    pub(crate) fn ordinal(&self) -> u32 {
        // Relaxed: written before the worker's first thread is started.
        self.ordinal.load(Ordering::Relaxed)
    }

    /// Makes it the regular worker with this number. It has no thread yet.
    pub(crate) fn set_ordinal(&self, ordinal: u32) {
        self.ordinal.store(ordinal, Ordering::Relaxed);
    }

    /// Its thread, if the thread has published its id. `given`: the mask that the thread was given.
    pub(crate) fn placed(&self, given: &Option<CpuSet>) -> Option<PlacedThread> {
        // Relaxed: see `with_thread`.
        let thread = self.thread.load(Ordering::Relaxed);
        (thread != 0).then(|| PlacedThread {
            thread,
            given: given.clone(),
            is_steered: Mask::is_steered(self) || Mask::of(self) == Mask::HandedOver as u32,
        })
    }
}

/// The state of a worker's mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Mask {
    /// All CPUs that the process may use.
    Full = 0,
    /// One CPU is left out.
    Steered = 1,
    /// One CPU was left out, until a thread found that the worker took too long to start. The worker has
    /// not noticed yet.
    Restored = 2,
    /// One CPU was left out, until a waiter left that CPU to the worker, which had work in its hands. The
    /// worker has not noticed yet.
    Widened = 3,
    /// Only the CPU of the thread that has woken it, which rests since, until the worker runs.
    HandedOver = 4,
}

impl Mask {
    pub(super) fn of<M: Memory>(words: &WorkerWords<M>) -> u32 {
        // Relaxed: a hint.
        words.mask.load(Ordering::Relaxed)
    }

    /// Whether steering leaves out a CPU of the worker's mask.
    pub(super) fn is_steered<M: Memory>(words: &WorkerWords<M>) -> bool {
        Mask::of(words) == Mask::Steered as u32
    }

    pub(super) fn set<M: Memory>(self, words: &WorkerWords<M>) {
        // Relaxed: a hint for wakers; see `overdue`.
        words.mask.store(self as u32, Ordering::Relaxed);
    }
}

/// A thread, and the mask that it was given for its place, if any.
pub(crate) struct PlacedThread {
    pub(crate) thread: u64,
    pub(crate) given: Option<CpuSet>,
    /// Steering has left out CPUs of the mask.
    pub(crate) is_steered: bool,
}

/// The facts that a worker learns, when it runs again, about the wake-up that was sent to it.
pub(crate) struct WakeReport {
    /// When the worker ran again.
    pub(crate) at: Nanos,
    /// The time from the waker's decision until the worker ran.
    pub(crate) latency: Nanos,
    /// Whether the worker runs on the CPU that its waker ran on.
    pub(crate) colocated: bool,
    /// The CPU that the waker ran on.
    pub(crate) waker_cpu: Option<u32>,
}
