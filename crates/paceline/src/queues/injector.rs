//! The queue for tickets that do not fit the queue of a thread slot.
//!
//! It is a cold path: a thread moves thousands of tickets into it at a time and takes hundreds out, so a lock
//! is cheaper here than anything clever. A thread looks at it before the queues of other thread slots,
//! because the tickets in it are older.

use std::collections::VecDeque;

use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::Ticket;

pub(crate) struct Injector<M: Memory> {
    /// How many tickets there are. It lets searchers skip the lock.
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

    /// Relaxed: a searcher that reads an old length is in the same race as for any queue, which the fences of
    /// the idle protocol settle.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// How many tickets there are, as far as the caller can see.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: only a number.
        self.len.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn push(&self, tickets: &[Ticket]) {
        self.queue.with(|queue| {
            for &ticket in tickets {
                queue.push_back(ticket);
            }
            self.len.store(queue.len() as u32, Ordering::Relaxed);
        });
    }

    /// Takes up to `most` tickets, oldest first.
    pub(crate) fn take(&self, most: usize) -> Vec<Ticket> {
        if self.is_empty() {
            return Vec::new();
        }
        self.queue.with(|queue| {
            let mut tickets = Vec::with_capacity(most.min(queue.len()));
            while tickets.len() < most
                && let Some(ticket) = queue.pop_front()
            {
                tickets.push(ticket);
            }
            self.len.store(queue.len() as u32, Ordering::Relaxed);
            tickets
        })
    }

    /// Calls `look` with each ticket until `look` returns true. Returns whether it did.
    pub(crate) fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        !self.is_empty()
            && self
                .queue
                .with(|queue| queue.iter().any(|&ticket| look(ticket)))
    }
}
