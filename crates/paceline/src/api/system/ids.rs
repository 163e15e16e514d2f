//! Ids of jobs as 64 bits, which is all that a job system's own jobs need.

use platform::{Ordering, Platform};

use super::JobSystem;
use crate::error::{WaitError, or_panic};
use crate::store::{JobId, Ticket};
use crate::work::{Context, Shared};

impl<P: Platform> JobSystem<P> {
    /// The id as 64 bits, for a pointer or a word that another library keeps. They are never zero, and mean
    /// something to this job system alone. ([`JobId::to_bytes`] tells job systems apart.) It neither
    /// allocates nor blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let task = js.id_to_bits(js.schedule(|_| ()));
    /// js.wait(js.id_from_bits(task).expect("it was one of its jobs"));
    /// ```
    ///
    /// # Panics
    /// If the id belongs to another job system.
    #[inline]
    #[track_caller]
    pub fn id_to_bits(&self, id: impl Into<JobId>) -> u64 {
        self.shared.bits_of(id.into())
    }

    /// The id that [`id_to_bits`](JobSystem::id_to_bits) made these bits of. `None` if no job of this job
    /// system has had such an id yet. It neither allocates nor blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let id = js.schedule(|_| ());
    /// let bits = js.id_to_bits(id);
    /// assert_eq!(js.id_from_bits(bits), Some(id));
    /// assert_eq!(js.id_from_bits(0), None);
    /// assert_eq!(js.id_from_bits(u64::MAX), None);
    /// ```
    pub fn id_from_bits(&self, bits: u64) -> Option<JobId> {
        self.shared.id_of(bits)
    }
}

impl<P: Platform> Context<'_, P> {
    /// The id as 64 bits, as [`JobSystem::id_to_bits`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| {
    ///     let task = cx.id_to_bits(cx.schedule(|_| ()));
    ///     cx.wait(cx.id_from_bits(task).expect("it was one of its jobs"));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the id belongs to another job system.
    #[track_caller]
    pub fn id_to_bits(&self, id: impl Into<JobId>) -> u64 {
        self.shared.bits_of(id.into())
    }

    /// The id that [`id_to_bits`](Context::id_to_bits) made these bits of, as [`JobSystem::id_from_bits`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let none = js.enter(|cx| cx.id_from_bits(0));
    /// assert_eq!(none, None);
    /// ```
    pub fn id_from_bits(&self, bits: u64) -> Option<JobId> {
        self.shared.id_of(bits)
    }
}

impl<P: Platform> Shared<P> {
    #[track_caller]
    #[inline]
    fn bits_of(&self, id: JobId) -> u64 {
        if id.pool != self.id {
            is_foreign(id);
        }
        id.ticket().0
    }

    fn id_of(&self, bits: u64) -> Option<JobId> {
        let ticket = Ticket(bits);
        if ticket.generation() == 0 || !self.graph.slots.exists(ticket.index()) {
            return None;
        }
        // Relaxed: the id was made after its slot had this generation, if it is one.
        let last = self.slot(ticket).word(Ordering::Relaxed).generation;
        (ticket.generation() <= last).then(|| JobId::new(self.id, ticket))
    }
}

/// The panic about an id of another job system.
#[track_caller]
#[cold]
fn is_foreign(id: JobId) -> ! {
    or_panic(Err(WaitError::Foreign { id }))
}
