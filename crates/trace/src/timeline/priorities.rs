//! Priorities over time, own and lent ones.

use event::{Nanos, Task};

use super::dense::{Grouped, NOBODY};

/// A thread's priority, as Linux's kernel counts them: the lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// Its own.
    pub own: i16,
    /// The one that counts: a lock's waiter may have lent it a better one.
    pub now: i16,
    /// The thread that lent it the priority, if it is known.
    pub lender: Option<Task>,
}

/// A priority of a thread, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) since: Nanos,
    pub(crate) own: i16,
    pub(crate) now: i16,
    /// The position of the thread that lent it.
    pub(crate) lender: u32,
}

/// Priorities while they are found, in the order of time.
#[derive(Default)]
pub(super) struct PriorityBuilder {
    pairs: Vec<(u32, Step)>,
    /// By thread.
    latest: Vec<Option<Step>>,
}

impl PriorityBuilder {
    /// The priority that a thread has now.
    pub(super) fn now(&self, thread: u32) -> Option<Step> {
        self.latest.get(thread as usize).copied().flatten()
    }

    fn set(&mut self, thread: u32, step: Step) {
        let index = thread as usize;
        if index >= self.latest.len() {
            self.latest.resize(index + 1, None);
        }
        let same = |old: Step| (old.own, old.now, old.lender) == (step.own, step.now, step.lender);
        if self.latest[index].is_none_or(|old| !same(old)) {
            self.latest[index] = Some(step);
            self.pairs.push((thread, step));
        }
    }

    /// A thread has its own priority, and it is this one.
    pub(super) fn own(&mut self, thread: u32, since: Nanos, own: i16) {
        let (now, lender) = (own, NOBODY);
        self.set(
            thread,
            Step {
                since,
                own,
                now,
                lender,
            },
        );
    }

    /// A thread was lent this priority, by a lender that is known or not.
    pub(super) fn lend(&mut self, thread: u32, since: Nanos, now: i16, lender: u32) {
        let own = self.now(thread).map_or(now, |step| step.own);
        self.set(
            thread,
            Step {
                since,
                own,
                now,
                lender,
            },
        );
    }

    pub(super) fn finish(self, threads: usize) -> Grouped<Step> {
        Grouped::new(threads, &self.pairs)
    }
}
