//! The queue for tickets that do not fit the queue of a thread slot.
//!
//! It is a cold path: a thread moves thousands of tickets into it at a time and takes hundreds out, so a lock
//! is cheaper here than anything clever. A thread looks at it before the queues of other thread slots,
//! because the tickets in it are older.

use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::Ticket;

/// So many tickets may lie there for nothing: 32 KiB.
const WORTH_A_LOOK: usize = 4096;

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
    /// When more than this are left, and [`WORTH_A_LOOK`], those of jobs that are over go.
    enough: usize,
}

impl Fifo {
    /// The tickets that are left, oldest first.
    fn left(&self) -> &[Ticket] {
        self.tickets.get(self.taken..).unwrap_or_default()
    }

    /// First makes room. Where many tickets are left those of jobs that are over go: a wait takes the job
    /// that it needs and leaves the ticket, so if nobody else takes tickets they would pile up. After that
    /// there have to be twice as many for another look, so a look costs a push a step or two. Otherwise no
    /// more tickets are moved than were taken since it was done last.
    fn push(&mut self, tickets: &[Ticket], is_over: &dyn Fn(Ticket) -> bool) {
        let is_full = self.left().len() > WORTH_A_LOOK.max(self.enough);
        if is_full || self.taken > self.tickets.len() / 2 {
            let mut kept = 0;
            let mut number = self.taken;
            // Without indexing, which would bring its messages into every program.
            while let Some(&ticket) = self.tickets.get(number) {
                number += 1;
                if (!is_full || !is_over(ticket))
                    && let Some(place) = self.tickets.get_mut(kept)
                {
                    *place = ticket;
                    kept += 1;
                }
            }
            self.tickets.truncate(kept);
            self.taken = 0;
            self.enough = 2 * kept;
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

    /// `is_over`: whether the job with a ticket is over. It is asked now and then.
    pub(crate) fn push(&self, tickets: &[Ticket], is_over: &dyn Fn(Ticket) -> bool) {
        self.queue.with(|queue| {
            queue.push(tickets, is_over);
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
                injector.push(&batch, &|_| unreachable!("they are few"));
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

    /// Goal: tickets of jobs that are over do not pile up, and no other is lost. Method: one of ten jobs
    /// stays, the others are over at once, and none is ever taken.
    #[test]
    fn tickets_of_jobs_that_are_over_do_not_pile_up_long() {
        let injector = Injector::<Os>::new();
        let stays = |ticket: Ticket| ticket.0.is_multiple_of(10);
        for job in 1..=20_000 {
            injector.push(&[Ticket(job)], &|ticket| !stays(ticket));
        }
        let left = injector.take(usize::MAX);
        assert!(left.len() < 2000 + 2 * WORTH_A_LOOK, "{}", left.len());
        let (staying, over): (Vec<_>, Vec<_>) = left.into_iter().partition(|&job| stays(job));
        let expected = (1..=2000).map(|job| Ticket(10 * job));
        assert!(staying.into_iter().eq(expected) && over.len() < WORTH_A_LOOK);
    }
}
