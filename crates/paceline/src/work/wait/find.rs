//! The search for a job that a waiter may run.
//!
//! It goes upwards along the links to ancestors of the target ([`Walk`](super::walk::Walk)), and through the
//! queues for jobs that these have made.

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::local::WaitLocal;
use super::waiter::Waiter;
use crate::policy::Tuning;
use crate::store::{JobPhase, Ticket};
use crate::work::range::has_room_for_participant;

/// How deep to search each queue for descendants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchDepth {
    /// Only the newest few tickets of each queue.
    Quick,
    /// Every ticket there is. For the search before parking.
    Thorough,
}

/// How many tickets of each queue a quick search looks at.
const QUICK_TICKETS: usize = 32;

impl<P: Platform> Waiter<'_, '_, P> {
    /// Whether the wait may run the job: the target, a job on the way to it (as far as the walk has
    /// marked them), or a descendant of one of these.
    pub(super) fn is_wanted(&self, ticket: Ticket) -> bool {
        ticket == self.target || self.is_marked(ticket) || self.descends(ticket)
    }

    /// Whether a ticket of any queue could be started at this moment, and the wait may run it.
    #[inline(never)]
    pub(super) fn could_help_with(&self, ticket: Ticket) -> bool {
        self.cx.graph().slots.exists(ticket.index())
            && self.is_startable(ticket)
            && self.is_wanted(ticket)
    }

    /// Whether a ticket could be started at this moment.
    pub(super) fn is_startable(&self, ticket: Ticket) -> bool {
        // Relaxed: the thread that starts it decides.
        let slot = self.cx.shared.slot(ticket);
        let word = slot.word(Ordering::Relaxed);
        let phase_allows = match word.phase {
            JobPhase::Ready => true,
            JobPhase::Open => has_room_for_participant(self.cx.shared, slot),
            _ => false,
        };
        phase_allows && word.generation == ticket.generation()
    }

    /// Whether the job was made by (a job made by …) the target, or by a job that the target needs; or it is
    /// one of the group whose jobs the wait may run, or was made by one.
    #[inline(never)]
    pub(super) fn descends(&self, ticket: Ticket) -> bool {
        const NESTING_MAX: usize = 256;
        let mut job = ticket;
        for _ in 0..NESTING_MAX {
            let Some(parent) = self.cx.graph().parent_of(job) else {
                return false;
            };
            if parent == self.target || self.is_marked(parent) || self.is_group(parent) {
                return true;
            }
            job = parent;
        }
        false
    }

    /// Walks on until it comes to a job that can be run, and runs it. False if a whole walk that began during
    /// this call has found none.
    pub(super) fn help_ancestor(&mut self) -> bool {
        let Some(job) = self.find_ancestor() else {
            return false;
        };
        // If another thread was faster, there was progress all the same.
        self.help(job, self.cx.shared.slot(job));
        true
    }

    /// A job that the wait may run, looked for thoroughly: the last look before a rest.
    #[inline(never)]
    pub(super) fn find_one(&mut self) -> Option<Ticket> {
        self.find_ancestor()
            .or_else(|| self.find_descendant(SearchDepth::Thorough))
    }

    /// As above, without running it.
    #[inline]
    pub(super) fn find_ancestor(&mut self) -> Option<Ticket> {
        self.cx.forget_stamp();
        if !self.walk.stack.is_empty()
            && let Some(job) = self.walk_on()
        {
            return Some(job);
        }
        self.begin_walk();
        self.walk_on()
    }

    #[inline(always)]
    fn begin_walk(&mut self) {
        self.walk.serial = self.cx.own(|own| {
            own.wait.serial += 1;
            own.wait.serial
        });
        self.walk.visits_left = Tuning::SEARCH_VISITS_BY_MARK;
        self.walk.visited = None;
        self.visit(self.target);
    }

    /// Marks all that the wait needs, if it has not done so. A walk stops at the first job that can be run,
    /// and jobs with a rank that it has not come to would go to waste for this wait. Those that can be run
    /// are left to the walk.
    #[cold]
    #[inline(never)]
    pub(super) fn mark_all(&mut self) {
        let has_marked_all = |wait: &mut WaitLocal| {
            let before = std::mem::replace(&mut wait.all_marked_from, wait.marks_from);
            before != 0
        };
        if self.cx.own(|own| has_marked_all(&mut own.wait)) {
            return;
        }
        let graph = self.cx.graph();
        self.walk.stack.clear();
        self.begin_walk();
        let mut can_be_run = Vec::new();
        while let Some(job) = self.walk.stack.pop() {
            // Acquire, partner: as in `walk_on`.
            let word = graph.slot(job).word(Ordering::Acquire);
            match word.phase {
                _ if word.is_over(job) => {}
                JobPhase::Waiting => graph.linked_preds(job, |pred| self.visit(pred)),
                _ => can_be_run.push(job),
            }
        }
        self.walk.stack = can_be_run;
    }

    /// The next job on the walk that can be run.
    #[inline]
    fn walk_on(&mut self) -> Option<Ticket> {
        let graph = self.cx.graph();
        while let Some(job) = self.walk.stack.pop() {
            let slot = graph.slot(job);
            // Acquire, partner: the Release stores of the state: the links of a waiting job.
            let word = slot.word(Ordering::Acquire);
            match word.phase {
                _ if word.is_over(job) => {}
                JobPhase::Ready => return Some(job),
                JobPhase::Open if has_room_for_participant(self.cx.shared, slot) => {
                    return Some(job);
                }
                JobPhase::Waiting => graph.linked_preds(job, |pred| self.visit(pred)),
                _ => {}
            }
        }
        None
    }

    /// The walk visits a job: marks it, and puts it on the stack if there may be a job to run, this one or
    /// one behind it. Nothing of the job is read before it is marked. Marking takes its line for writing, and
    /// a line that is read first travels twice.
    #[inline]
    fn visit(&mut self, job: Ticket) {
        let slot = self.cx.shared.slot(job);
        let Some((mark, is_new)) = self.mark(slot) else {
            return;
        };
        if !self.walk.is_first_visit(job) {
            return;
        }
        let word = slot.word(Ordering::Relaxed);
        if word.is_over(job) {
            // The slot's next job may have got the mark, and this wait does not need that job. Relaxed, as
            // for marking. The exchange fails if another thread has marked it since.
            let _ = slot
                .mark
                .compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
            return;
        }
        if is_new {
            self.cx.record(EventKind::Raised, job, self.target.0);
        }
        if word.phase != JobPhase::Running {
            self.walk.stack.push(job);
        }
    }

    pub(super) fn help_descendant(&self) -> bool {
        self.find_descendant(SearchDepth::Quick)
            .is_some_and(|ticket| self.help(ticket, self.cx.shared.slot(ticket)))
    }

    /// Searches all queues for a ticket that the wait may run.
    #[inline(never)]
    pub(super) fn find_descendant(&self, depth: SearchDepth) -> Option<Ticket> {
        let mut left;
        let mut found = None;
        let mut consider = |ticket: Ticket, left: &mut usize| {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            if self.cx.graph().slots.exists(ticket.index())
                && self.is_startable(ticket)
                && self.descends(ticket)
            {
                found = Some(ticket);
            }
            found.is_some()
        };
        left = usize::MAX;
        let front = &self.cx.shared.lanes.front;
        front.scan(&mut |ticket| consider(ticket, &mut left));
        let extra = self.cx.extra_lanes();
        if let Some(extra) = extra {
            extra.scan(&mut |ticket| consider(ticket, &mut left));
        }
        for thread in self.cx.shared.threads.iter() {
            for deque in std::iter::once(&thread.deque).chain(&thread.inbox) {
                left = if depth == SearchDepth::Quick {
                    QUICK_TICKETS
                } else {
                    usize::MAX
                };
                deque.scan(|ticket| consider(ticket, &mut left));
            }
        }
        if depth == SearchDepth::Thorough {
            left = usize::MAX;
            self.cx
                .shared
                .injector
                .scan(&mut |ticket| consider(ticket, &mut left));
            self.cx
                .shared
                .lanes
                .backlog
                .scan(&mut |ticket| consider(ticket, &mut left));
            if let Some(extra) = extra {
                extra.scan_beside(&mut |ticket| consider(ticket, &mut left));
            }
        }
        found
    }
}
