//! An array that grows and never moves.
//!
//! Entries lie in chunks. A table, made for the maximum, points to the chunks. A chunk is written once, under
//! a lock, before the number of published chunks covers it. It stays until the end.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use platform::{Atomic, Lock, Memory, Ordering, SharedCell};

/// See the module.
pub(crate) struct Chunks<M: Memory, T> {
    table: ChunkTable<M>,
    entries: PhantomData<T>,
}

/// The pointers to the chunks, whatever their entries are.
struct ChunkTable<M: Memory> {
    /// Dropped by the table's drop, or it would be done once more for each sort of entries.
    chunks: ManuallyDrop<Box<[M::Cell<*const ()>]>>,
    /// How many chunks exist.
    published: M::AtomicU32,
    growth: M::Lock<()>,
    /// A chunk has `1 << bits` entries, which is `mask + 1`.
    bits: u32,
    mask: u32,
    drop_chunk: unsafe fn(*mut (), usize),
}

// SAFETY: entries are reached by shared reference only and are Sync by the bound; the chunk
// pointers are owned by the array and written under the lock before they are published.
unsafe impl<M: Memory, T: Send + Sync> Sync for Chunks<M, T> {}
// SAFETY: as above.
unsafe impl<M: Memory, T: Send + Sync> Send for Chunks<M, T> {}

/// The largest chunk in bytes. It is small enough that the first job of a program does not wait long for it.
const BYTES_MAX: usize = 32 << 10;

/// A limit that is far above what is usual makes chunks longer rather than the table: this many chunks are
/// enough where they may be as long as that takes. All of the table is made with the job system.
const CHUNKS_MANY: u32 = 1 << 11;

impl<M: Memory> ChunkTable<M> {
    /// A table for up to `limit` entries of `size` bytes. `usual` is the number that a program hardly
    /// exceeds.
    ///
    /// # Safety
    /// `drop_chunk` drops a chunk that `grow` was given, of that many entries.
    #[inline(never)] // Once for all slabs.
    unsafe fn new(
        limit: u32,
        usual: u32,
        size: usize,
        drop_chunk: unsafe fn(*mut (), usize),
    ) -> ChunkTable<M> {
        let fitting = (BYTES_MAX / size.max(1)).max(1);
        let usual = usual.max(limit / CHUNKS_MANY) as usize;
        let len = usual.clamp(1, fitting).next_power_of_two();
        let bits = len.trailing_zeros();
        let chunks = (limit as usize).div_ceil(1 << bits);
        ChunkTable {
            chunks: ManuallyDrop::new(
                (0..chunks)
                    .map(|_| M::Cell::new(std::ptr::null()))
                    .collect(),
            ),
            published: M::AtomicU32::new(0),
            growth: M::Lock::new(()),
            bits,
            mask: (1 << bits) - 1,
            drop_chunk,
        }
    }

    /// Makes sure that there is the chunk of the entry with this index. `make`: a chunk.
    fn grow(&self, index: u32, make: &mut dyn FnMut() -> *const ()) {
        self.growth.with(|()| {
            // Relaxed: only written under this lock.
            for chunk in self.published.load(Ordering::Relaxed)..=(index >> self.bits) {
                let entries = make();
                // SAFETY: no thread reads this pointer before `published` covers it, and the lock keeps other
                // writers out.
                unsafe { self.chunks[chunk as usize].with_mut(|pointer| *pointer = entries) };
                // Release, partner: the Acquire load in `len`.
                self.published.store(chunk + 1, Ordering::Release);
            }
        });
    }
}

impl<M: Memory> Drop for ChunkTable<M> {
    #[inline(never)] // Once for all slabs.
    fn drop(&mut self) {
        for chunk in 0..self.published.load(Ordering::Relaxed) {
            // SAFETY: `&mut self`: no entry is in use. `drop_chunk` fits the chunks, see `new`, and each of
            // them is dropped once.
            unsafe {
                self.chunks[chunk as usize]
                    .with(|pointer| (self.drop_chunk)((*pointer).cast_mut(), 1 << self.bits));
            }
        }
        // SAFETY: the pointers are not used again: this is their owner's drop.
        unsafe { ManuallyDrop::drop(&mut self.chunks) };
    }
}

impl<M: Memory, T> Chunks<M, T> {
    /// An empty array for up to `limit` entries. `usual` is the number that a program hardly exceeds.
    pub(crate) fn new(limit: u32, usual: u32) -> Chunks<M, T> {
        // SAFETY: `ensure` gives it chunks of this type.
        let table = unsafe { ChunkTable::new(limit, usual, size_of::<T>(), drop_chunk::<T>) };
        Chunks {
            table,
            entries: PhantomData,
        }
    }

    /// The entry with this index, which came from [`Chunks::ensure`], possibly long ago.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let ChunkTable {
            chunks, bits, mask, ..
        } = &self.table;
        if M::UNWINDS || cfg!(debug_assertions) {
            assert!(((index >> bits) as usize) < chunks.len());
        }
        // SAFETY: an index gets to a caller only after `ensure` covered it, through some chain of
        // happens-before (a queue, a link, a handle checked by `exists`): so its chunk is in the table, and
        // made of entries of this type. Chunk pointers never change afterwards, and chunks live as long as
        // the array.
        unsafe {
            let chunk = chunks.get_unchecked((index >> bits) as usize);
            chunk.with(|chunk| &*(*chunk).cast::<T>().add((index & mask) as usize))
        }
    }

    /// How many entries are made at a time.
    pub(crate) fn chunk_len(&self) -> u32 {
        1 << self.table.bits
    }

    /// How many entries exist.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        // Acquire, partner: the Release store in `grow`.
        self.table.published.load(Ordering::Acquire) << self.table.bits
    }

    /// Makes sure that the entry with this index exists.
    pub(crate) fn ensure(&self, index: u32, mut make: impl FnMut() -> T) {
        if self.len() > index {
            return;
        }
        self.table.grow(index, &mut || {
            let entries: Box<[T]> = (0..self.chunk_len())
                .map(|_| M::on_own_lines(&mut make))
                .collect();
            Box::into_raw(entries).cast::<()>().cast_const()
        });
    }
}

/// # Safety
/// The chunk is that of a boxed slice of `len` entries of this type, which is given up here.
unsafe fn drop_chunk<T>(chunk: *mut (), len: usize) {
    let entries = std::ptr::slice_from_raw_parts_mut(chunk.cast::<T>(), len);
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(entries) });
}
