//! Memory for jobs, links and range blocks: entries that never move and are handed out by index.
//!
//! Free entries are kept in *magazines*, small arrays of indices (Bonwick and Adams, "Magazines and Vmem",
//! USENIX 2001). The indices in a magazine are its *rounds*. Each thread slot holds the rounds of two
//! magazines. It takes from one of them and gives to it. When that one is empty or full it changes over to
//! the other. Only when both are empty or full does it go to the shared stacks, one of full and one of empty
//! magazines. So shared memory is touched once in [`ROUNDS`] allocations. And since the next indices are
//! known, entries that another thread has freed can be fetched before they are needed.
//!
//! No memory is given back to the system before the slab is dropped. So a stale ticket always points at a
//! live entry, and the entry's generation then tells that the ticket is stale.
//!
//! Invariants
//! - An entry is in exactly one place: live, in one cache, or in one magazine.
//! - A magazine is on one of the two stacks, or the thread that has popped it is filling or emptying it.
//! - The head of a stack carries a tag that changes with every pop. So a pop that was overtaken by a pop and
//!   a push of the same magazine fails (ABA).

mod chunks;

use platform::{Atomic, Memory, Ordering};

pub(crate) use chunks::Chunks;

/// No entry, no magazine, no link: the end of a list. Fits the 28 bits of a links word.
pub(crate) const NIL: u32 = (1 << 28) - 1;

/// Entries in a full magazine.
pub(crate) const ROUNDS: usize = 31;

/// How many allocations ahead an entry is fetched.
const PREFETCH_AHEAD: usize = 6;

/// See the module.
pub(crate) struct Slab<M: Memory, T> {
    entries: Chunks<M, T>,
    magazines: Chunks<M, Magazine<M>>,
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
    make: fn() -> T,
}

/// An array of free entries. The thread that has popped it makes all accesses, which are Relaxed: the stacks
/// publish them with the magazine.
struct Magazine<M: Memory> {
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

/// A thread slot's free entries.
#[derive(Debug)]
pub(crate) struct Cache {
    near: Rounds,
    far: Rounds,
}

/// The content of a magazine.
#[derive(Debug)]
struct Rounds {
    len: usize,
    indices: [u32; ROUNDS],
}

impl Rounds {
    const NONE: Rounds = Rounds {
        len: 0,
        indices: [NIL; ROUNDS],
    };
}

impl Cache {
    /// A cache that gets its first entries when it needs them.
    pub(crate) fn new() -> Cache {
        Cache {
            near: Rounds::NONE,
            far: Rounds::NONE,
        }
    }
}

impl<M: Memory, T> Slab<M, T> {
    /// An empty slab. It can hold `limit` live entries in any case, and never more than `limit` plus the
    /// entries that its caches can hoard. There are at most `caches` caches (see
    /// [`make_room_for_cache`](Slab::make_room_for_cache)).
    pub(crate) fn new(limit: u32, caches: u32, make: fn() -> T) -> Slab<M, T> {
        let usual = limit;
        let most = Self::with_hoards(limit, caches);
        // At worst every free entry was freed from afar and has a magazine to itself, and every thread is
        // about to fill one more.
        let magazines = most + 2 * caches + 2;
        let entries = Chunks::new(most, usual);
        let portion = entries.chunk_len().min(ROUNDS as u32);
        Slab {
            entries,
            magazines: Chunks::new(magazines, usual / portion),
            fresh_entry: M::AtomicU32::new(0),
            fresh_magazine: M::AtomicU32::new(0),
            full: M::AtomicU64::new(u64::from(NIL)),
            empty: M::AtomicU64::new(u64::from(NIL)),
            limit,
            caches: M::AtomicU32::new(0),
            portion,
            make,
        }
    }

    /// The limit of all entries, with those that lie in caches.
    pub(crate) fn with_hoards(limit: u32, caches: u32) -> u32 {
        let hoarded = caches.saturating_mul(2 * ROUNDS as u32);
        limit.saturating_add(hoarded).min(LIMIT_MAX)
    }

    /// Tells that there is a cache with this number: the entries that it hoards do not count against the
    /// limit.
    pub(crate) fn make_room_for_cache(&self, number: u32) {
        // Relaxed: only a number. The thread that is about to use the cache sees it.
        self.caches.fetch_max(number + 1, Ordering::Relaxed);
    }

    /// Makes the memory for `live` entries at a time, whatever the caches hoard. After that, to allocate and
    /// free them allocates no memory and takes no lock.
    pub(crate) fn reserve(&self, live: u32) {
        // Relaxed: a number. A cache that comes later makes room for itself.
        let caches = self.caches.load(Ordering::Relaxed);
        let live = live.min(self.limit);
        let most = Self::with_hoards(live, caches);
        self.entries.ensure(most - 1, self.make);
        // At worst each free entry was freed from afar, and has a magazine to itself.
        self.magazines.ensure(live + 2 * caches + 1, Magazine::new);
    }

    /// The entry with this index. The index came from [`Slab::allocate`], possibly long ago.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        self.entries.get(index)
    }

    /// How many entries were ever made.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Whether an index that came from outside has ever been handed out.
    #[inline]
    pub(crate) fn exists(&self, index: u32) -> bool {
        index < self.len()
    }

    /// All entries that were ever made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..self.entries.len()).map(|index| (index, self.get(index)))
    }

    /// A free entry, or `None` at the limit.
    #[inline]
    pub(crate) fn allocate(&self, cache: &mut Cache) -> Option<(u32, &T)> {
        if cache.near.len == 0 {
            self.refill(cache)?;
        }
        let near = &mut cache.near;
        near.len -= 1;
        if near.len >= PREFETCH_AHEAD {
            M::prefetch(self.get(near.indices[near.len - PREFETCH_AHEAD]));
        }
        let index = near.indices[near.len];
        Some((index, self.get(index)))
    }

    /// Gives an entry back to the caller's cache.
    #[inline]
    pub(crate) fn free(&self, cache: &mut Cache, index: u32) {
        if cache.near.len == ROUNDS {
            self.make_room(cache);
        }
        cache.near.indices[cache.near.len] = index;
        cache.near.len += 1;
    }

    /// Gives an entry back from a thread that has no cache at hand.
    pub(crate) fn free_from_afar(&self, index: u32) {
        let mut one = Rounds::NONE;
        (one.len, one.indices[0]) = (1, index);
        self.put_back(&one);
    }

    /// The near magazine is empty: replaces it by one with rounds.
    #[cold]
    fn refill(&self, cache: &mut Cache) -> Option<()> {
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
            None => self.fresh()?,
        };
        // The first entries that this magazine gives: other threads have used them last.
        let indices = &cache.near.indices[..cache.near.len];
        for &index in indices.iter().rev().take(PREFETCH_AHEAD) {
            M::prefetch(self.get(index));
        }
        Some(())
    }

    /// The near magazine is full: replaces it by one with room.
    #[cold]
    fn make_room(&self, cache: &mut Cache) {
        if cache.far.len == ROUNDS {
            self.put_back(&cache.far);
            cache.far.len = 0;
        }
        std::mem::swap(&mut cache.near, &mut cache.far);
    }

    /// Gives rounds to the shared stack, for any cache.
    fn put_back(&self, rounds: &Rounds) {
        let (number, magazine) = self.pop(&self.empty).unwrap_or_else(|| {
            let number = self.fresh_magazine.fetch_add(1, Ordering::Relaxed);
            self.magazines.ensure(number, Magazine::new);
            (number, self.magazines.get(number))
        });
        magazine.fill(rounds);
        self.push(&self.full, number, magazine);
    }

    /// Takes entries that were never used before.
    fn fresh(&self) -> Option<Rounds> {
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
        self.entries.ensure(end - 1, self.make);
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

/// Indices are stored in the 28 bits of a links word, less the two values with another meaning.
const LIMIT_MAX: u32 = NIL - 1024;

#[cfg(test)]
mod tests {
    //! Goal: an entry is never handed out twice. Method: two caches allocate and free at random, against a
    //! set of the live entries; the limit is reached and left again.
    use super::*;
    use platform::Os;
    use std::collections::HashSet;

    /// Goal: entries that were reserved are there, with the magazines for them. Method: the number of entries
    /// and magazines that were made, before and after all entries are in use and free again.
    #[test]
    fn what_was_reserved_is_not_made_again() {
        for (limit, live) in [(1, 1), (100, 64), (100, 1000), (4096, 1000)] {
            let slab = Slab::<Os, u8>::new(limit, 4, || 0);
            slab.make_room_for_cache(0);
            slab.reserve(live);
            let made = || (slab.entries.len(), slab.magazines.len());
            let (before, mut cache) = (made(), Cache::new());
            let live = live.min(limit);
            let indices: Vec<u32> = (0..live)
                .map(|_| slab.allocate(&mut cache).expect("it was reserved").0)
                .collect();
            for (number, index) in indices.into_iter().enumerate() {
                if number % 2 == 0 {
                    slab.free(&mut cache, index);
                } else {
                    slab.free_from_afar(index);
                }
            }
            assert_eq!(made(), before);
        }
    }

    /// Goal: `limit` entries can be live at the same time whatever the caches hoard, and no more than `limit`
    /// and all hoards together. Method: caches hoard as much as they can, then one takes all that is left.
    #[test]
    fn hoards_do_not_count_against_the_limit() {
        for (limit, others) in [(1, 0), (10, 1), (100, 3), (1000, 7)] {
            let slab = Slab::<Os, u8>::new(limit, 8, || 0);
            (0..=others).for_each(|cache| slab.make_room_for_cache(cache));
            for _ in 0..others {
                let mut cache = Cache::new();
                let taken = |_| slab.allocate(&mut cache).map(|(index, _)| index);
                let taken: Vec<u32> = (0..2 * ROUNDS).map_while(taken).collect();
                for &index in &taken {
                    slab.free(&mut cache, index);
                }
            }
            let mut cache = Cache::new();
            let live = std::iter::from_fn(|| slab.allocate(&mut cache)).count();
            let most = limit as usize + (others as usize + 1) * 2 * ROUNDS;
            assert!((limit as usize..=most).contains(&live), "{live} of {limit}");
        }
    }

    #[test]
    fn entries_are_handed_out_once() {
        let slab = Slab::<Os, u8>::new(200, 2, || 0);
        let mut caches = [Cache::new(), Cache::new()];
        let (mut live, mut distinct) = (Vec::new(), HashSet::new());
        let (mut random, mut refused) = (7u64, 0);
        for step in 0..if cfg!(miri) { 150 } else { 200_000u64 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let cache = &mut caches[(random >> 40) as usize % 2];
            // Long phases of growing and of shrinking.
            if (random >> 33) % 100 < if step / 1000 % 2 == 0 { 70 } else { 30 } {
                match slab.allocate(cache) {
                    Some((index, _)) => {
                        assert!(distinct.insert(index), "{index} is live, at step {step}");
                        live.push(index);
                    }
                    None => refused += 1,
                }
            } else if let Some(index) = live.pop() {
                distinct.remove(&index);
                match random >> 60 {
                    0 => slab.free_from_afar(index),
                    _ => slab.free(cache, index),
                }
            }
            assert!(live.len() <= 200 + 4 * ROUNDS, "at step {step}");
        }
        assert!(refused > 0 || cfg!(miri), "the limit was never reached");
    }
}
