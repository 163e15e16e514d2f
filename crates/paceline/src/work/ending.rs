//! How far the end of a job system is. The steps of the end are in `shutdown`.
//!
//! # The word
//!
//! `visits so far 41 | visits under way 20 | over | claimed | deferred`.
//!
//! A handle outlives the job system, and can schedule a successor of its job. Such a call is a *visit*. The
//! end waits for visits that have begun, and runs what they scheduled. From the moment on at which it is over
//! there are no more. So a job is either seen by the end, or never made:
//!
//! ```text
//! visit                                   end
//! E  begins: adds one to both counts      L  looks at the word: no visit under way
//!    was over: refused                       looks at all jobs, and runs them
//! P  publishes a job                      O  over, if the word is the same
//! D  ends: subtracts one                     else once more
//! ```
//!
//! If E comes before O, the word has changed, unless E and D come before L; then L has acquired P from D.

use platform::{Atomic, Memory, Ordering};

/// How far the end is, and whether a thread has yet to carry it out.
pub(crate) struct EndOfSystem<M: Memory>(M::AtomicU64);

/// A call by a handle that may outlive the job system. It is under way until this is dropped.
pub(crate) struct Visit<'e, M: Memory>(&'e EndOfSystem<M>);

impl<M: Memory> EndOfSystem<M> {
    /// The owner is gone, and could not end the job system.
    const DEFERRED: u64 = 1;
    /// A thread ends it, or has done so.
    const CLAIMED: u64 = 1 << 1;
    /// It has ended.
    const OVER: u64 = 1 << 2;
    /// One visit that is under way.
    const UNDER_WAY: u64 = 1 << 3;
    /// One visit.
    const VISIT: u64 = 1 << 23;

    pub(crate) fn new() -> EndOfSystem<M> {
        EndOfSystem(M::AtomicU64::new(0))
    }

    pub(super) fn defer(&self) {
        // Relaxed: ordered by the caller's fence.
        self.0
            .fetch_or(EndOfSystem::<M>::DEFERRED, Ordering::Relaxed);
    }

    /// Whether a thread has yet to end the job system.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let both = EndOfSystem::<M>::DEFERRED | EndOfSystem::<M>::CLAIMED;
        // Relaxed: ordered by the caller's fence, or a hint.
        self.0.load(Ordering::Relaxed) & both == EndOfSystem::<M>::DEFERRED
    }

    /// Whether the caller is the thread that ends it.
    pub(super) fn claim(&self) -> bool {
        // Relaxed: it only decides which thread ends it.
        let before = self
            .0
            .fetch_or(EndOfSystem::<M>::CLAIMED, Ordering::Relaxed);
        before & EndOfSystem::<M>::CLAIMED == 0
    }

    /// Begins a visit. `None`: the job system has ended.
    pub(crate) fn visit(&self) -> Option<Visit<'_, M>> {
        let one = EndOfSystem::<M>::VISIT + EndOfSystem::<M>::UNDER_WAY;
        let visit = Visit(self);
        // Relaxed: the order of the word's changes decides (E and O above).
        let before = self.0.fetch_add(one, Ordering::Relaxed);
        (before & EndOfSystem::<M>::OVER == 0).then_some(visit)
    }

    /// The word, before a look at all jobs.
    pub(crate) fn before_last_look(&self) -> u64 {
        // Acquire, partner: the Release in the drop of a visit (L and D above).
        self.0.load(Ordering::Acquire)
    }

    /// Whether no visit was under way.
    pub(crate) fn is_alone(before: u64) -> bool {
        before % EndOfSystem::<M>::VISIT < EndOfSystem::<M>::UNDER_WAY
    }

    /// The look at all jobs has found nothing: the job system has ended, if there was no visit since the word
    /// was `before`.
    pub(crate) fn is_over(&self, before: u64) -> bool {
        let (over, relaxed) = (before | EndOfSystem::<M>::OVER, Ordering::Relaxed);
        // Relaxed: see `visit`.
        EndOfSystem::<M>::is_alone(before)
            && self
                .0
                .compare_exchange(before, over, relaxed, relaxed)
                .is_ok()
    }
}

impl<M: Memory> Drop for Visit<'_, M> {
    fn drop(&mut self) {
        // Release, partner: the Acquire in `before_last_look`.
        self.0
            .0
            .fetch_sub(EndOfSystem::<M>::UNDER_WAY, Ordering::Release);
    }
}
