//! The jobs that a job which is being described comes after.

use platform::Platform;
use smallvec::SmallVec;

use crate::store::{JobId, Ticket};
use crate::work::Shared;

/// The predecessors of a job that is being described; the first eight without a heap allocation.
#[derive(Clone, Default)]
pub(super) struct Predecessors {
    pub(super) tickets: SmallVec<[Ticket; 8]>,
    /// Slots below this one are there: what the last look at their number has found.
    slots: u32,
    /// An id of another job system, if there was one.
    pub(super) foreign: Option<JobId>,
}

impl Predecessors {
    /// As [`Shared::ticket_of`], with one look at the number of slots for several ids.
    #[inline]
    pub(super) fn add<P: Platform>(&mut self, id: JobId, shared: &Shared<P>) {
        let ticket = id.ticket();
        if id.pool != shared.id {
            self.foreign = Some(id);
            return;
        }
        if ticket.index() >= self.slots {
            self.slots = shared.graph.slots.len();
        }
        if ticket.index() < self.slots {
            self.tickets.push(ticket);
        }
    }
}
