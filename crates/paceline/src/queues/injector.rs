//! The queue for tickets that do not fit the queue of a thread slot.
//!
//! It is a cold path: a thread moves thousands of tickets into it at a time and takes hundreds out, so a lock
//! is cheaper here than anything clever. A thread looks at it before the queues of other thread slots,
//! because the tickets in it are older.

use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::Ticket;

pub(crate) struct Injector<M: Memory> {
    /// How many tickets there are. It lets searchers skip the lock.
    len: M::AtomicU32,
    queue: M::Lock<Fifo>,
}

/// Tickets in the order of their coming. It takes fewer instructions a ticket than a `VecDeque`, which moves
/// each by itself.
#[derive(Default)]
struct Fifo {
    tickets: Vec<Ticket>,
    /// How many of them, from the oldest on, were taken.
    taken: usize,
}

impl Fifo {
    /// The tickets that are left, oldest first.
    fn left(&self) -> &[Ticket] {
        self.tickets.get(self.taken..).unwrap_or_default()
    }

    fn push(&mut self, tickets: &[Ticket]) {
        // This moves no more tickets than were taken since it was done last.
        if self.taken > self.tickets.len() / 2 {
            let left = self.tickets.len() - self.taken;
            self.tickets.copy_within(self.taken.., 0);
            self.tickets.truncate(left);
            self.taken = 0;
        }
        self.tickets.extend_from_slice(tickets);
    }
}

impl<M: Memory> Injector<M> {
    pub(crate) fn new() -> Self {
        Injector {
            len: M::AtomicU32::new(0),
            queue: M::Lock::new(Fifo::default()),
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
            queue.push(tickets);
            self.len.store(queue.left().len() as u32, Ordering::Relaxed);
        });
    }

    /// Takes up to `most` tickets, oldest first.
    pub(crate) fn take(&self, most: usize) -> Vec<Ticket> {
        if self.is_empty() {
            return Vec::new();
        }
        self.queue.with(|queue| {
            let left = queue.left();
            let tickets = left[..most.min(left.len())].to_vec();
            queue.taken += tickets.len();
            self.len.store(queue.left().len() as u32, Ordering::Relaxed);
            tickets
        })
    }

    /// Calls `look` with each ticket until `look` returns true. Returns whether it did.
    #[inline(never)]
    pub(crate) fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        !self.is_empty()
            && self
                .queue
                .with(|queue| queue.left().iter().any(|&ticket| look(ticket)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use platform::Os;

    use super::*;

    /// Goal: tickets come out in the order in which they went in, each once, and those taken keep no memory.
    /// Method: random batches in and out, against a `VecDeque`; at the end the capacity, which grows by
    /// doubling, against the most tickets that were there at a time.
    #[test]
    fn tickets_keep_their_order() {
        const BATCH: u64 = 20;
        let injector = Injector::<Os>::new();
        let (mut model, mut most) = (VecDeque::new(), 0);
        let (mut random, mut next) = (1u64, 1u64);
        for _ in 0..if cfg!(miri) { 300 } else { 30_000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let count = (random >> 40) % BATCH;
            if random >> 63 == 0 && model.len() < 200 {
                let batch: Vec<Ticket> = (next..next + count).map(Ticket).collect();
                next += count;
                injector.push(&batch);
                model.extend(batch);
            } else {
                let taken = injector.take(count as usize);
                let expected: Vec<Ticket> =
                    model.drain(..model.len().min(count as usize)).collect();
                assert_eq!(taken, expected);
            }
            most = most.max(model.len());
            assert_eq!(injector.len(), model.len());
            let mut seen = Vec::new();
            injector.scan(&mut |ticket| {
                seen.push(ticket);
                false
            });
            assert_eq!(model, seen);
        }
        let capacity = injector.queue.with(|queue| queue.tickets.capacity());
        let needed = 2 * most + BATCH as usize;
        assert!(capacity <= 2 * needed, "{capacity} for {most} tickets");
    }
}
