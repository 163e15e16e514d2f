//! [`Latch`]: an event that is over when it has been completed a number of times.

use std::fmt;
use std::sync::Arc;

use platform::{Atomic, Ordering, Platform};

use super::owner::Owner;
use crate::store::{JobId, Label};
use crate::work::Shared;

/// An event that counts, from [`JobSystem::latch`](crate::JobSystem::latch): its job is over when
/// [`complete_one`](Latch::complete_one) has been called as often as the latch counts.
///
/// Clones are of the same latch; a clone costs one read-modify-write. If the last one is dropped before the
/// latch is over, that is an error for waits for it ([`WaitError::Abandoned`]), and cancels the jobs that
/// depend on it, as for an [`Event`](crate::Event).
///
/// A part that fails before it completes leaves the latch open for as long as any clone lives. So drop your
/// own clone when the parts have theirs: the latch is abandoned with the last clone of the parts, instead of
/// never. Or have each part complete the latch when it is dropped, whatever happens.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let parts = js.latch("parts", 3);
/// let sum = js.job("sum").after(&parts).schedule(|_| println!("all parts are there"));
/// for _ in 0..3 {
///     let parts = parts.clone();
///     std::thread::spawn(move || parts.complete_one());
/// }
/// js.wait(sum);
/// ```
///
/// [`WaitError::Abandoned`]: crate::WaitError::Abandoned
#[derive(Clone)]
#[must_use = "dropping a latch uncompleted cancels what depends on it"]
pub struct Latch {
    count: Arc<dyn LatchCount>,
    id: JobId,
    label: Label,
}

impl Latch {
    /// The latch over a new event. It takes the place of the event's handle.
    pub(crate) fn new<P: Platform>(
        owner: Arc<Shared<P>>,
        id: JobId,
        label: Label,
        count: usize,
    ) -> Latch {
        let count = (count as u64).min(COUNT_MAX);
        if count == 0 {
            owner.end_event(id.ticket(), Some(&mut Some(())));
        }
        let count = P::AtomicU64::new(count);
        let count = Arc::new(Countdown { count, owner, id });
        Latch { count, id, label }
    }

    /// The job that is over when the latch is.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts = js.latch("parts", 1);
    /// assert!(!js.is_done(parts.id()));
    /// parts.complete_one();
    /// assert!(js.is_done(parts.id()));
    /// ```
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Counts down by one. The call that brings the count to zero completes the job, as
    /// [`Event::complete`](crate::Event::complete) does; all others cost one read-modify-write. What the
    /// callers have done before is visible to all that comes after the job.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (parts, found) = (js.latch("parts", 2), js.job("found"));
    /// let found = found.after(&parts).run(|_| "both");
    /// js.join(|_| parts.complete_one(), |_| parts.complete_one());
    /// assert_eq!(found.wait(), "both");
    /// ```
    ///
    /// # Panics
    /// If the latch is over: it has been completed more often than it counts.
    #[track_caller]
    pub fn complete_one(&self) {
        if !self.count.count_down() {
            panic!(
                "latch {} is over: it was completed more often than it counts",
                self.label
            );
        }
    }

    /// The latch is to be completed `more` times more. A thread that still owes the latch a completion can
    /// always call this.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let found = js.latch("found", 1);
    /// for _ in 0..3 {
    ///     found.add(1);
    ///     let found = found.clone();
    ///     js.schedule(move |_| found.complete_one());
    /// }
    /// found.complete_one(); // That of the loop itself: from here on the latch can be over.
    /// js.wait(&found);
    /// ```
    ///
    /// # Panics
    /// If the latch is over.
    #[track_caller]
    pub fn add(&self, more: usize) {
        if !self.count.add(more as u64) {
            panic!(
                "latch {} is over: it can count more only before that",
                self.label
            );
        }
    }
}

impl From<&Latch> for JobId {
    fn from(latch: &Latch) -> JobId {
        latch.id()
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Latch({:?})", self.id)
    }
}

/// No program completes a latch so often. Every number above is a count below zero.
const COUNT_MAX: u64 = 1 << 62;

/// The count of a latch, without its platform.
trait LatchCount: Send + Sync {
    /// False if the latch is over.
    fn count_down(&self) -> bool;
    /// The same.
    fn add(&self, more: u64) -> bool;
}

/// How often a latch has yet to be completed, and what happens then.
struct Countdown<P: Platform> {
    /// Zero, or above [`COUNT_MAX`]: the latch is over.
    count: P::AtomicU64,
    owner: Arc<Shared<P>>,
    id: JobId,
}

fn is_over(count: u64) -> bool {
    count == 0 || count > COUNT_MAX
}

impl<P: Platform> LatchCount for Countdown<P> {
    fn count_down(&self) -> bool {
        // AcqRel, partner: the same by the others: the last one has acquired what they did before, and the
        // end of the event releases it.
        let before = self.count.fetch_sub(1, Ordering::AcqRel);
        if before == 1 {
            self.owner.end_event(self.id.ticket(), Some(&mut Some(())));
        }
        !is_over(before)
    }

    fn add(&self, more: u64) -> bool {
        // Relaxed, all: the count orders nothing but its own end.
        let mut count = self.count.load(Ordering::Relaxed);
        loop {
            if is_over(count) {
                return false;
            }
            let new = count.saturating_add(more).min(COUNT_MAX);
            let (order, word) = (Ordering::Relaxed, &self.count);
            match word.compare_exchange(count, new, order, order) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
    }
}

impl<P: Platform> Drop for Countdown<P> {
    fn drop(&mut self) {
        // Relaxed: the last owner has acquired what the others did.
        if !is_over(self.count.load(Ordering::Relaxed)) {
            self.owner.end_event(self.id.ticket(), None);
        }
    }
}
