//! A queue of tickets with a key: the greatest key first, the oldest first among equals. The key is a rank,
//! or is made of a deadline ([`key_of_deadline`]).
//!
//! It is a binary heap under a lock (Williams, "Algorithm 232: Heapsort", 1964). A shared order costs each
//! ticket a turn at one cache line, so the jobs that go here take longer than such a turn. Threads that
//! search skip the lock by one load: that of the key of the best ticket.

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::Ticket;

/// In place of the key of the best ticket: there is none.
const NO_KEY: u64 = 0;

/// The key of a ticket of which this is the deadline. It is above that of every rank.
pub(crate) fn key_of_deadline(deadline: Nanos) -> u64 {
    const ABOVE_RANKS: u64 = 1 << 63;
    (!deadline.0).max(ABOVE_RANKS)
}

pub(crate) struct RankedQueue<M: Memory> {
    /// The key of the best ticket, [`NO_KEY`] if there is none. Written under the lock.
    best: M::AtomicU64,
    heap: M::Lock<Heap>,
}

#[derive(Default)]
struct Heap {
    /// No entry goes before its parent: that at half its number.
    entries: Vec<Entry>,
    /// How many tickets there have been.
    pushed: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    number: u64,
    ticket: Ticket,
}

impl Entry {
    fn goes_before(&self, other: &Entry) -> bool {
        (self.key, other.number) > (other.key, self.number)
    }
}

impl Heap {
    fn best(&self) -> u64 {
        self.entries.first().map_or(NO_KEY, |entry| entry.key)
    }

    fn push(&mut self, ticket: Ticket, key: u64) {
        self.pushed += 1;
        let number = self.pushed;
        self.entries.push(Entry {
            key,
            number,
            ticket,
        });
        self.rise(self.entries.len() - 1);
    }

    /// Takes the entry in this place.
    fn take(&mut self, place: usize) -> Ticket {
        let entry = self.entries.swap_remove(place);
        if place < self.entries.len() {
            // The last entry is here now. It may belong on either side.
            self.rise(place);
            self.sink(place);
        }
        entry.ticket
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.entries[place].goes_before(&self.entries[parent]) {
                return;
            }
            self.entries.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..self.entries.len()).take(2);
            let first = children.reduce(|left, right| {
                let right_first = self.entries[right].goes_before(&self.entries[left]);
                if right_first { right } else { left }
            });
            match first {
                Some(child) if self.entries[child].goes_before(&self.entries[place]) => {
                    self.entries.swap(place, child);
                    place = child;
                }
                _ => return,
            }
        }
    }

    /// The place of the first entry in order that `wanted` accepts.
    fn first_of(&self, mut wanted: impl FnMut(Ticket) -> bool) -> Option<usize> {
        let mut first: Option<usize> = None;
        for (place, entry) in self.entries.iter().enumerate() {
            let is_first = first.is_none_or(|first| entry.goes_before(&self.entries[first]));
            if is_first && wanted(entry.ticket) {
                first = Some(place);
            }
        }
        first
    }
}

impl<M: Memory> RankedQueue<M> {
    pub(crate) fn new() -> Self {
        RankedQueue {
            best: M::AtomicU64::new(NO_KEY),
            heap: M::Lock::new(Heap::default()),
        }
    }

    /// The key of the best ticket, or 0.
    ///
    /// Relaxed: a searcher that reads an old one is in the same race as for any queue, which the fences of
    /// the idle protocol settle.
    #[inline]
    pub(crate) fn best(&self) -> u64 {
        self.best.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.best() == NO_KEY
    }

    /// How many tickets there are.
    pub(crate) fn len(&self) -> usize {
        self.heap.with(|heap| heap.entries.len())
    }

    /// No key is 0.
    pub(crate) fn push(&self, ticket: Ticket, key: u64) {
        debug_assert!(key != NO_KEY, "it means that there is no ticket");
        self.change(|heap| heap.push(ticket, key));
    }

    /// Takes the best ticket, if it is above this key and `wanted`, which is called under the lock, accepts
    /// it.
    #[inline]
    pub(crate) fn take_best_if(
        &self,
        above: u64,
        wanted: impl FnOnce(Ticket) -> bool,
    ) -> Option<Ticket> {
        if self.best() <= above {
            return None;
        }
        self.change(|heap| {
            let best = heap.entries.first()?;
            (best.key > above && wanted(best.ticket)).then(|| heap.take(0))
        })
    }

    /// Takes the best ticket of those that `wanted` accepts. It may look at all, under the lock.
    pub(crate) fn take_first_of(&self, wanted: impl FnMut(Ticket) -> bool) -> Option<Ticket> {
        if self.is_empty() {
            return None;
        }
        self.change(|heap| {
            let place = heap.first_of(wanted)?;
            Some(heap.take(place))
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Heap) -> R) -> R {
        self.heap.with(|heap| {
            let result = change(heap);
            self.best.store(heap.best(), Ordering::Relaxed);
            result
        })
    }

    /// Calls `look` with each ticket, in no order, until `look` returns true. Returns whether it did.
    #[inline(never)]
    pub(crate) fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool {
        !self.is_empty()
            && self
                .heap
                .with(|heap| heap.entries.iter().any(|entry| look(entry.ticket)))
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: an earlier deadline has a greater key, and any rank a lesser one. Method: the least and the
    /// greatest of each, and some between.
    #[test]
    fn keys_follow_deadlines() {
        let deadlines = [0, 1, 1_000_000, 60_000_000_000, 1 << 62].map(Nanos);
        let keys = deadlines.map(key_of_deadline);
        assert!(keys.is_sorted_by(|earlier, later| earlier > later));
        assert!(key_of_deadline(Nanos::MAX) > u64::from(u32::MAX));
    }

    /// Goal: tickets come out by key, and by age among equals, each once, also if only some are wanted, or
    /// only the best if it is above a key; the published key is that of the best. Method: random pushes and
    /// takes of a few keys, against a list that is searched from its beginning.
    #[test]
    fn the_best_comes_first() {
        let queue = RankedQueue::<Os>::new();
        let mut model: Vec<(u64, Ticket)> = Vec::new();
        let (mut random, mut next) = (1u64, 1u64);
        for _ in 0..if cfg!(miri) { 300 } else { 30_000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (key, modulus) = ((random >> 60) + 1, random >> 40 & 3);
            if random >> 63 == 0 && model.len() < 100 {
                queue.push(Ticket(next), key);
                model.push((key, Ticket(next)));
                next += 1;
            } else {
                let above = random >> 50 & 3;
                let wanted = |ticket: Ticket| modulus == 0 || ticket.0 % 3 == modulus - 1;
                // The first of the greatest.
                let best = |of: &mut dyn Iterator<Item = (u64, Ticket)>| {
                    of.reduce(|a, b| if b.0 > a.0 { b } else { a })
                };
                let looks_at_all = random >> 33 & 1 == 0;
                let expected = if looks_at_all {
                    let mut of = model.iter().copied();
                    best(&mut of.by_ref().filter(|(_, ticket)| wanted(*ticket)))
                } else {
                    let best = best(&mut model.iter().copied());
                    best.filter(|(key, ticket)| *key > above && wanted(*ticket))
                };
                model.retain(|&entry| Some(entry) != expected);
                let taken = if looks_at_all {
                    queue.take_first_of(wanted)
                } else {
                    queue.take_best_if(above, wanted)
                };
                assert_eq!(taken, expected.map(|(_, ticket)| ticket));
            }
            let best = model.iter().map(|(key, _)| *key).max();
            assert_eq!(queue.best(), best.unwrap_or(NO_KEY));
            assert_eq!(queue.len(), model.len());
            let mut seen = Vec::new();
            queue.scan(&mut |ticket| {
                seen.push(ticket);
                false
            });
            seen.sort_unstable_by_key(|ticket| ticket.0);
            assert!(seen.iter().eq(model.iter().map(|(_, ticket)| ticket)));
        }
    }
}
