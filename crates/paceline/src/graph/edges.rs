//! Adding edges, when a job is scheduled and later.
//!
//! An edge P → J is a link in P's list, and one more in J's `pending`. The end of P closes its list with one
//! swap, which returns all links. To add a link is a CAS on the same word, which fails once the list is
//! closed. So an edge is either in the list that the finisher of P gets, or the thread that adds it knows
//! that P is already over. There is no third case.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};
use smallvec::SmallVec;

use super::{Driver, Graph, OnGraph};
use crate::error::{GraphError, ScheduleError};
use crate::queues::Queue;
use crate::store::{
    JobId, JobPhase, Link, Links, LinksWord, NIL, PLACES, PLACES_IN_SLOT, Preds, Slot, Ticket,
};

impl<'d, P: Platform, D: Driver<P>> OnGraph<'d, P, D> {
    /// The jobs of `after` that were not over a moment ago. The others get no link. So a job that comes late,
    /// after many predecessors, needs a block of links only for the few that are left. That matters because
    /// other threads have used the blocks.
    #[inline]
    pub(crate) fn not_over(self, job: Ticket, after: &[Ticket]) -> SmallVec<[Ticket; 8]> {
        // Each edge ends in a locked operation, behind which nothing is fetched. So all lines are fetched
        // now.
        for &pred in after {
            P::prefetch(&self.slot(pred).links);
        }
        let mut left = SmallVec::new();
        for &pred in after {
            // Acquire, partners: as in `hang`: if the list is closed, everything the job did is visible.
            let links = self.slot(pred).links.load(Ordering::Acquire);
            // An id that was made of bytes may be the one that this job has got since.
            if LinksWord(links).is_open_for(pred) && pred != job {
                left.push(pred);
            } else if self.failures.has(pred) {
                self.cancel(job, pred);
            }
        }
        left
    }

    /// Adds the edges of a job that its scheduler still holds back, and that no other thread knows. On an
    /// error the job is cancelled; it ends when the scheduler releases it. `held_by`: how many things besides
    /// the edges hold it back.
    pub(crate) fn add_edges(
        self,
        job: Ticket,
        slot: &Slot<P>,
        after: &[Ticket],
        held_by: u32,
        has_parent: bool,
    ) -> Result<(), ScheduleError> {
        // All edges are counted before the first is added, because the first predecessor may be over at once.
        // Release, partner: the CAS in `hold_back`: that the slot is another job's now.
        let count = held_by + after.len() as u32;
        slot.pending.store(count, Ordering::Release);
        let mut over = 0;
        let mut made = Ok(());
        for preds in after.chunks(PLACES) {
            match self.add_links(job, slot, preds, has_parent) {
                Ok(not_hung) => over += not_hung,
                Err(error) => {
                    over += preds.len() as u32;
                    slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
                    made = Err(error);
                }
            }
        }
        if over > 0 {
            // Relaxed: the scheduler's own count keeps it above zero.
            slot.pending.fetch_sub(over, Ordering::Relaxed);
        }
        made
    }

    /// Adds a block of edges. Returns how many of them lead from jobs that are already over.
    #[inline]
    fn add_links(
        self,
        job: Ticket,
        slot: &Slot<P>,
        preds: &[Ticket],
        has_parent: bool,
    ) -> Result<u32, ScheduleError> {
        let (number, block) = self.allocate_links()?;
        let first = Preds(slot.preds.load(Ordering::Relaxed));
        let in_slot = if first == Preds::NONE && !has_parent {
            PLACES_IN_SLOT
        } else {
            0
        };
        block.fill(preds, job.0, first.block());
        // Release, partner: the Acquire in `linked_preds`. A plain store is enough: no other thread knows the
        // job.
        slot.preds.store(first.and(number).0, Ordering::Release);
        let mut over = 0;
        for (place, &pred) in preds.iter().enumerate() {
            let hung = if place < in_slot {
                let link = Link::InSlot {
                    index: job.index(),
                    place,
                };
                self.hang(pred, link, |next| slot.set_next(place, next))
            } else {
                self.hang_in_block(pred, number, place, block)
            };
            if hung {
                self.driver.record(EventKind::Edge, job, pred.0);
                continue;
            }
            over += 1;
            if self.failures.has(pred) {
                self.cancel(job, pred);
            }
        }
        Ok(over)
    }

    pub(super) fn allocate_links(self) -> Result<(u32, &'d Links<P>), ScheduleError> {
        let links = &self.driver.jobs().links;
        let allocated = self.driver.local(|local| links.allocate(&mut local.links));
        allocated.ok_or(ScheduleError::TooManyEdges)
    }

    pub(crate) fn free_links(self, number: u32) {
        self.driver
            .local(|local| self.links.free(&mut local.links, number));
    }

    /// Gives back the links to the predecessors of a job that is over.
    pub(crate) fn free_preds(self, first: Preds) {
        if first.is_only() {
            return self.free_links(first.block());
        }
        let mut number = first.block();
        while number != NIL {
            let more = self.links.get(number).more.load(Ordering::Relaxed);
            self.free_links(number);
            number = more;
        }
    }

    /// Makes `job` wait for `after` as well, although it has been scheduled. Both jobs are of this job
    /// system. Without `after` it only looks whether the job could wait for more.
    ///
    /// # Errors
    /// If `job` has started, as scopes and runs of graphs always have, or if the edge closes a cycle.
    pub(crate) fn add_dependency(
        self,
        job: JobId,
        after: Option<Ticket>,
    ) -> Result<(), GraphError> {
        let ticket = job.ticket();
        let slot = self.slot(ticket);
        self.late_edges.store(1, Ordering::Relaxed);
        let too_late = || {
            let label = slot.label_of(ticket);
            let label = label.and_then(|number| self.labels.get(number));
            GraphError::TooLate { id: job, label }
        };
        if !self.hold_back(ticket, slot) {
            return Err(too_late());
        }
        // Relaxed: the job is held back.
        let flags = slot.flags.load(Ordering::Relaxed);
        let has_begun = flags & (Slot::<P>::WAS_POLLED | Slot::<P>::IS_SCOPE) != 0;
        let result = after.map_or(Ok(()), |after| {
            if has_begun {
                return Err(too_late());
            }
            if let Some(cycle) = self.path_to_ancestor(after, ticket) {
                return Err(GraphError::Cycle { cycle });
            }
            self.tell_scope(slot, &[after])
                .and_then(|()| self.add_late_edge(after, ticket, slot))
                .map_err(|_| GraphError::TooManyEdges)
        });
        self.release(ticket, 1, Queue::Own);
        self.finish_todo(Queue::Own);
        self.driver.publish(Queue::Own);
        result
    }

    /// Adds an edge to a job that the caller holds back. The edge has a count of its own: the predecessor may
    /// end, and take that count back, before the edge is in both lists.
    fn add_late_edge(self, pred: Ticket, job: Ticket, slot: &Slot<P>) -> Result<(), ScheduleError> {
        // Relaxed, as below: the caller's own count keeps it above zero.
        slot.pending.fetch_add(1, Ordering::Relaxed);
        let added = self.add_late_link(pred, job, slot);
        if let Ok(true) = added {
            self.driver.has_new_predecessor(job);
            return Ok(());
        }
        if added.is_ok() && self.failures.has(pred) {
            self.cancel(job, pred);
        }
        slot.pending.fetch_sub(1, Ordering::Relaxed);
        added.map(|_| ())
    }

    /// An event says which job is going to complete it. That job comes into the event's list of predecessors,
    /// along which waits, raises and searches for deadlocks go. It does not hold the event back, and does not
    /// know of it: the event waits for its completion in any case. `by`: none if that job is over.
    ///
    /// # Errors
    /// If it is no event, or there is no room for a link.
    pub(crate) fn is_completed_by(
        self,
        event: JobId,
        by: Option<Ticket>,
    ) -> Result<(), GraphError> {
        let ticket = event.ticket();
        let slot = self.slot(ticket);
        self.late_edges.store(1, Ordering::Relaxed);
        if !self.hold_back(ticket, slot) {
            return Ok(()); // It is complete, or never was there.
        }
        // Relaxed: the event is held back.
        let flags = slot.flags.load(Ordering::Relaxed);
        let is_open = flags & Slot::<P>::IS_OPEN_EVENT != 0;
        let by = by.filter(|&by| is_open && !self.slot(by).has_ended(by));
        let result = if flags & (Slot::<P>::HAS_BODY | Slot::<P>::IS_SCOPE) != 0 {
            Err(GraphError::NoEvent { id: event })
        } else {
            by.map_or(Ok(()), |by| self.note_completer(by, ticket, slot))
        };
        self.release(ticket, 1, Queue::Own);
        self.finish_todo(Queue::Own);
        self.driver.publish(Queue::Own);
        result
    }

    /// As [`add_late_link`](OnGraph::add_late_link), but the predecessor does not know of the event.
    fn note_completer(self, by: Ticket, event: Ticket, slot: &Slot<P>) -> Result<(), GraphError> {
        let links = self.allocate_links();
        let (number, block) = links.map_err(|_| GraphError::TooManyEdges)?;
        let first = slot.preds.load(Ordering::Relaxed);
        block.fill(&[by], event.0, Preds(first).block());
        put_before(slot, number, block, first);
        self.driver.has_new_predecessor(event);
        Ok(())
    }

    /// Tells the job's scope, if it has one, that it needs these jobs, too, as far as they are not the
    /// scope's own. The caller holds the job back, and so keeps the scope open.
    pub(crate) fn tell_scope(self, slot: &Slot<P>, after: &[Ticket]) -> Result<(), ScheduleError> {
        // Relaxed: these flags do not change, and the caller has acquired them with the job.
        let flags = slot.flags.load(Ordering::Relaxed);
        if flags & Slot::<P>::IN_SCOPE == 0 {
            return Ok(());
        }
        let scope = slot.parent(flags);
        for &pred in after {
            if self.parent_of(pred) != Some(scope) && !self.slot(pred).has_ended(pred) {
                self.needs(scope, pred)?;
                self.driver.has_new_predecessor(scope);
            }
        }
        Ok(())
    }

    /// A scope needs `pred`. That job is put into the scope's list of predecessors, along which waits and the
    /// search for deadlocks walk. It does not hold the scope back, and does not know of it: the scope's jobs
    /// do. Of jobs that are over, the places are used again, so that a scope may stay open for ever.
    pub(crate) fn needs(self, scope: Ticket, pred: Ticket) -> Result<(), ScheduleError> {
        let place = &self.slot(scope).place;
        self.add_need(scope, pred, Some(place))
    }

    /// The job that runs on this thread, if it is a future, awaits `pred`. Waits for the job then help with
    /// `pred`, too. (Searches for deadlocks do not go there: a future may await one of several things.)
    pub(crate) fn awaits(self, job: Ticket, pred: Ticket) {
        // Relaxed: the job runs on this thread.
        let flags = self.slot(job).flags.load(Ordering::Relaxed);
        if flags & Slot::<P>::IS_FUTURE != 0 {
            // Without a free link the job is only not helped.
            _ = self.add_need(job, pred, None);
        }
    }

    /// Puts `pred` into the list of predecessors of a job that it does not hold back. `next`: where the block
    /// is kept in which the next call begins to look for a place.
    fn add_need(
        self,
        job: Ticket,
        pred: Ticket,
        next: Option<&P::AtomicU32>,
    ) -> Result<(), ScheduleError> {
        /// How many blocks are looked at for a place. The next call goes on behind them. So the list is
        /// longer than it has to be by one part in this many at most.
        const BLOCKS_LOOKED_AT: u32 = 8;
        let slot = self.slot(job);
        // Relaxed: a hint. All blocks of the list stay in it until the job is over.
        let mut number = next.map_or(NIL, |next| next.load(Ordering::Relaxed));
        for looked_at in 0..BLOCKS_LOOKED_AT {
            if number >= NIL && (looked_at == 0 || next.is_some()) {
                // Acquire, partner: the Release CAS in `put_before`: the block.
                number = Preds(slot.preds.load(Ordering::Acquire)).block();
            }
            if number == NIL {
                break;
            }
            let block = self.links.get(number);
            let found = block.from.iter().any(|place| self.take_place(place, pred));
            if !found {
                number = block.more.load(Ordering::Relaxed);
            }
            if let Some(next) = next {
                next.store(number, Ordering::Relaxed);
            }
            if found {
                return Ok(());
            }
        }
        let (number, block) = self.allocate_links()?;
        let first = slot.preds.load(Ordering::Relaxed);
        block.fill(&[pred], job.0, Preds(first).block());
        put_before(slot, number, block, first);
        Ok(())
    }

    /// Writes `pred` to a place of a scope's links if the job there is over. True also if it is already
    /// there.
    fn take_place(self, place: &P::AtomicU64, pred: Ticket) -> bool {
        // Relaxed, all: a job that is over stays over, and both values are names of jobs that walks may see.
        let known = Ticket(place.load(Ordering::Relaxed));
        let is_free = known.is_none() || self.slot(known).has_ended(known);
        let (new, relaxed) = (pred.0, Ordering::Relaxed);
        known == pred
            || is_free
                && place
                    .compare_exchange(known.0, new, relaxed, relaxed)
                    .is_ok()
    }

    /// Adds the edge itself, in a block of its own. False if the predecessor is already over. Other threads
    /// may be adding edges to the same job.
    fn add_late_link(
        self,
        pred: Ticket,
        job: Ticket,
        slot: &Slot<P>,
    ) -> Result<bool, ScheduleError> {
        let (number, block) = self.allocate_links()?;
        let first = slot.preds.load(Ordering::Relaxed);
        block.fill(&[pred], job.0, Preds(first).block());
        if !self.hang_in_block(pred, number, 0, block) {
            self.free_links(number);
            return Ok(false);
        }
        put_before(slot, number, block, first);
        self.driver.record(EventKind::Edge, job, pred.0);
        Ok(true)
    }

    /// Counts one more thing that holds the job back. False if nothing holds it back any more.
    pub(super) fn hold_back(self, job: Ticket, slot: &Slot<P>) -> bool {
        // Acquire, partner: the Release stores of the state.
        let word = slot.word(Ordering::Acquire);
        if word.generation != job.generation() || word.phase != JobPhase::Waiting {
            return false;
        }
        let mut pending = slot.pending.load(Ordering::Relaxed);
        loop {
            if pending == 0 {
                return false;
            }
            // AcqRel, partners: the subtraction in `release`, with all of which this one is ordered; and the
            // Release stores of a new job's first count.
            let counted = slot.pending.compare_exchange(
                pending,
                pending + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match counted {
                Ok(_) => break,
                Err(now) => pending = now,
            }
        }
        // The slot may have moved on to another job since its state was read. Then this call holds back that
        // job, and has to release it properly. Acquire, partner: the Release stores of the state.
        let now = slot.word(Ordering::Acquire);
        if now.generation == job.generation() {
            return true;
        }
        self.release(Ticket::new(job.index(), now.generation), 1, Queue::Own);
        self.finish_todo(Queue::Own);
        self.driver.publish(Queue::Own);
        false
    }
}

impl<P: Platform> Graph<P> {
    /// Hangs a link into the list of `from`. False if that job is over.
    #[inline]
    fn hang(&self, from: Ticket, link: Link, set_next: impl Fn(u32)) -> bool {
        let slot = self.slot(from);
        // Acquire, partner: the swap in `close` and the Release store of `make`: if the list is closed,
        // everything the job did is visible.
        let mut head = LinksWord(slot.links.load(Ordering::Acquire));
        loop {
            if !head.is_open_for(from) {
                return false;
            }
            set_next(head.link());
            let new = LinksWord::new(from.generation(), link.pack());
            // Release, partner: the Acquire half of the swap in `close`; the link's fields.
            let swapped =
                slot.links
                    .compare_exchange(head.0, new.0, Ordering::Release, Ordering::Acquire);
            match swapped {
                Ok(_) => return true,
                Err(now) => head = LinksWord(now),
            }
        }
    }

    /// The same for a link in a block.
    #[inline]
    pub(crate) fn hang_in_block(
        &self,
        from: Ticket,
        number: u32,
        place: usize,
        block: &Links<P>,
    ) -> bool {
        let next = &block.next[place];
        // Relaxed: ordered by the CAS in `hang`.
        let set_next = |to| next.store(to, Ordering::Relaxed);
        self.hang(from, Link::InBlock { number, place }, set_next)
    }
}

/// Puts a block in front of a job's list of predecessors. Other threads may be doing the same. `first`: what
/// the block was filled for.
fn put_before<P: Platform>(slot: &Slot<P>, number: u32, block: &Links<P>, mut first: u32) {
    // Release, partner: the Acquire in `linked_preds`.
    let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
    let with = |first: u32| Preds(first).and(number).0;
    while let Err(now) = slot
        .preds
        .compare_exchange(first, with(first), release, relaxed)
    {
        first = now;
        // Release, partner: the fence in `Links::read`, as in `fill`.
        block.more.store(Preds(first).block(), release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    /// Goal: a job has links to its predecessors that are not over, and to no others. All links are given
    /// back when it ends, whether they fit a block or not. Method: jobs after some events that are complete
    /// and some that are not, over and over; checks the links they keep, and that the memory for links does
    /// not grow.
    #[test]
    fn only_what_is_not_over_has_links() {
        let js = Builder::small().workers(0).build().unwrap();
        let blocks = || js.enter(|cx| cx.graph().links.iter().count());
        let mut made = None;
        for _ in 0..if cfg!(miri) { 2 } else { 40 } {
            for (over, open) in [(0, 4), (3, 0), (3, 2), (2, 5), (1, 9)] {
                let events: Vec<_> = (0..over + open).map(|_| js.event("event")).collect();
                let ids: Vec<JobId> = events.iter().map(|event| event.id()).collect();
                let mut events = events.into_iter();
                events
                    .by_ref()
                    .take(over)
                    .for_each(|event| event.complete());
                let job = js.job("job").after_all(&ids).schedule(|_| ());
                js.enter(|cx| {
                    let slot = cx.shared.slot(job.ticket());
                    let preds = Preds(slot.preds.load(Ordering::Relaxed));
                    assert_eq!(preds == Preds::NONE, open == 0);
                    assert_eq!(preds.is_only(), (1..=PLACES).contains(&open));
                    let mut found = 0;
                    cx.graph()
                        .unfinished_preds(job.ticket(), &mut |_| found += 1);
                    assert_eq!(found, open);
                });
                for event in events {
                    event.complete();
                }
                js.wait(job);
            }
            assert_eq!(*made.get_or_insert_with(blocks), blocks());
        }
    }
}
