//! Making jobs: fills in a slot, adds the job's edges, and releases the job.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::{Driver, Graph, OnGraph};
use crate::error::ScheduleError;
use crate::queues::Queue;
use crate::store::{JobPhase, Label, LabelId, LinksWord, NIL, Preds, Slot, StateWord, Ticket};

impl<'d, P: Platform, D: Driver<P>> OnGraph<'d, P, D> {
    /// The label of the job in this slot. Takes a lock the first time.
    pub(crate) fn label(self, slot: &Slot<P>) -> Label {
        let graph = self.driver.jobs();
        let number = slot.label_number();
        let known = self
            .driver
            .local(|local| graph.labels.label(&mut local.labels, number));
        known.unwrap_or_else(|| graph.label_of(slot))
    }

    /// The number of a label.
    #[inline]
    pub(crate) fn label_number(self, label: &Label) -> LabelId {
        let labels = &self.driver.jobs().labels;
        self.driver
            .local(|local| labels.number(&mut local.labels, label))
    }

    /// Makes a job that no other thread knows yet, and that nothing holds back. `None` if all slots are
    /// taken. (An error would be returned in memory; this pair comes back in registers.)
    #[inline(never)]
    pub(crate) fn make(
        self,
        label: &Label,
        flags: u32,
        parent: Ticket,
    ) -> Option<(Ticket, &'d Slot<P>)> {
        self.make_here(label, flags, parent)
    }

    /// The same without a call, for the callers that make nearly all jobs.
    #[inline(always)]
    pub(crate) fn make_here(
        self,
        label: &Label,
        flags: u32,
        parent: Ticket,
    ) -> Option<(Ticket, &'d Slot<P>)> {
        self.make_numbered(|| self.label_number(label), flags, parent)
    }

    /// The same with the number of the label, which is asked for when there is a slot.
    #[inline(always)]
    pub(crate) fn make_numbered(
        self,
        number: impl FnOnce() -> LabelId,
        flags: u32,
        parent: Ticket,
    ) -> Option<(Ticket, &'d Slot<P>)> {
        let (ticket, slot, number) = self.fill_in(number, flags, parent)?;
        self.driver
            .record(EventKind::Created, ticket, u64::from(number));
        Some((ticket, slot))
    }

    /// A slot becomes a job, which no sink is told of.
    #[inline(always)]
    fn fill_in(
        self,
        number: impl FnOnce() -> LabelId,
        flags: u32,
        parent: Ticket,
    ) -> Option<(Ticket, &'d Slot<P>, LabelId)> {
        let graph = self.driver.jobs();
        let (index, slot) = self
            .driver
            .local(|local| graph.slots.allocate(&mut local.slots))?;
        let number = number();
        // Relaxed, most of these: no other thread looks at the job before it is published, by the Release
        // store that makes it ready, by the Release CAS that adds an edge, or by the program's own means of
        // passing the id on. Release, partner: the Acquire loads in `is_over`, `hang`, `mark` and
        // `parent_of`, where threads that look for the slot's *last* job find out that it is over. What that
        // job did must be visible to them, although these stores, by this thread, tell them. A store comes
        // first: a line that is read first travels twice, for the copy and for the right to write.
        let has_parent = if parent.is_none() {
            0
        } else {
            Slot::<P>::HAS_PARENT
        };
        // Release, partner: the Acquire load in `parent_of`, see above.
        slot.flags.store(flags | has_parent, Ordering::Release);
        let generation = slot.word(Ordering::Relaxed).generation;
        let ticket = Ticket::new(index, generation);
        // Release, partner: the Acquire load in `parent_of`, see above.
        slot.parent.store(parent.0, Ordering::Release);
        // Release, both, partner: the Acquire loads in `label_of` and `look_at`, see above.
        slot.label.store(number, Ordering::Release);
        slot.preds.store(Preds::NONE.0, Ordering::Release);
        slot.place.store(Slot::<P>::NOWHERE, Ordering::Relaxed);
        // Release, partner: the Acquire CAS in `mark`, see above.
        slot.mark.store(0, Ordering::Release);
        if flags & Slot::<P>::IS_ANONYMOUS == 0 {
            // Release, partner: `hang`, see above.
            slot.links
                .store(LinksWord::new(generation, NIL).0, Ordering::Release);
        }
        if flags & Slot::<P>::IS_HELD != 0 {
            let both = Slot::<P>::FINISHER | Slot::<P>::HANDLE;
            slot.holders.store(both, Ordering::Relaxed);
        }
        let waiting = StateWord::new(generation, JobPhase::Waiting, 0).pack();
        // Release, partner: `is_over`, see above.
        slot.state.store(waiting, Ordering::Release);
        Some((ticket, slot, number))
    }

    /// Adds the edges of a new job and releases it. The caller announces what has become ready.
    ///
    /// # Errors
    /// If there is no free link. Then the job is cancelled, and nothing holds it back.
    #[inline]
    pub(crate) fn wire(
        self,
        job: Ticket,
        slot: &Slot<P>,
        after: &[Ticket],
        queue: Queue,
        in_scope: bool,
    ) -> Result<(), ScheduleError> {
        let after = self.not_over(job, after);
        if after.is_empty() {
            self.make_ready(job, slot, queue);
        } else {
            let mut wired = self.add_edges(job, slot, &after, 1, in_scope);
            if in_scope {
                wired = wired.and_then(|()| self.tell_scope(slot, &after));
            }
            if wired.is_err() {
                // Relaxed, both: published by the release. The program will get no handle.
                slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
                slot.holders.store(Slot::<P>::FINISHER, Ordering::Relaxed);
            }
            self.release(job, 1, queue);
            if wired.is_err() {
                self.finish_todo(queue);
                return wired;
            }
        }
        if self.driver.local(|local| !local.todo.is_empty()) {
            self.finish_todo(queue);
        }
        Ok(())
    }

    /// A job that was made, and that nobody knows, is not to run: its body is dropped, and it is over.
    #[cold]
    pub(crate) fn refuse(self, job: Ticket, slot: &Slot<P>, queue: Queue) {
        // Relaxed, both: published by what follows. The program will get no handle.
        slot.flags.fetch_or(Slot::<P>::CANCELLED, Ordering::Relaxed);
        slot.holders.store(Slot::<P>::FINISHER, Ordering::Relaxed);
        self.make_ready(job, slot, queue);
        self.finish_todo(queue);
    }

    /// Adds the edges of a new event. The event holds itself back until it is completed.
    ///
    /// # Errors
    /// As [`wire`](OnGraph::wire).
    pub(crate) fn wire_event(
        self,
        job: Ticket,
        slot: &Slot<P>,
        after: &[Ticket],
        queue: Queue,
    ) -> Result<(), ScheduleError> {
        // Held back by the event itself, and by this thread until the edges are added.
        let after = self.not_over(job, after);
        let wired = self.add_edges(job, slot, &after, 2, false);
        if wired.is_err() {
            // Relaxed: published by the release. The program will get no handle.
            slot.holders.store(Slot::<P>::FINISHER, Ordering::Relaxed);
        }
        // The program gets no event to complete it with: then it is cancelled.
        self.release(job, if wired.is_ok() { 1 } else { 2 }, queue);
        self.finish_todo(queue);
        wired
    }
}

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// Makes the memory for so many live jobs, and for what this thread keeps for itself. After that, to make
    /// jobs allocates nothing.
    pub(crate) fn reserve(self, jobs: u32) {
        /// Labels that the thread may use for the first time afterwards.
        const LABELS: usize = 256;
        /// Jobs without a body that one release may leave on this thread's list.
        const UNFINISHED: usize = 64;
        self.slots.reserve(jobs);
        self.links.reserve(jobs);
        self.driver.local(|local| {
            local.todo.reserve(UNFINISHED);
            self.labels.reserve(&mut local.labels, LABELS);
        });
    }
}

impl<P: Platform> Graph<P> {
    /// The error of a full job table.
    #[cold]
    pub(crate) fn full(&self) -> ScheduleError {
        ScheduleError::Full {
            max_jobs: self.max_jobs,
        }
    }
}
