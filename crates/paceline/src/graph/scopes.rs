//! The ends of a scope's jobs without names: the thread that has run them counts them, and subtracts many at
//! a time from the scope's count.

use platform::Platform;

use super::{Driver, OnGraph};
use crate::queues::Queue;
use crate::store::Ticket;

/// Jobs of one scope that have finished on one thread.
#[derive(Clone, Copy)]
pub(crate) struct Finished {
    scope: Ticket,
    /// At most as many as fit. When it is full they are subtracted.
    count: u16,
}

impl Finished {
    pub(super) const NONE: Finished = Finished {
        scope: Ticket::NONE,
        count: 0,
    };
}

impl<P: Platform, D: Driver<P>> OnGraph<'_, P, D> {
    /// One more job of this scope has finished here. The subtraction is put off while jobs of the same scope
    /// follow: the scope cannot end before it is made.
    #[inline]
    pub(crate) fn finished_in(self, scope: Ticket, queue: Queue) {
        let other = self.driver.local(|local| {
            let before = local.finished;
            if before.scope == scope
                && let Some(count) = before.count.checked_add(1)
            {
                local.finished.count = count;
                return None;
            }
            local.finished = Finished { scope, count: 1 };
            Some(before)
        });
        if let Some(other) = other {
            self.subtract(other, queue);
        }
    }

    /// Makes the subtraction that was put off. Called before this thread looks elsewhere for work, or waits.
    #[inline]
    pub(crate) fn flush_finished(self) {
        let due = self
            .driver
            .local(|local| std::mem::replace(&mut local.finished, Finished::NONE));
        if due.count > 0 {
            self.subtract(due, Queue::Own);
            self.finish_todo(Queue::Own);
        }
    }

    /// The same before this thread runs a job of `scope`, unless the subtraction is for that scope.
    #[inline]
    pub(crate) fn flush_finished_elsewhere(self, scope: impl FnOnce() -> Ticket) {
        if self
            .driver
            .local(|local| local.finished.count > 0 && scope() != local.finished.scope)
        {
            self.flush_finished();
        }
    }

    fn subtract(self, due: Finished, queue: Queue) {
        if due.count > 0 {
            self.release(due.scope, due.count.into(), queue);
        }
    }
}
