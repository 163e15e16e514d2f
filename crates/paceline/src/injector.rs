//! Where tickets go that do not fit a seat's queue.
//!
//! A cold path: a seat moves thousands of tickets at a time and takes hundreds, so a lock is
//! cheaper here than anything clever. It is looked at before other seats' queues, because what is in
//! it is older.

use std::collections::VecDeque;

use platform::{Atomic, Lock, Memory, Ordering};

use crate::job::Ticket;

pub(crate) struct Injector<M: Memory> {
    /// How many there are; lets searchers skip the lock.
    len: M::AtomicU32,
    queue: M::Lock<VecDeque<Ticket>>,
}

impl<M: Memory> Injector<M> {
    pub(crate) fn new() -> Self {
        Injector {
            len: M::AtomicU32::new(0),
            queue: M::Lock::new(VecDeque::new()),
        }
    }

    /// Relaxed: a searcher that reads an old length is in the race that the idle protocol's fences
    /// settle, as for any queue.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn push(&self, tickets: &[Ticket]) {
        self.queue.with(|queue| {
            queue.extend(tickets);
            self.len.store(queue.len() as u32, Ordering::Relaxed);
        });
    }

    /// Takes up to `most` tickets, oldest first.
    pub(crate) fn take(&self, most: usize) -> Vec<Ticket> {
        if self.is_empty() {
            return Vec::new();
        }
        self.queue.with(|queue| {
            let tickets = queue.drain(..most.min(queue.len())).collect();
            self.len.store(queue.len() as u32, Ordering::Relaxed);
            tickets
        })
    }

    /// Calls `look` with each ticket until it is satisfied.
    pub(crate) fn scan(&self, mut look: impl FnMut(Ticket) -> bool) -> bool {
        !self.is_empty()
            && self
                .queue
                .with(|queue| queue.iter().any(|&ticket| look(ticket)))
    }
}
