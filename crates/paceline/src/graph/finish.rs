//! The end of a job: its list is closed, and the successors and listeners on it are notified.
//!
//! Successors, waiters and futures hang in the same list (see `edges` and `listen`). Finishing is iterative:
//! jobs without a body and cancelled jobs are finished by the same loop, however long the chain is.
//!
//! It calls code of the program's in two places. A closure that will not be called is dropped before the job
//! is over. The drop of a result that nothing waits for, and the hook for unwaited panics, come after all
//! listeners have been notified: that code may wait for this job, or for jobs that come after it.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::listen::Listener;
use super::{Driver, Graph, OnGraph};
use crate::border::Payload;
use crate::queues::Queue;
use crate::store::{JobPhase, Link, LinksWord, NIL, Preds, Slot, StateWord, Ticket};

/// How a job ended.
pub(crate) enum Ending {
    Done,
    Panicked(Payload),
    /// A part of it panicked; the failure is already recorded.
    PanicNoted,
    /// The body did not run; the failure is already recorded.
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

/// The content of the slot of a job that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// The slot can be used again.
    Nothing,
    /// A result that no handle will take.
    Result,
    /// A result that the handle will take or drop.
    ToHandle,
}

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// Takes away `amount` of the things that hold the job back. Makes it ready if those were the last.
    #[inline]
    pub(crate) fn release(self, job: Ticket, amount: u32, queue: Queue) {
        let slot = self.slot(job);
        // AcqRel, partner: the other releases of this job. The thread that brings it to zero sees everything
        // that all predecessors did, and passes it on to the claimer.
        let before = slot.pending.fetch_sub(amount, Ordering::AcqRel);
        debug_assert!(
            before >= amount,
            "{job:?} is released more often than it was held"
        );
        if before == amount {
            self.make_ready(job, slot, queue);
        }
    }

    /// Nothing outside of the job system holds the job back any more: its event is completed, or its future
    /// is woken.
    pub(crate) fn release_from_outside(self, job: Ticket, queue: Queue) {
        let slot = self.slot(job);
        // Relaxed, both: published by the release.
        if slot.pending.load(Ordering::Relaxed) > 1 {
            // It is held back by something else as well, and goes on being so.
            slot.flags
                .fetch_and(!Slot::<P>::IS_OPEN_EVENT, Ordering::Relaxed);
        }
        self.release(job, 1, queue);
    }

    /// The future of the job is pending: the job waits again, to be released from outside. The caller runs
    /// it. Threads that wait for the job may have to run what the future awaits.
    pub(crate) fn hold_from_outside(self, slot: &Slot<P>, job: Ticket) {
        // Relaxed, all three: published by the store of the state.
        slot.place.store(Slot::<P>::NOWHERE, Ordering::Relaxed);
        if slot.flags.load(Ordering::Relaxed) & Slot::<P>::WAS_POLLED == 0 {
            let pending = Slot::<P>::IS_OPEN_EVENT | Slot::<P>::WAS_POLLED;
            slot.flags.fetch_or(pending, Ordering::Relaxed);
        }
        // Release, partner: the CAS in `hold_back`, as for a new job.
        slot.pending.store(1, Ordering::Release);
        let waiting = StateWord::new(job.generation(), JobPhase::Waiting, 0).pack();
        // Release, partner: the Acquire loads of the state, in `hold_back` and in surveys: the count, the
        // flags, and what the poll did to the future.
        slot.state.store(waiting, Ordering::Release);
        // Relaxed: only the thread that polls a future adds to them.
        if slot.preds.load(Ordering::Relaxed) != Preds::NONE.0 {
            self.driver.has_new_predecessor(job);
        }
    }

    /// Nothing holds a pinned job back but its thread, which has to come for it. The caller has released it,
    /// and hands it to that thread.
    pub(crate) fn hold_for_thread(self, slot: &Slot<P>, job: Ticket) {
        self.driver.record(EventKind::Ready, job, 0);
        self.hold_from_outside(slot, job);
    }

    /// The thread of a pinned job has come for it: the job runs, as after a claim. False if something else
    /// holds it back for a moment, or if it was dropped; then it is not the caller's.
    pub(crate) fn claim_held(self, slot: &Slot<P>, job: Ticket) -> bool {
        // AcqRel, partner: the subtractions in `release`, as there.
        if slot.pending.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        let running = StateWord::new(job.generation(), JobPhase::Running, 1).pack();
        // Release, partner: the Acquire loads of the state, in surveys and searches.
        slot.state.store(running, Ordering::Release);
        true
    }

    /// Nothing holds the job back: queues it, or puts it on the list of jobs to finish here.
    #[inline(always)]
    pub(crate) fn make_ready(self, job: Ticket, slot: &Slot<P>, queue: Queue) {
        let flags = slot.flags.load(Ordering::Relaxed);
        if flags & Slot::<P>::HAS_BODY == 0 || flags & Slot::<P>::CANCELLED != 0 {
            self.driver.local(|local| local.todo.push(job));
            return;
        }
        self.make_runnable(job, slot, flags, queue);
    }

    /// The same for a job that has a body and is not cancelled.
    #[inline(always)]
    pub(crate) fn make_runnable(self, job: Ticket, slot: &Slot<P>, flags: u32, queue: Queue) {
        if !Slot::<P>::goes_into_deque(flags) {
            return self.make_ready_elsewhere(job, slot, flags, queue);
        }
        self.make_ready_here(job, slot);
        self.driver.enqueue(job, queue);
    }

    /// The same for a job of another lane, with a rank, or pinned to a thread.
    #[cold]
    fn make_ready_elsewhere(self, job: Ticket, slot: &Slot<P>, flags: u32, queue: Queue) {
        if flags & Slot::<P>::IS_PINNED != 0 {
            return self.driver.hand_to_thread(job);
        }
        if flags & Slot::<P>::IS_RANKED != 0 {
            self.driver.gets_rank(job, slot);
        }
        self.make_ready_here(job, slot);
        self.driver.enqueue_in_lane(job, queue);
    }

    /// Nothing holds the job back. The caller starts it itself, or queues it.
    #[inline(always)]
    pub(crate) fn make_ready_here(self, job: Ticket, slot: &Slot<P>) {
        self.driver.record(EventKind::Ready, job, 0);
        let ready = StateWord::new(job.generation(), JobPhase::Ready, 0).pack();
        // Release, partner: the Acquire CAS of the claim.
        slot.state.store(ready, Ordering::Release);
    }

    /// Finishes all jobs on the list, and those that become ready to be finished by that.
    pub(crate) fn finish_todo(self, queue: Queue) {
        while let Some(job) = self.driver.local(|local| local.todo.pop()) {
            let slot = self.slot(job);
            let flags = slot.flags.load(Ordering::Relaxed);
            let cancelled = flags & Slot::<P>::CANCELLED != 0;
            if flags & Slot::<P>::HAS_BODY != 0 {
                self.discard_body(job, slot);
                self.driver.counters().cancelled.add(1);
            }
            let ending = if cancelled {
                Ending::Cancelled
            } else {
                Ending::Done
            };
            self.finish(job, slot, flags, ending, queue);
        }
    }

    /// Drops a closure that will not run, or the closure of a range that has ended. The caller has the job to
    /// itself.
    pub(crate) fn discard_body(self, job: Ticket, slot: &Slot<P>) {
        // Relaxed: the caller has the job to itself.
        let extras = slot.flags.load(Ordering::Relaxed) & Slot::<P>::HAS_EXTRAS;
        if extras != 0 {
            self.driver.forget_extras(job);
        }
        // SAFETY: the job is not ready and never will be (or is being shut down, or its participants have
        // left), so no other thread touches table and body. Both were filled by the scheduler, whose writes
        // happened before the release that led here.
        self.driver
            .discard_held(job, || unsafe { slot.discard_body() });
    }

    /// The job is over: closes its list, lets the slot go and notifies the list. The caller has the job to
    /// itself, and its body is gone.
    #[inline(always)]
    pub(crate) fn finish(
        self,
        job: Ticket,
        slot: &Slot<P>,
        flags: u32,
        ending: Ending,
        queue: Queue,
    ) {
        let parent = slot.parent(flags);
        self.finish_uncounted(job, slot, flags, ending, queue);
        if flags & Slot::<P>::IN_SCOPE != 0 {
            self.end_in_scope(parent, flags & Slot::<P>::IS_ANONYMOUS != 0, queue);
        }
    }

    /// The same, but for the scope, which still counts the job as not over. The caller counts it.
    #[inline(always)]
    pub(crate) fn finish_uncounted(
        self,
        job: Ticket,
        slot: &Slot<P>,
        flags: u32,
        ending: Ending,
        queue: Queue,
    ) {
        self.driver.record(EventKind::Completed, job, ending.code());
        if flags & Slot::<P>::IS_ANONYMOUS != 0 && matches!(ending, Ending::Done) {
            // It has no predecessors, and only its scope can wait for it.
            self.recycle(job, slot);
        } else {
            self.finish_named(job, slot, flags, ending, queue);
        }
    }

    /// The scope of a job that is over counts that.
    #[inline(never)] // It would cost the jobs outside of scopes ten instructions.
    fn end_in_scope(self, scope: Ticket, is_anonymous: bool, queue: Queue) {
        if is_anonymous {
            self.finished_in(scope, queue);
        } else {
            // A job with a name may also end where this thread runs nothing: an edge or an event that
            // failed ended it. So its end is not put off.
            self.release(scope, 1, queue);
        }
    }

    #[inline]
    fn finish_named(self, job: Ticket, slot: &Slot<P>, flags: u32, ending: Ending, queue: Queue) {
        match ending {
            Ending::Done => self.end_named(job, slot, flags, false, queue),
            failing => self.finish_failed(job, slot, flags, failing, queue),
        }
    }

    /// The same for a job that failed.
    #[cold]
    fn finish_failed(self, job: Ticket, slot: &Slot<P>, flags: u32, ending: Ending, queue: Queue) {
        if let Ending::Panicked(payload) = ending {
            self.record_panic(job, slot, flags, payload);
        }
        let unreported = self.unreported_panic(job, self.audience(job, slot, flags));
        self.end_named(job, slot, flags, true, queue);
        if let Some(panic) = unreported {
            self.report(&panic);
        }
    }

    #[inline(always)]
    fn end_named(self, job: Ticket, slot: &Slot<P>, flags: u32, failed: bool, queue: Queue) {
        let preds = Preds(slot.preds.load(Ordering::Relaxed));
        let first = self.close(job, slot, flags);
        if preds != Preds::NONE {
            self.free_preds(preds);
        }
        let left = self.let_go(job, slot, flags, failed);
        if left == Left::Nothing {
            self.recycle(job, slot);
        }
        if first != NIL {
            self.notify_list(first, job, failed, queue);
        }
        if left == Left::Result {
            self.drop_result(job, slot);
            self.recycle(job, slot);
        }
    }

    /// Leaves the result to its handle. Returns what is left in the slot.
    #[inline]
    pub(crate) fn let_go(self, job: Ticket, slot: &Slot<P>, flags: u32, failed: bool) -> Left {
        match flags & Slot::<P>::IS_HELD {
            0 => Left::Nothing,
            _ => self.leave_to_handle(job, slot, failed),
        }
    }

    #[inline]
    fn leave_to_handle(self, job: Ticket, slot: &Slot<P>, failed: bool) -> Left {
        let settled = StateWord::new(job.generation(), JobPhase::Settled, 0).pack();
        // Release, partner: the Acquire load in `is_over`: the result.
        slot.state.store(settled, Ordering::Release);
        // AcqRel, partner: the handle's own subtraction: the later of the two sees both sides done.
        let before = slot
            .holders
            .fetch_sub(Slot::<P>::FINISHER, Ordering::AcqRel);
        debug_assert!(
            before & Slot::<P>::FINISHER != 0,
            "{job:?} is finished twice"
        );
        if before & Slot::<P>::HANDLE != 0 {
            Left::ToHandle
        } else if failed {
            self.forget(self.failures.let_go(job));
            Left::Nothing
        } else if before & Slot::<P>::TAKEN != 0 {
            Left::Nothing
        } else {
            Left::Result
        }
    }

    /// Drops a result that no handle will take. The caller is the last that needs the slot.
    #[cold]
    fn drop_result(self, job: Ticket, slot: &Slot<P>) {
        // SAFETY: the job has just left its result, and the handle is gone.
        self.driver
            .discard_held(job, || unsafe { slot.drop_result() });
    }

    /// Frees the slot for the next job. The caller is the last that needed it.
    #[inline]
    pub(crate) fn recycle(self, job: Ticket, slot: &Slot<P>) {
        slot.move_on(job);
        if job.generation() < Ticket::GENERATION_LAST {
            self.driver
                .local(|local| self.slots.free(&mut local.slots, job.index()));
        }
    }

    /// Notifies all successors and listeners on a closed list that `job` is over.
    pub(crate) fn notify_list(self, first: u32, job: Ticket, failed: bool, queue: Queue) {
        let mut rest = Some(Link::unpack(first));
        while let Some(link) = rest {
            // Everything is read before the successor is released: it may run, end and free the links at
            // once. Nor does the CPU fetch anything behind that release while the release waits for its line.
            // So the next successor is looked up before it.
            if let Link::InSlot { index, .. } = link {
                self.slots.get(index).take_line();
            }
            let (to, next) = self.read_link(link);
            rest = (next != NIL).then(|| Link::unpack(next));
            if let Some(next) = rest {
                self.prefetch_successor(next);
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

    /// Notifies the listeners on a closed list of a job that will never run. The jobs that depend on it are
    /// not released.
    pub(crate) fn notify_listeners_only(self, first: u32) {
        let mut link = first;
        while link != NIL {
            let (to, next) = self.read_link(Link::unpack(link));
            link = next;
            if let Some(listener) = Listener::unpack(to) {
                self.notify(listener);
            }
        }
    }
}

impl<P: Platform> Graph<P> {
    /// The ticket or listener that a link notifies, and the number of the next link. The caller has not
    /// released the successor yet, so neither the link nor the slot can be used for anything else meanwhile.
    #[inline(always)]
    pub(crate) fn read_link(&self, link: Link) -> (u64, u32) {
        match link {
            Link::InSlot { index, place } => {
                let slot = self.slots.get(index);
                // Relaxed: as for the link, see `next`; the state was written before it, too.
                let generation = slot.word(Ordering::Relaxed).generation;
                (Ticket::new(index, generation).0, slot.next(place))
            }
            Link::InBlock { number, place } => {
                let block = self.links.get(number);
                let next = block.next[place].load(Ordering::Relaxed);
                (block.to.load(Ordering::Relaxed), next)
            }
        }
    }

    /// Prefetches the memory of the successor of a link, which is about to be released.
    #[inline]
    fn prefetch_successor(&self, link: Link) {
        let index = match link {
            Link::InSlot { index, .. } => index,
            Link::InBlock { number, .. } => {
                let to = Ticket(self.links.get(number).to.load(Ordering::Relaxed));
                if to.generation() == 0 {
                    return;
                }
                to.index()
            }
        };
        P::prefetch(&self.slots.get(index).pending);
    }

    /// Prefetches the memory that the end of a job will need, while its body runs: the first links of each
    /// list.
    #[inline]
    pub(crate) fn prefetch_links(&self, slot: &Slot<P>) {
        let links = &self.links;
        // Acquire, partner: the Release CAS in `hang`: that the block exists.
        let first = LinksWord(slot.links.load(Ordering::Acquire)).link();
        if first < LinksWord::CLOSED {
            match Link::unpack(first) {
                Link::InSlot { index, .. } => P::prefetch(&self.slots.get(index).pending),
                Link::InBlock { number, .. } => P::prefetch(links.get(number)),
            }
        }
        // Relaxed: everything that held the job back has been acquired with the claim.
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
        // AcqRel, partner: the CAS in `hang`, both ways: this thread sees the links, and a thread that finds
        // the list closed sees what the job did.
        let before = LinksWord(slot.links.swap(closed.0, Ordering::AcqRel));
        debug_assert!(
            before.is_open_for(job),
            "the list of {job:?} is closed twice"
        );
        before.link()
    }
}
