//! The part of a slab that all its threads share: the magazines, and the entries never handed out. It deals
//! in indices only. So its code is the same for slabs of all sorts of entries.

use platform::{Atomic, Memory, Ordering};

use super::{Cache, Chunks, LIMIT_MAX, NIL, PREFETCH_AHEAD, ROUNDS, Rounds};

/// What a depot asks of the slab that it belongs to.
pub(super) trait Entries {
    /// Makes sure that the entry with this index exists.
    fn ensure(&self, index: u32);

    fn prefetch(&self, index: u32);
}

/// See the module.
pub(super) struct Depot<M: Memory> {
    pub(super) magazines: Chunks<M, Magazine<M>>,
    /// The first entry never handed out, and the first magazine never made.
    fresh_entry: M::AtomicU32,
    fresh_magazine: M::AtomicU32,
    /// Each is `tag 32 | topmost magazine 32`.
    full: M::AtomicU64,
    empty: M::AtomicU64,
    /// How many entries can be live in any case.
    limit: u32,
    /// An upper bound of the number of caches.
    caches: M::AtomicU32,
    /// How many entries never used before a cache is given at a time.
    portion: u32,
}

/// An array of free entries. The thread that has popped it makes all accesses, which are Relaxed: the stacks
/// publish them with the magazine.
pub(super) struct Magazine<M: Memory> {
    rounds: [M::AtomicU32; ROUNDS],
    len: M::AtomicU32,
    /// The magazine below on the stack.
    below: M::AtomicU32,
}

impl<M: Memory> Magazine<M> {
    fn new() -> Magazine<M> {
        Magazine {
            rounds: std::array::from_fn(|_| M::AtomicU32::new(NIL)),
            len: M::AtomicU32::new(0),
            below: M::AtomicU32::new(NIL),
        }
    }

    fn fill(&self, rounds: &Rounds) {
        let indices = &rounds.indices[..rounds.len];
        for (round, &index) in self.rounds.iter().zip(indices) {
            round.store(index, Ordering::Relaxed);
        }
        self.len.store(rounds.len as u32, Ordering::Relaxed);
    }

    fn empty(&self) -> Rounds {
        let mut rounds = Rounds::NONE;
        rounds.len = self.len.load(Ordering::Relaxed) as usize;
        let indices = &mut rounds.indices[..rounds.len];
        for (round, index) in self.rounds.iter().zip(indices) {
            *index = round.load(Ordering::Relaxed);
        }
        rounds
    }
}

impl<M: Memory> Depot<M> {
    /// For a slab that holds `limit` live entries in any case, `most` with those in its caches.
    #[inline(never)] // Once for all slabs.
    pub(super) fn new(limit: u32, most: u32, caches: u32, portion: u32) -> Depot<M> {
        // At worst every free entry was freed from afar and has a magazine to itself, and every thread is
        // about to fill one more.
        let magazines = most + 2 * caches + 2;
        Depot {
            magazines: Chunks::new(magazines, limit / portion),
            fresh_entry: M::AtomicU32::new(0),
            fresh_magazine: M::AtomicU32::new(0),
            full: M::AtomicU64::new(u64::from(NIL)),
            empty: M::AtomicU64::new(u64::from(NIL)),
            limit,
            caches: M::AtomicU32::new(0),
            portion,
        }
    }

    /// The limit of all entries, with those that lie in caches.
    pub(super) fn with_hoards(limit: u32, caches: u32) -> u32 {
        let hoarded = caches.saturating_mul(2 * ROUNDS as u32);
        limit.saturating_add(hoarded).min(LIMIT_MAX)
    }

    /// See [`Slab::make_room_for_cache`](super::Slab::make_room_for_cache).
    pub(super) fn make_room_for_cache(&self, number: u32) {
        // Relaxed: only a number. The thread that is about to use the cache sees it.
        self.caches.fetch_max(number + 1, Ordering::Relaxed);
    }

    /// See [`Slab::reserve`](super::Slab::reserve).
    pub(super) fn reserve(&self, live: u32, entries: &dyn Entries) {
        // Relaxed: a number. A cache that comes later makes room for itself.
        let caches = self.caches.load(Ordering::Relaxed);
        let live = live.min(self.limit);
        entries.ensure(Self::with_hoards(live, caches) - 1);
        // At worst each free entry was freed from afar, and has a magazine to itself.
        self.magazines.ensure(live + 2 * caches + 1, Magazine::new);
    }

    /// The near magazine is empty: replaces it by one with rounds.
    #[cold]
    pub(super) fn refill(&self, cache: &mut Cache, entries: &dyn Entries) -> Option<()> {
        if cache.far.len > 0 {
            std::mem::swap(&mut cache.near, &mut cache.far);
            return Some(());
        }
        cache.near = match self.pop(&self.full) {
            Some((number, magazine)) => {
                let rounds = magazine.empty();
                self.push(&self.empty, number, magazine);
                rounds
            }
            None => self.fresh(entries)?,
        };
        // The first entries that this magazine gives: other threads have used them last.
        let indices = &cache.near.indices[..cache.near.len];
        for &index in indices.iter().rev().take(PREFETCH_AHEAD) {
            entries.prefetch(index);
        }
        Some(())
    }

    /// The near magazine is full: replaces it by one with room.
    #[cold]
    pub(super) fn make_room(&self, cache: &mut Cache) {
        if cache.far.len == ROUNDS {
            self.put_back(&cache.far);
            cache.far.len = 0;
        }
        std::mem::swap(&mut cache.near, &mut cache.far);
    }

    /// Gives rounds to the shared stack, for any cache.
    pub(super) fn put_back(&self, rounds: &Rounds) {
        let (number, magazine) = self.pop(&self.empty).unwrap_or_else(|| {
            let number = self.fresh_magazine.fetch_add(1, Ordering::Relaxed);
            self.magazines.ensure(number, Magazine::new);
            (number, self.magazines.get(number))
        });
        magazine.fill(rounds);
        self.push(&self.full, number, magazine);
    }

    /// Takes entries that were never used before.
    fn fresh(&self, entries: &dyn Entries) -> Option<Rounds> {
        // Relaxed: each number is handed out once. The entries are published on their own.
        let limit = Self::with_hoards(self.limit, self.caches.load(Ordering::Relaxed));
        let mut first = self.fresh_entry.load(Ordering::Relaxed);
        let end = loop {
            if first >= limit {
                return None;
            }
            let end = (first + self.portion).min(limit);
            let (order, fresh) = (Ordering::Relaxed, &self.fresh_entry);
            match fresh.compare_exchange(first, end, order, order) {
                Ok(_) => break end,
                Err(now) => first = now,
            }
        };
        entries.ensure(end - 1);
        let mut rounds = Rounds::NONE;
        rounds.len = (end - first) as usize;
        // The lowest index is on top, so entries are used in the order in which they lie in memory.
        for (round, index) in rounds.indices.iter_mut().zip((first..end).rev()) {
            *round = index;
        }
        Some(rounds)
    }

    fn push(&self, stack: &M::AtomicU64, number: u32, magazine: &Magazine<M>) {
        let mut head = stack.load(Ordering::Relaxed);
        loop {
            magazine.below.store(head as u32, Ordering::Relaxed);
            let new = head >> 32 << 32 | u64::from(number);
            // Release, partner: the Acquire in `pop`: the rounds, and what the last users of the entries did
            // to them, are published with the magazine.
            match stack.compare_exchange(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self, stack: &M::AtomicU64) -> Option<(u32, &Magazine<M>)> {
        // Acquire, partner: the Release in `push`.
        let mut head = stack.load(Ordering::Acquire);
        loop {
            let top = head as u32;
            if top == NIL {
                return None;
            }
            let magazine = self.magazines.get(top);
            let below = magazine.below.load(Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(below);
            // Acquire both ways, partner: the Release in `push`; on failure the new top is read next.
            match stack.compare_exchange(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some((top, magazine)),
                Err(now) => head = now,
            }
        }
    }
}
