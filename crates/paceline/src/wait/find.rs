//! What a waiter may run: the search.
//!
//! Upwards along the links for ancestors of the target ([`Walk`]), and through the queues for what
//! they have made.

use std::collections::HashSet;

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Platform};

use crate::context::Context;
use crate::job::{Phase, Ticket};
use crate::policy::Tuning;

/// A walk from the target to its unfinished ancestors, depth first, that can be left when it has
/// found something to run and taken up again: going on costs less than starting over, and what it
/// has not seen is looked at by the next walk.
pub(super) struct Walk {
    pub(super) stack: Vec<Ticket>,
    /// Of this seat: the mark of jobs that this walk has visited.
    serial: u64,
    /// How many visits it relies on marks for. Two waiters that overwrite each other's marks visit jobs more
    /// than once, in the worst case once for each path to them.
    visits_left: usize,
    /// What was visited after that, each once. Mostly there is no such set.
    visited: Option<HashSet<Ticket>>,
    /// When the wait may run anything, although it is in the middle of a job.
    pub(super) last_resort: Nanos,
}

impl Walk {
    /// A walk that has not begun. `stack` is empty.
    pub(super) fn with(stack: Vec<Ticket>) -> Walk {
        Walk {
            stack,
            serial: 0,
            visits_left: 0,
            visited: None,
            last_resort: Nanos::MAX,
        }
    }

    /// Whether a visit is not known to be a repeated one.
    #[inline]
    fn is_first_visit(&mut self, job: Ticket) -> bool {
        match self.visits_left.checked_sub(1) {
            Some(left) => {
                self.visits_left = left;
                true
            }
            None => self.visited.get_or_insert_default().insert(job),
        }
    }
}

/// How far to look for descendants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The newest few tickets of each queue.
    Quick,
    /// Every ticket there is: before parking.
    Thorough,
}

/// Tickets of each queue a quick look considers.
const QUICK_TICKETS: usize = 32;

impl<P: Platform> Context<'_, P> {
    /// Whether the wait may run the job: the target, a job on the way to it (as far as the walk has
    /// marked them), or a descendant of one of these.
    pub(super) fn is_wanted(&self, ticket: Ticket, target: Ticket) -> bool {
        ticket == target || self.is_marked(ticket) || self.descends(ticket, target)
    }

    /// Whether a ticket could be started at this moment.
    pub(super) fn is_startable(&self, ticket: Ticket) -> bool {
        // Relaxed: whoever starts it decides.
        let slot = self.shared.slot(ticket);
        let word = slot.word(Ordering::Relaxed);
        let phase_allows = match word.phase {
            Phase::Ready => true,
            Phase::Open => self.has_room_for_member(slot),
            _ => false,
        };
        phase_allows && word.generation == ticket.generation()
    }

    /// Whether the job was made by (a job made by …) the target, or by a job the target needs.
    pub(super) fn descends(&self, ticket: Ticket, target: Ticket) -> bool {
        const NESTING_MAX: usize = 256;
        let mut job = ticket;
        for _ in 0..NESTING_MAX {
            let Some(parent) = self.parent_of(job) else {
                return false;
            };
            if parent == target || self.is_marked(parent) {
                return true;
            }
            job = parent;
        }
        false
    }

    /// The scope or job that `job` was made by, unless `job` is over.
    pub(crate) fn parent_of(&self, job: Ticket) -> Option<Ticket> {
        // A parent outlives what it made.
        let parent = self.shared.slot(job).parent_of(job)?;
        self.shared.slots.exists(parent.index()).then_some(parent)
    }

    /// Walks on until it comes to a job that can be run, and runs it. False if a whole walk, begun
    /// during this call, has found none.
    pub(super) fn help_ancestor(&self, target: Ticket, walk: &mut Walk) -> bool {
        // Lost to somebody else: that was progress too.
        self.find_ancestor(target, walk)
            .inspect(|job| _ = self.help(*job, self.shared.slot(*job), target))
            .is_some()
    }

    /// As above, without running it.
    #[inline]
    pub(super) fn find_ancestor(&self, target: Ticket, walk: &mut Walk) -> Option<Ticket> {
        self.forget_stamp();
        self.walk_on(target, walk).or_else(|| {
            walk.serial = self.own(|own| {
                own.serial += 1;
                own.serial
            });
            walk.visits_left = Tuning::SEARCH_VISITS_BY_MARK;
            walk.visited = None;
            self.visit(target, target, walk);
            self.walk_on(target, walk)
        })
    }

    /// The next job on the walk that can be run.
    fn walk_on(&self, target: Ticket, walk: &mut Walk) -> Option<Ticket> {
        while let Some(job) = walk.stack.pop() {
            let slot = self.shared.slot(job);
            // Acquire, partner: the Release stores of the state: the links of a waiting job.
            let word = slot.word(Ordering::Acquire);
            match word.phase {
                _ if word.is_over(job) => {}
                Phase::Ready => return Some(job),
                Phase::Open if self.has_room_for_member(slot) => return Some(job),
                Phase::Waiting => self.linked_preds(job, |pred| self.visit(pred, target, walk)),
                _ => {}
            }
        }
        None
    }

    /// The walk comes by a job: marks it, and puts it on the stack if there may be something to run, there or
    /// behind it. Nothing of the job is read before it is marked, since that takes its line for writing: a
    /// line that is read first travels twice.
    fn visit(&self, job: Ticket, target: Ticket, walk: &mut Walk) {
        let slot = self.shared.slot(job);
        let Some((mark, is_new)) = self.mark(slot, walk.serial) else {
            return;
        };
        if !walk.is_first_visit(job) {
            return;
        }
        let word = slot.word(Ordering::Relaxed);
        if word.is_over(job) {
            // The slot's next job may have got the mark, and this wait does not need that one.
            // Relaxed, as for marking; it fails if somebody else has marked it since.
            let _ = slot
                .mark
                .compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
            return;
        }
        if is_new {
            self.record(EventKind::Raised, job, target.0);
        }
        if word.phase != Phase::Running {
            walk.stack.push(job);
        }
    }

    pub(super) fn help_descendant(&self, target: Ticket, look: Look) -> bool {
        self.find_descendant(target, look)
            .is_some_and(|ticket| self.help(ticket, self.shared.slot(ticket), target))
    }

    /// Looks through all queues for a ticket the wait may run.
    pub(super) fn find_descendant(&self, target: Ticket, look: Look) -> Option<Ticket> {
        let mut left;
        let mut found = None;
        let mut consider = |ticket: Ticket, left: &mut usize| {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            if self.shared.slots.exists(ticket.index())
                && self.is_startable(ticket)
                && self.descends(ticket, target)
            {
                found = Some(ticket);
            }
            found.is_some()
        };
        for seat in self.shared.seats.iter() {
            for deque in std::iter::once(&seat.deque).chain(&seat.inbox) {
                left = if look == Look::Quick {
                    QUICK_TICKETS
                } else {
                    usize::MAX
                };
                deque.scan(|ticket| consider(ticket, &mut left));
            }
        }
        if look == Look::Thorough {
            left = usize::MAX;
            self.shared
                .injector
                .scan(|ticket| consider(ticket, &mut left));
            self.shared
                .backlog
                .scan(|ticket| consider(ticket, &mut left));
        }
        found
    }
}
