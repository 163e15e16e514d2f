//! How far the end of a job system is. The steps of the end are in `shutdown`.

use platform::{Atomic, Memory, Ordering};

/// How far the end is, and whether a thread has yet to carry it out.
pub(crate) struct EndOfSystem<M: Memory>(M::AtomicU32);

impl<M: Memory> EndOfSystem<M> {
    /// The owner is gone, and could not end the job system.
    const DEFERRED: u32 = 1;
    /// A thread ends it, or has done so.
    const CLAIMED: u32 = 1 << 1;

    pub(crate) fn new() -> EndOfSystem<M> {
        EndOfSystem(M::AtomicU32::new(0))
    }

    pub(super) fn defer(&self) {
        // Relaxed: ordered by the caller's fence.
        self.0
            .fetch_or(EndOfSystem::<M>::DEFERRED, Ordering::Relaxed);
    }

    /// Whether a thread has yet to end the job system.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // Relaxed: ordered by the caller's fence, or a hint.
        self.0.load(Ordering::Relaxed) == EndOfSystem::<M>::DEFERRED
    }

    /// Whether the caller is the thread that ends it.
    pub(super) fn claim(&self) -> bool {
        // Relaxed: it only decides which thread ends it.
        let before = self
            .0
            .fetch_or(EndOfSystem::<M>::CLAIMED, Ordering::Relaxed);
        before & EndOfSystem::<M>::CLAIMED == 0
    }
}
