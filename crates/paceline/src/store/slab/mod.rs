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
mod depot;

use platform::Memory;

use depot::{Depot, Entries};

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
    depot: Depot<M>,
    make: fn() -> T,
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
        let most = Self::with_hoards(limit, caches);
        let entries = Chunks::new(most, limit);
        let portion = entries.chunk_len().min(ROUNDS as u32);
        Slab {
            entries,
            depot: Depot::new(limit, most, caches, portion),
            make,
        }
    }

    /// The limit of all entries, with those that lie in caches.
    pub(crate) fn with_hoards(limit: u32, caches: u32) -> u32 {
        Depot::<M>::with_hoards(limit, caches)
    }

    /// Tells that there is a cache with this number: the entries that it hoards do not count against the
    /// limit.
    pub(crate) fn make_room_for_cache(&self, number: u32) {
        self.depot.make_room_for_cache(number);
    }

    /// Makes the memory for `live` entries at a time, whatever the caches hoard. After that, to allocate and
    /// free them allocates no memory and takes no lock.
    pub(crate) fn reserve(&self, live: u32) {
        self.depot.reserve(live, self);
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
            self.depot.make_room(cache);
        }
        cache.near.indices[cache.near.len] = index;
        cache.near.len += 1;
    }

    /// Gives an entry back from a thread that has no cache at hand.
    pub(crate) fn free_from_afar(&self, index: u32) {
        let mut one = Rounds::NONE;
        (one.len, one.indices[0]) = (1, index);
        self.depot.put_back(&one);
    }

    /// The near magazine is empty: replaces it by one with rounds.
    #[cold]
    fn refill(&self, cache: &mut Cache) -> Option<()> {
        self.depot.refill(cache, self)
    }
}

impl<M: Memory, T> Entries for Slab<M, T> {
    fn ensure(&self, index: u32) {
        self.entries.ensure(index, self.make);
    }

    fn prefetch(&self, index: u32) {
        M::prefetch(self.get(index));
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
            let made = || (slab.entries.len(), slab.depot.magazines.len());
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
