//! What the lanes of a job system need beside the deques.

use platform::{Atomic, Lane, Memory, Ordering, Padded};

use crate::queues::Injector;

/// There has been a background job.
const BACKGROUND_USED: u32 = 1;
/// There has been a frame job.
const FRAME_USED: u32 = 2;

/// What the lanes need beside the deques.
pub(crate) struct Lanes<M: Memory> {
    /// The lanes besides the normal one that were ever used: [`BACKGROUND_USED`], [`FRAME_USED`]. Every
    /// thread reads it for every job, and it is written twice at most.
    used: Padded<M::AtomicU32>,
    /// Frame jobs that are ready.
    pub(crate) front: Padded<Injector<M>>,
    /// Background jobs that are ready. Every thread that searches asks whether there are any, and nearly
    /// always there are none. So nothing that is written often may lie beside it.
    pub(crate) backlog: Padded<Injector<M>>,
}

impl<M: Memory> Lanes<M> {
    pub(crate) fn new() -> Lanes<M> {
        Lanes {
            used: Padded(M::AtomicU32::new(0)),
            front: Padded(Injector::new()),
            backlog: Padded(Injector::new()),
        }
    }

    /// Whether a wait may have to raise something.
    #[inline(always)]
    pub(crate) fn are_used(&self) -> bool {
        // Relaxed: a thread that raises has seen that there is something to raise, or is its maker. A thread
        // that sees it late is in the same race as for any queue.
        self.used.load(Ordering::Relaxed) != 0
    }

    /// Whether there has been a frame job, so that the front queue and raises to it matter.
    #[inline(always)]
    pub(crate) fn front_is_used(&self) -> bool {
        // Relaxed: as above.
        self.used.load(Ordering::Relaxed) & FRAME_USED != 0
    }

    /// Jobs of this lane are going to be made.
    pub(crate) fn note_use(&self, lane: Lane) {
        let used = match lane {
            Lane::Frame => FRAME_USED,
            Lane::Normal => return,
            Lane::Background => BACKGROUND_USED,
        };
        if self.used.load(Ordering::Relaxed) & used == 0 {
            self.used.fetch_or(used, Ordering::Relaxed);
        }
    }
}
