//! Memory for jobs, links and range blocks: entries that never move, handed out by index.
//!
//! A slab grows by chunks up to a limit. Free entries are kept by the seats in caches of up to two
//! batches each; whole batches are exchanged through one shared stack, so an allocation touches
//! shared memory once per batch. Nothing is given back to the system before the slab is dropped:
//! a stale ticket always points at a live entry, whose generation then tells it apart.
//!
//! Invariants
//! - An entry is in exactly one place: live, in one cache, or in one batch on the stack.
//! - Entries below `published * CHUNK` exist and never move.
//! - The stack's head carries a tag that changes with every pop, so a pop that was overtaken by a
//!   pop and a push of the same batch fails (ABA).

use platform::{Atomic, Lock, Memory, Ordering, SharedCell};

use crate::job::NIL;

/// What a slab can hold: something with two spare words while it is free.
pub(crate) trait Entry<M: Memory>: Sized {
    /// A new, free entry.
    fn empty() -> Self;
    /// While free: the next entry of the same cache or batch.
    fn next(&self) -> &M::AtomicU32;
    /// While first in a batch on the stack: the first entry of the next batch.
    fn next_batch(&self) -> &M::AtomicU32;
}

/// Entries per chunk.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 8;

/// See the module.
pub(crate) struct Slab<M: Memory, T: Entry<M>> {
    /// Pointers to chunks; written once each, under `growth`, before `published` covers them.
    chunks: Box<[M::Cell<*const T>]>,
    /// How many chunks exist.
    published: M::AtomicU32,
    /// First entry never handed out.
    fresh: M::AtomicU32,
    /// `tag 32 | first entry of the topmost batch 32`.
    batches: M::AtomicU64,
    growth: M::Lock<()>,
    limit: u32,
    batch: u32,
}

// SAFETY: entries are reached by shared reference only and are Sync by the bound; the chunk
// pointers are owned by the slab and written under the lock before they are published.
unsafe impl<M: Memory, T: Entry<M> + Send + Sync> Sync for Slab<M, T> {}
// SAFETY: as above.
unsafe impl<M: Memory, T: Entry<M> + Send + Sync> Send for Slab<M, T> {}

/// A seat's free entries. Two batches, so that a seat that allocates and frees in turn at the edge
/// of a batch does not go to the stack each time.
#[derive(Debug)]
pub(crate) struct Cache {
    near: Batch,
    far: Batch,
}

#[derive(Debug, Clone, Copy)]
struct Batch {
    first: u32,
    len: u32,
}

impl Batch {
    const EMPTY: Batch = Batch { first: NIL, len: 0 };
}

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            near: Batch::EMPTY,
            far: Batch::EMPTY,
        }
    }
}

impl<M: Memory, T: Entry<M>> Slab<M, T> {
    /// An empty slab that will hold `limit` live entries and no more than `limit` plus what
    /// `caches` caches can hoard; entries move between caches `batch` at a time.
    pub(crate) fn new(limit: u32, caches: u32, batch: u32) -> Slab<M, T> {
        let hoarded = caches.saturating_mul(2 * batch);
        let limit = limit.saturating_add(hoarded).min(LIMIT_MAX);
        let chunks = (limit as usize).div_ceil(CHUNK);
        Slab {
            chunks: (0..chunks)
                .map(|_| M::Cell::new(std::ptr::null()))
                .collect(),
            published: M::AtomicU32::new(0),
            fresh: M::AtomicU32::new(0),
            batches: M::AtomicU64::new(u64::from(NIL)),
            growth: M::Lock::new(()),
            limit,
            batch,
        }
    }

    /// The entry with this index. The index came from [`Slab::allocate`], possibly long ago.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let chunk = &self.chunks[index as usize >> CHUNK_BITS];
        // SAFETY: whoever has an index got it from `allocate` through some chain of
        // happens-before (a queue, a link, a handle checked by `exists`), and the chunk was written
        // before that; chunk pointers never change afterwards, and chunks live as long as the slab.
        unsafe { chunk.with(|chunk| &*(*chunk).add(index as usize & (CHUNK - 1))) }
    }

    /// Whether an index that came from outside has ever been handed out.
    pub(crate) fn exists(&self, index: u32) -> bool {
        // Acquire, partner: the Release store in `publish_chunk`.
        (index as usize) < self.published.load(Ordering::Acquire) as usize * CHUNK
    }

    /// All entries that were ever made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        // Acquire, partner: the Release store in `publish_chunk`.
        let end = self.published.load(Ordering::Acquire) * CHUNK as u32;
        (0..end).map(|index| (index, self.get(index)))
    }

    /// A free entry, or `None` at the limit.
    #[inline]
    pub(crate) fn allocate(&self, cache: &mut Cache) -> Option<u32> {
        if cache.near.first == NIL {
            self.refill(cache)?;
        }
        let index = cache.near.first;
        // Relaxed: the entry belongs to this cache; what its last user did to it happened before it
        // got here (same thread, or the Acquire pop of its batch).
        cache.near.first = self.get(index).next().load(Ordering::Relaxed);
        cache.near.len = cache.near.len.wrapping_sub(1);
        Some(index)
    }

    /// Gives an entry back to the caller's cache.
    #[inline]
    pub(crate) fn free(&self, cache: &mut Cache, index: u32) {
        // Relaxed: published with its batch, by the Release in `push_batch`.
        self.get(index)
            .next()
            .store(cache.near.first, Ordering::Relaxed);
        cache.near.first = index;
        cache.near.len = cache.near.len.wrapping_add(1);
        if cache.near.len >= self.batch {
            self.spill(cache);
        }
    }

    /// Gives an entry back from a thread that has no cache at hand.
    pub(crate) fn free_from_afar(&self, index: u32) {
        self.get(index).next().store(NIL, Ordering::Relaxed);
        self.push_batch(index);
    }

    #[cold]
    fn spill(&self, cache: &mut Cache) {
        if cache.far.first != NIL {
            self.push_batch(cache.far.first);
        }
        cache.far = cache.near;
        cache.near = Batch::EMPTY;
    }

    #[cold]
    fn refill(&self, cache: &mut Cache) -> Option<()> {
        cache.near = Batch::EMPTY;
        if cache.far.first != NIL {
            std::mem::swap(&mut cache.near, &mut cache.far);
        } else if let Some(first) = self.pop_batch() {
            cache.near = Batch {
                first,
                len: self.batch,
            };
        } else {
            cache.near = self.fresh_batch()?;
        }
        Some(())
    }

    fn push_batch(&self, first: u32) {
        let entry = self.get(first);
        let mut head = self.batches.load(Ordering::Relaxed);
        loop {
            entry.next_batch().store(head as u32, Ordering::Relaxed);
            let new = head >> 32 << 32 | u64::from(first);
            // Release, partner: the Acquire in `pop_batch`; the entries' links and whatever their
            // last users did go with it.
            match self
                .batches
                .compare_exchange(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop_batch(&self) -> Option<u32> {
        // Acquire, partner: the Release in `push_batch`.
        let mut head = self.batches.load(Ordering::Acquire);
        loop {
            let first = head as u32;
            if first == NIL {
                return None;
            }
            let next = self.get(first).next_batch().load(Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
            // Acquire both ways, partner: the Release in `push_batch`; on failure the new head's
            // entry is read next.
            match self
                .batches
                .compare_exchange(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(first),
                Err(now) => head = now,
            }
        }
    }

    fn fresh_batch(&self) -> Option<Batch> {
        // Relaxed: the numbers are handed out once each; the chunks are published on their own.
        let first = self.fresh.fetch_add(self.batch, Ordering::Relaxed);
        if first >= self.limit {
            self.fresh.fetch_sub(self.batch, Ordering::Relaxed);
            return None;
        }
        let end = (first + self.batch).min(self.limit);
        self.publish_chunks((end - 1) >> CHUNK_BITS);
        for index in first..end {
            let next = if index + 1 == end { NIL } else { index + 1 };
            self.get(index).next().store(next, Ordering::Relaxed);
        }
        Some(Batch {
            first,
            len: end - first,
        })
    }

    /// Makes sure that all chunks up to this one exist.
    fn publish_chunks(&self, last: u32) {
        // Acquire, partner: the Release store below.
        if self.published.load(Ordering::Acquire) > last {
            return;
        }
        self.growth.with(|()| {
            for chunk in self.published.load(Ordering::Relaxed)..=last {
                let entries: Box<[T]> = (0..CHUNK).map(|_| T::empty()).collect();
                let entries = Box::into_raw(entries).cast::<T>().cast_const();
                // SAFETY: nobody reads this pointer before `published` covers it, and the lock
                // keeps other writers out.
                unsafe { self.chunks[chunk as usize].with_mut(|pointer| *pointer = entries) };
                // Release, partner: the Acquire loads of `published`.
                self.published.store(chunk + 1, Ordering::Release);
            }
        });
    }
}

/// Indices are stored in the 28 bits of a links word, less the two values that mean something else.
const LIMIT_MAX: u32 = NIL - 1 - CHUNK as u32;

impl<M: Memory, T: Entry<M>> Drop for Slab<M, T> {
    fn drop(&mut self) {
        for chunk in 0..self.published.load(Ordering::Relaxed) {
            // SAFETY: `&mut self`: no entry is in use. The pointer came from `Box::into_raw` of a
            // slice of CHUNK entries and is dropped once.
            unsafe {
                self.chunks[chunk as usize].with(|pointer| {
                    let entries = std::ptr::slice_from_raw_parts_mut((*pointer).cast_mut(), CHUNK);
                    drop(Box::from_raw(entries));
                });
            }
        }
    }
}
