//! The queue of tickets with a rank: the greatest rank first, the oldest first among equals.
//!
//! It is a binary heap under a lock (Williams, "Algorithm 232: Heapsort", 1964). A shared order costs each
//! ticket a turn at one cache line, so the jobs that go here take longer than such a turn. Threads that
//! search skip the lock by one load: that of the rank of the best ticket.

use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::{Rank, Ticket};

pub(crate) struct RankedQueue<M: Memory> {
    /// The rank of the best ticket, [`Rank::NONE`] if there is none. Written under the lock.
    best: M::AtomicU32,
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
    rank: Rank,
    number: u64,
    ticket: Ticket,
}

impl Entry {
    fn goes_before(&self, other: &Entry) -> bool {
        (self.rank, other.number) > (other.rank, self.number)
    }
}

impl Heap {
    fn best(&self) -> Rank {
        self.entries.first().map_or(Rank::NONE, |entry| entry.rank)
    }

    fn push(&mut self, ticket: Ticket, rank: Rank) {
        self.pushed += 1;
        let number = self.pushed;
        self.entries.push(Entry {
            rank,
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
            best: M::AtomicU32::new(Rank::NONE.0),
            heap: M::Lock::new(Heap::default()),
        }
    }

    /// The rank of the best ticket, or [`Rank::NONE`].
    ///
    /// Relaxed: a searcher that reads an old one is in the same race as for any queue, which the fences of
    /// the idle protocol settle.
    #[inline]
    pub(crate) fn best(&self) -> Rank {
        Rank(self.best.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.best() == Rank::NONE
    }

    /// How many tickets there are.
    pub(crate) fn len(&self) -> usize {
        self.heap.with(|heap| heap.entries.len())
    }

    pub(crate) fn push(&self, ticket: Ticket, rank: Rank) {
        self.change(|heap| heap.push(ticket, rank));
    }

    /// Takes the best ticket, if it is above this rank and `wanted`, which is called under the lock, accepts
    /// it.
    #[inline]
    pub(crate) fn take_best_if(
        &self,
        above: Rank,
        wanted: impl FnOnce(Ticket) -> bool,
    ) -> Option<Ticket> {
        if self.best() <= above {
            return None;
        }
        self.change(|heap| {
            let best = heap.entries.first()?;
            (best.rank > above && wanted(best.ticket)).then(|| heap.take(0))
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
            self.best.store(heap.best().0, Ordering::Relaxed);
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

    /// Goal: tickets come out by rank, and by age among equals, each once, also if only some are wanted, or
    /// only the best if it is above a rank; the published rank is that of the best. Method: random pushes and
    /// takes of a few ranks, against a list that is searched from its beginning.
    #[test]
    fn the_best_comes_first() {
        let queue = RankedQueue::<Os>::new();
        let mut model: Vec<(u32, Ticket)> = Vec::new();
        let (mut random, mut next) = (1u64, 1u64);
        for _ in 0..if cfg!(miri) { 300 } else { 30_000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (rank, modulus) = ((random >> 60) as u32 + 1, random >> 40 & 3);
            if random >> 63 == 0 && model.len() < 100 {
                queue.push(Ticket(next), Rank(rank));
                model.push((rank, Ticket(next)));
                next += 1;
            } else {
                let above = Rank((random >> 50) as u32 & 3);
                let wanted = |ticket: Ticket| modulus == 0 || ticket.0 % 3 == modulus - 1;
                // The first of the greatest.
                let best = |of: &mut dyn Iterator<Item = (u32, Ticket)>| {
                    of.reduce(|a, b| if b.0 > a.0 { b } else { a })
                };
                let looks_at_all = random >> 33 & 1 == 0;
                let expected = if looks_at_all {
                    let mut of = model.iter().copied();
                    best(&mut of.by_ref().filter(|(_, ticket)| wanted(*ticket)))
                } else {
                    let best = best(&mut model.iter().copied());
                    best.filter(|(rank, ticket)| *rank > above.0 && wanted(*ticket))
                };
                model.retain(|&entry| Some(entry) != expected);
                let taken = if looks_at_all {
                    queue.take_first_of(wanted)
                } else {
                    queue.take_best_if(above, wanted)
                };
                assert_eq!(taken, expected.map(|(_, ticket)| ticket));
            }
            let best = model.iter().map(|(rank, _)| *rank).max();
            assert_eq!(queue.best(), Rank(best.unwrap_or(0)));
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
