//! What happens when a job is over: its list is closed, and everybody on it is told.
//!
//! Successors, waiters and futures hang in the same list (see `edges` and `listen`). Finishing is
//! iterative: what has no body, and what was cancelled, is finished by the same loop, however long
//! the chain.
//!
//! Code of the program's runs in two places of it. A closure that will not be called is dropped before the
//! job is over. A result that nothing waits for is dropped, and the hook for unwaited panics called, when
//! everybody has been told: they may wait for this job, or for what comes after it.

use event::EventKind;
use platform::{Atomic, Ordering, Parker, Platform};

use crate::border::Payload;
use crate::context::{Context, Queue};
use crate::job::{Label, Link, LinksWord, Phase, Preds, Slot, StateWord, Ticket};
use crate::listen::Listener;
use crate::seat::Finished;
use crate::slab::NIL;

/// How a job ended.
pub(crate) enum Ending {
    Done,
    Panicked(Payload),
    /// A part of it panicked, which is on record already.
    PanicNoted,
    /// A failure is on record already; the body did not run.
    Cancelled,
}

impl Ending {
    pub(crate) fn code(&self) -> u64 {
        match self {
            Ending::Done => 0,
            Ending::Panicked(_) | Ending::PanicNoted => 1,
            Ending::Cancelled => 2,
        }
    }
}

/// What a job that is over leaves in its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// The slot can be used again.
    Nothing,
    /// A result that no handle will take.
    Result,
    /// What the handle will take, or leave.
    ToHandle,
}

impl<P: Platform> Context<'_, P> {
    /// One thing fewer holds the job back; makes it ready if that was the last.
    #[inline]
    pub(crate) fn release(&self, job: Ticket, amount: u32, queue: Queue) {
        let slot = self.shared.slot(job);
        // AcqRel, partner: the other releases of this job. Whoever brings it to zero sees what all
        // predecessors did and passes it on to the claimer.
        if slot.pending.fetch_sub(amount, Ordering::AcqRel) == amount {
            self.make_ready(job, slot, queue);
        }
    }

    /// Nothing holds the job back: queue it, or put it on the list of those to finish here.
    #[inline(always)]
    pub(crate) fn make_ready(&self, job: Ticket, slot: &Slot<P>, queue: Queue) {
        let flags = slot.flags.load(Ordering::Relaxed);
        if flags & Slot::<P>::HAS_BODY == 0 || flags & Slot::<P>::CANCELLED != 0 {
            self.own(|own| own.todo.push(job));
            return;
        }
        self.record(EventKind::Ready, job, 0);
        let ready = StateWord::new(job.generation(), Phase::Ready, 0).pack();
        // Release, partner: the Acquire CAS of the claim.
        slot.state.store(ready, Ordering::Release);
        if flags & Slot::<P>::IS_BACKGROUND != 0 {
            self.enqueue_in_backlog(job);
            return;
        }
        self.enqueue(job, queue);
    }

    /// Finishes everything on the list, and what becomes ready to be finished by that.
    pub(crate) fn finish_todo(&self, queue: Queue) {
        while let Some(job) = self.own(|own| own.todo.pop()) {
            let slot = self.shared.slot(job);
            let flags = slot.flags.load(Ordering::Relaxed);
            let cancelled = flags & Slot::<P>::CANCELLED != 0;
            if flags & Slot::<P>::HAS_BODY != 0 {
                self.discard_body(job, slot);
                self.seat.counters.cancelled.add(1);
            }
            let ending = if cancelled {
                Ending::Cancelled
            } else {
                Ending::Done
            };
            self.finish(job, slot, flags, ending, queue);
        }
    }

    /// Drops a closure that will not run, or of a range that is through. The caller has the job to itself.
    pub(crate) fn discard_body(&self, job: Ticket, slot: &Slot<P>) {
        // SAFETY: the job is not ready and never will be (or is being shut down, or its crew has left), so no
        // other thread touches table and body; both were filled by the scheduler, whose writes happened
        // before the release that brought us here.
        self.discard_held(job, || unsafe { slot.discard_body() });
    }

    /// The job is over: closes its list, lets the slot go and tells everybody. The caller has the
    /// job to itself; its body is gone.
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        job: Ticket,
        slot: &Slot<P>,
        flags: u32,
        ending: Ending,
        queue: Queue,
    ) {
        self.record(EventKind::Completed, job, ending.code());
        let parent = slot.parent(flags);
        let is_anonymous = flags & Slot::<P>::IS_ANONYMOUS != 0;
        if is_anonymous && matches!(ending, Ending::Done) {
            // It has no predecessors, and nobody can wait for it but its scope.
            self.recycle(job, slot);
        } else {
            self.finish_named(job, slot, flags, ending, queue);
        }
        if flags & Slot::<P>::IN_SCOPE != 0 {
            self.finished_in(parent, queue);
        }
    }

    #[inline]
    fn finish_named(&self, job: Ticket, slot: &Slot<P>, flags: u32, ending: Ending, queue: Queue) {
        match ending {
            Ending::Done => self.end_named(job, slot, flags, false, queue),
            failing => self.finish_failed(job, slot, flags, failing, queue),
        }
    }

    /// The same for a job that did not end well.
    #[cold]
    fn finish_failed(&self, job: Ticket, slot: &Slot<P>, flags: u32, ending: Ending, queue: Queue) {
        if let Ending::Panicked(payload) = ending {
            self.record_panic(job, slot, flags, payload);
        }
        let unheard = self.unheard_panic(job, self.audience(job, slot, flags));
        self.end_named(job, slot, flags, true, queue);
        if let Some(panic) = unheard {
            self.report(&panic);
        }
    }

    #[inline(always)]
    fn end_named(&self, job: Ticket, slot: &Slot<P>, flags: u32, failed: bool, queue: Queue) {
        let preds = Preds(slot.preds.load(Ordering::Relaxed));
        let told = self.close(job, slot, flags);
        if preds != Preds::NONE {
            self.free_preds(preds);
        }
        let left = self.let_go(job, slot, flags, failed);
        if left == Left::Nothing {
            self.recycle(job, slot);
        }
        if told != NIL {
            self.tell(told, job, failed, queue);
        }
        if left == Left::Result {
            self.drop_result(job, slot);
            self.recycle(job, slot);
        }
    }

    /// Leaves the result to its handle. What is left in the slot.
    #[inline]
    pub(crate) fn let_go(&self, job: Ticket, slot: &Slot<P>, flags: u32, failed: bool) -> Left {
        match flags & Slot::<P>::IS_HELD {
            0 => Left::Nothing,
            _ => self.leave_to_handle(job, slot, failed),
        }
    }

    #[inline]
    fn leave_to_handle(&self, job: Ticket, slot: &Slot<P>, failed: bool) -> Left {
        let settled = StateWord::new(job.generation(), Phase::Settled, 0).pack();
        // Release, partner: the Acquire load in `is_over`: the result.
        slot.state.store(settled, Ordering::Release);
        // AcqRel, partner: the handle's own subtraction: the last one sees both sides done.
        let before = slot
            .holders
            .fetch_sub(Slot::<P>::FINISHER, Ordering::AcqRel);
        if before & Slot::<P>::HANDLE != 0 {
            Left::ToHandle
        } else if failed {
            self.forget(self.shared.failures.let_go(job));
            Left::Nothing
        } else if before & Slot::<P>::TAKEN != 0 {
            Left::Nothing
        } else {
            Left::Result
        }
    }

    /// Drops a result that no handle will take. The caller is the last that needs the slot.
    #[cold]
    fn drop_result(&self, job: Ticket, slot: &Slot<P>) {
        // SAFETY: the job has just left its result, and the handle is gone.
        self.discard_held(job, || unsafe { slot.drop_result() });
    }

    /// The slot is free for the next job. Callers: the last who needed it.
    #[inline]
    pub(crate) fn recycle(&self, job: Ticket, slot: &Slot<P>) {
        slot.move_on(job);
        if job.generation() < Ticket::GENERATION_LAST {
            self.own(|own| self.shared.slots.free(&mut own.slots, job.index()));
        }
    }

    /// Tells everybody on a closed list that `job` is over.
    pub(crate) fn tell(&self, first: u32, job: Ticket, failed: bool, queue: Queue) {
        let mut told = Some(Link::unpack(first));
        while let Some(link) = told {
            // Everything is read before the successor is released: it may run, end and free the
            // links at once. Nor is anything fetched behind that release while it waits for its
            // line: so the next successor is looked up before it.
            if let Link::InSlot { index, .. } = link {
                self.shared.slots.get(index).take_line();
            }
            let (to, next) = self.read_link(link);
            told = (next != NIL).then(|| Link::unpack(next));
            if let Some(next) = told {
                self.prefetch_told(next);
            }
            match Listener::unpack(to) {
                None => {
                    if failed {
                        self.cancel(Ticket(to), job);
                    }
                    self.release(Ticket(to), 1, queue);
                }
                Some(listener) => {
                    if let Link::InBlock { number, .. } = link {
                        self.free_links(number);
                    }
                    self.notify(listener);
                }
            }
        }
    }

    /// Whom a link tells, and the number of the next one. The caller has not released that job yet, so
    /// neither the link nor the slot can be anything else meanwhile.
    #[inline(always)]
    pub(crate) fn read_link(&self, link: Link) -> (u64, u32) {
        match link {
            Link::InSlot { index, place } => {
                let slot = self.shared.slots.get(index);
                // Relaxed: as for the link, see `next`; the state was written before it, too.
                let generation = slot.word(Ordering::Relaxed).generation;
                (Ticket::new(index, generation).0, slot.next(place))
            }
            Link::InBlock { number, place } => {
                let block = self.shared.links.get(number);
                let next = block.next[place].load(Ordering::Relaxed);
                (block.to.load(Ordering::Relaxed), next)
            }
        }
    }

    /// Asks for the memory of the job that a link tells, which is about to be released.
    #[inline]
    fn prefetch_told(&self, link: Link) {
        let index = match link {
            Link::InSlot { index, .. } => index,
            Link::InBlock { number, .. } => {
                let to = Ticket(self.shared.links.get(number).to.load(Ordering::Relaxed));
                if to.generation() == 0 {
                    return;
                }
                to.index()
            }
        };
        P::prefetch(&self.shared.slots.get(index).pending);
    }

    /// Asks for what the end of a job will need while its body runs: the first links of each list.
    #[inline]
    pub(crate) fn prefetch_links(&self, slot: &Slot<P>) {
        let links = &self.shared.links;
        // Acquire, partner: the Release CAS in `hang`: that the block exists.
        let told = LinksWord(slot.links.load(Ordering::Acquire)).link();
        if told < LinksWord::CLOSED {
            match Link::unpack(told) {
                Link::InSlot { index, .. } => P::prefetch(&self.shared.slots.get(index).pending),
                Link::InBlock { number, .. } => P::prefetch(links.get(number)),
            }
        }
        // Relaxed: what held the job back has been acquired with the claim.
        let preds = Preds(slot.preds.load(Ordering::Relaxed));
        if preds != Preds::NONE && !preds.is_only() {
            P::prefetch(links.get(preds.block()));
        }
    }

    /// Closes the list of a job and returns its first link.
    #[inline]
    pub(crate) fn close(&self, job: Ticket, slot: &Slot<P>, flags: u32) -> u32 {
        if flags & Slot::<P>::IS_ANONYMOUS != 0 {
            return NIL;
        }
        let closed = LinksWord::new(job.generation(), LinksWord::CLOSED);
        // AcqRel, partner: the CAS in `hang`, both ways: we see the links, and who finds the list
        // closed sees what the job did.
        LinksWord(slot.links.swap(closed.0, Ordering::AcqRel)).link()
    }

    /// Tells those on a closed list who wait for a job that will never run; what depends on it is
    /// not released.
    pub(crate) fn tell_listeners_only(&self, first: u32) {
        let mut link = first;
        while link != NIL {
            let (to, next) = self.read_link(Link::unpack(link));
            link = next;
            if let Some(listener) = Listener::unpack(to) {
                self.notify(listener);
            }
        }
    }

    /// Wakes a thread that waits (and does not count as searching).
    pub(crate) fn unpark(&self, seat: &crate::seat::Seat<P>) {
        let before = self.time_to_record();
        self.sign_wake_up(seat);
        if seat.parker.unpark() {
            self.seat.counters.wakes_sent.add(1);
            self.record_at(before, EventKind::Wake, u64::from(seat.index));
        }
    }

    pub(crate) fn label_of(&self, slot: &Slot<P>) -> Label {
        let unknown = Label {
            name: "job",
            site: std::panic::Location::caller(),
        };
        self.shared
            .labels
            .get(slot.label.load(Ordering::Relaxed))
            .unwrap_or(unknown)
    }

    /// One more job of this scope has finished here. The subtraction is put off while jobs of the
    /// same scope follow: the scope cannot end before they do.
    #[inline]
    fn finished_in(&self, scope: Ticket, queue: Queue) {
        let other = self.own(|own| {
            let before = own.finished;
            if before.scope == scope
                && let Some(count) = before.count.checked_add(1)
            {
                own.finished.count = count;
                return None;
            }
            own.finished = Finished { scope, count: 1 };
            Some(before)
        });
        if let Some(other) = other {
            self.subtract(other, queue);
        }
    }

    /// Subtracts what was put off. Called before this thread runs something else, looks elsewhere
    /// for work, or waits.
    #[inline]
    pub(crate) fn flush_finished(&self) {
        let none = Finished {
            scope: Ticket::NONE,
            count: 0,
        };
        let due = self.own(|own| std::mem::replace(&mut own.finished, none));
        if due.count > 0 {
            self.subtract(due, Queue::Own);
            self.finish_todo(Queue::Own);
        }
    }

    fn subtract(&self, due: Finished, queue: Queue) {
        if due.count > 0 {
            self.release(due.scope, due.count.into(), queue);
        }
    }
}
