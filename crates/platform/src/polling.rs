//! How naive loops wait, for experiments.

use crate::Platform;

/// A platform on which loops can wait naively: by looking at a word again and again.
///
/// For experiments with the ways in which programs wait, and for nothing else. The job system is not
/// generic over it: it spins by [`Memory::spin_until`](crate::Memory::spin_until) and blocks by
/// [`Parker`](crate::Parker).
pub trait Polling: Platform {
    /// One turn of a loop that looks at `word`: what the loop does between two looks. The caller looks,
    /// before and after. Costs what `kind` says; never blocks.
    ///
    /// A simulated machine needs to be told of the turn, or a loop that only looks would never let its time
    /// pass.
    fn poll(&self, kind: Poll, word: &Self::AtomicU64);
}

/// What a naive loop does between two looks at a word; see [`Polling::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Poll {
    /// Nothing: it looks again at once.
    Spin,
    /// The CPU's hint that this is a loop that waits (x86 `pause`, Arm `yield`). The thread keeps its CPU.
    Pause,
    /// It offers its CPU to other threads (`sched_yield`). What the kernel makes of the offer differs from
    /// one scheduler to the next.
    Yield,
}
