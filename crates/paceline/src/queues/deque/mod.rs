//! The work-stealing deque of a thread slot.
#![doc = ""]
#![doc = include_str!("README.md")]

use platform::{Atomic, Memory, Ordering, Padded};

use crate::store::Ticket;

/// The largest ring; the anchor's fields are as wide as it needs.
pub(crate) const RING_MAX: usize = 4096;

/// See the module.
pub(crate) struct Deque<M: Memory> {
    anchor: Padded<M::AtomicU64>,
    ring: Box<[M::AtomicU64]>,
}

/// A decoded anchor word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Anchor {
    tag: u64,
    head: u64,
    len: u64,
}

impl Anchor {
    const LEN_BITS: u32 = 13;
    const HEAD_BITS: u32 = 12;

    #[inline]
    fn pack(self) -> u64 {
        debug_assert!(
            self.head < RING_MAX as u64 && self.len <= RING_MAX as u64,
            "{self:?}"
        );
        self.tag << (Anchor::HEAD_BITS + Anchor::LEN_BITS)
            | self.head << Anchor::LEN_BITS
            | self.len
    }

    #[inline]
    fn unpack(word: u64) -> Anchor {
        Anchor {
            tag: word >> (Anchor::HEAD_BITS + Anchor::LEN_BITS),
            head: word >> Anchor::LEN_BITS & ((1 << Anchor::HEAD_BITS) - 1),
            len: word & ((1 << Anchor::LEN_BITS) - 1),
        }
    }
}

impl<M: Memory> Deque<M> {
    /// A deque for `capacity` tickets, a power of two up to [`RING_MAX`].
    pub(crate) fn new(capacity: usize) -> Deque<M> {
        assert!(
            capacity.is_power_of_two() && capacity <= RING_MAX,
            "ring of {capacity}"
        );
        let empty = Anchor {
            tag: 0,
            head: 0,
            len: 0,
        };
        Deque {
            anchor: Padded(M::on_own_lines(|| M::AtomicU64::new(empty.pack()))),
            ring: M::on_own_lines(|| (0..capacity).map(|_| M::AtomicU64::new(0)).collect()),
        }
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.ring.len() as u64
    }

    #[inline]
    fn slot(&self, at: u64) -> &M::AtomicU64 {
        let place = (at & (self.capacity() - 1)) as usize;
        debug_assert!(place < self.ring.len());
        // SAFETY: `new` has seen to it that the length is a power of two, so at least 1, and it never
        // changes. Any number masked with the length less one is below the length.
        unsafe { self.ring.get_unchecked(place) }
    }

    /// Relaxed: for reads after which nothing is changed.
    #[inline]
    fn anchor(&self) -> Anchor {
        Anchor::unpack(self.anchor.load(Ordering::Relaxed))
    }

    /// The anchor, for the owner, which is going to change it.
    #[inline]
    fn anchor_to_change(&self) -> Anchor {
        // Acquire: edge D2, partner: the CAS in `steal`.
        Anchor::unpack(self.anchor.load(Ordering::Acquire))
    }

    #[inline]
    fn set_anchor(&self, anchor: Anchor) {
        // Release: edge D1, partner: the Acquire load in `steal`.
        self.anchor.store(anchor.pack(), Ordering::Release);
    }

    /// How many tickets there are, as far as the caller can see.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.anchor().len as usize
    }

    /// Owner: how many more tickets fit.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.ring.len() - self.len()
    }

    /// Owner: adds a ticket at the back; false if the ring is full.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, ticket: Ticket) -> bool {
        let Anchor { tag, head, len } = self.anchor_to_change();
        if len == self.capacity() {
            return false;
        }
        // Relaxed: published by the anchor.
        self.slot(head + len).store(ticket.0, Ordering::Relaxed);
        self.set_anchor(Anchor {
            tag: tag.wrapping_add(1),
            head,
            len: len + 1,
        });
        true
    }

    /// Any thread: the oldest ticket, left where it is. When the caller uses it, it may be gone, or another
    /// ticket may be the oldest.
    pub(crate) fn peek_oldest(&self) -> Option<Ticket> {
        // Acquire: edge D1, partner: `set_anchor`.
        let Anchor { head, len, .. } = Anchor::unpack(self.anchor.load(Ordering::Acquire));
        let ticket = Ticket(self.slot(head).load(Ordering::Relaxed));
        (len > 0 && !ticket.is_none()).then_some(ticket)
    }

    /// Owner: the newest ticket, left where it is, and the ticket that will be the newest after `depth`
    /// takes.
    #[inline]
    pub(crate) fn peek_newest_and_below(&self, depth: u64) -> Option<(Ticket, Option<Ticket>)> {
        let Anchor { head, len, .. } = self.anchor();
        let at = |depth| Ticket(self.slot(head + len - 1 - depth).load(Ordering::Relaxed));
        (len > 0).then(|| (at(0), (len > depth).then(|| at(depth))))
    }

    /// Owner: takes the newest ticket.
    #[inline]
    pub(crate) fn take_newest(&self) -> Option<Ticket> {
        let taken = self.take_newest_and_below(u64::MAX)?;
        Some(taken.0)
    }

    /// The same, with the ticket that will be the newest after `depth - 1` more takes.
    #[inline]
    pub(crate) fn take_newest_and_below(&self, depth: u64) -> Option<(Ticket, Option<Ticket>)> {
        let Anchor { tag, head, len } = self.anchor_to_change();
        if len == 0 {
            return None;
        }
        let at = |depth| Ticket(self.slot(head + len - 1 - depth).load(Ordering::Relaxed));
        let (newest, below) = (at(0), (len > depth).then(|| at(depth)));
        self.set_anchor(Anchor {
            tag,
            head,
            len: len - 1,
        });
        Some((newest, below))
    }

    /// Owner: takes the newest ticket, of which the caller knows all it wants.
    #[inline]
    pub(crate) fn drop_newest(&self) {
        let Anchor { tag, head, len } = self.anchor_to_change();
        if len > 0 {
            let len = len - 1;
            self.set_anchor(Anchor { tag, head, len });
        }
    }

    /// Owner: takes the oldest ticket, without the read-modify-write that a thief needs.
    #[inline]
    pub(crate) fn take_oldest(&self) -> Option<Ticket> {
        let Anchor { tag, head, len } = self.anchor_to_change();
        if len == 0 {
            return None;
        }
        let ticket = Ticket(self.slot(head).load(Ordering::Relaxed));
        let head = (head + 1) & (self.capacity() - 1);
        self.set_anchor(Anchor {
            tag,
            head,
            len: len - 1,
        });
        Some(ticket)
    }

    /// Owner: takes the older half out, oldest first.
    pub(crate) fn spill(&self) -> Vec<Ticket> {
        let Anchor { tag, head, len } = self.anchor_to_change();
        let half = len.div_ceil(2);
        let tickets = (0..half)
            .map(|i| Ticket(self.slot(head + i).load(Ordering::Relaxed)))
            .collect();
        let head = (head + half) & (self.capacity() - 1);
        self.set_anchor(Anchor {
            tag,
            head,
            len: len - half,
        });
        tickets
    }

    /// Thief: takes the oldest ticket.
    #[inline]
    pub(crate) fn steal_one(&self) -> Option<Ticket> {
        let mut one = Ticket::NONE;
        (self.steal::<1>(|_| 1, |ticket| one = ticket) > 0).then_some(one)
    }

    /// Thief: takes the older half, at most `most` tickets, and hands them to `each`, oldest first. Returns
    /// how many there were.
    #[inline]
    pub(crate) fn steal_half(&self, most: usize, each: impl FnMut(Ticket)) -> usize {
        self.steal::<STEAL_MAX>(
            |len| len.div_ceil(2).min(most as u64).min(STEAL_MAX as u64),
            each,
        )
    }

    /// `MOST`: the most tickets that `amount` can ask for. One ticket takes no lines of the stack for many.
    fn steal<const MOST: usize>(
        &self,
        amount: impl Fn(u64) -> u64,
        mut each: impl FnMut(Ticket),
    ) -> usize {
        let mut loot = [0u64; MOST];
        // Acquire: edge D1, partner: `set_anchor`.
        let mut word = self.anchor.load(Ordering::Acquire);
        loop {
            let Anchor { tag, head, len } = Anchor::unpack(word);
            if len == 0 {
                return 0;
            }
            let k = amount(len);
            for (i, place) in loot.iter_mut().enumerate().take(k as usize) {
                *place = self.slot(head + i as u64).load(Ordering::Relaxed);
            }
            let head = (head + k) & (self.capacity() - 1);
            let new = Anchor {
                tag,
                head,
                len: len - k,
            }
            .pack();
            // Release on success: edge D2, partner: `anchor_to_change`. The next thief synchronises with the
            // owner through this read-modify-write. Acquire on failure: edge D1 again.
            match self
                .anchor
                .compare_exchange(word, new, Ordering::Release, Ordering::Acquire)
            {
                Ok(_) => {
                    for &ticket in &loot[..k as usize] {
                        each(Ticket(ticket));
                    }
                    return k as usize;
                }
                Err(now) => word = now,
            }
        }
    }

    /// Any thread: calls `look` with each ticket from the newest to the oldest, as far as this thread can see
    /// them, until `look` returns true. Tickets stay where they are.
    pub(crate) fn scan(&self, mut look: impl FnMut(Ticket) -> bool) -> bool {
        // Acquire: edge D1, partner: `set_anchor`. A slot that is overwritten meanwhile shows another ticket
        // of this queue, which does as well.
        let Anchor { head, len, .. } = Anchor::unpack(self.anchor.load(Ordering::Acquire));
        (0..len).rev().any(|i| {
            let ticket = Ticket(self.slot(head + i).load(Ordering::Acquire));
            !ticket.is_none() && look(ticket)
        })
    }
}

/// How many tickets one steal moves at most: they pass through the thief's stack.
pub(crate) const STEAL_MAX: usize = 64;

#[cfg(test)]
mod tests {
    //! Goal: without concurrency the deque is a double-ended queue. Method: random operations
    //! against `VecDeque`.
    use super::*;
    use platform::Os;
    use std::collections::VecDeque;

    /// The newest of these, and the one that is there after two more takes.
    fn newest_and_below(model: &VecDeque<u64>) -> Option<(Ticket, Option<Ticket>)> {
        let below = |depth: usize| {
            let place = model.len().checked_sub(depth + 1)?;
            model.get(place).copied().map(Ticket)
        };
        below(0).map(|newest| (newest, below(2)))
    }

    #[test]
    fn behaves_like_a_double_ended_queue() {
        let deque = Deque::<Os>::new(8);
        let mut model = VecDeque::new();
        let (mut random, mut next) = (1u64, 1u64);
        for _ in 0..if cfg!(miri) { 1_000 } else { 100_000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match random >> 61 {
                0..3 => {
                    let put = deque.put(Ticket(next));
                    assert_eq!(put, model.len() < 8);
                    if put {
                        model.push_back(next);
                    }
                    next += 1;
                }
                3 if next % 2 == 0 => {
                    deque.drop_newest();
                    model.pop_back();
                }
                3 => assert_eq!(deque.take_newest(), model.pop_back().map(Ticket)),
                4 => {
                    let both = newest_and_below(&model);
                    assert_eq!(deque.take_newest_and_below(2), both);
                    model.pop_back();
                }
                5 => assert_eq!(deque.steal_one(), model.pop_front().map(Ticket)),
                6 => {
                    let half = model.len().div_ceil(2).min(3);
                    let expected: Vec<u64> = model.drain(..half).collect();
                    let mut got = Vec::new();
                    deque.steal_half(3, |ticket| got.push(ticket.0));
                    assert_eq!(got, expected);
                }
                _ => {
                    let half = model.len().div_ceil(2);
                    let expected: Vec<Ticket> = model.drain(..half).map(Ticket).collect();
                    assert_eq!(deque.spill(), expected);
                }
            }
            assert_eq!(deque.len(), model.len());
            assert_eq!(deque.peek_newest_and_below(2), newest_and_below(&model));
        }
    }
}
