//! Loops over data: [`Loop`], from [`JobSystem::over`](crate::JobSystem::over).
//!
//! Each is a [`parallel_for`](crate::Context::parallel_for) over indices that hands out the items. An index
//! is in one part of a range, and each part runs once, so each item is handed out once. That is what makes
//! mutable items safe.

mod items;
mod tiles;

use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::ops::Range;
use std::panic::Location;

use platform::{Atomic, Lock, Memory, Ordering, Os, Platform};

use super::origin::Origin;
use crate::error::or_panic;
use crate::policy::Grain;
use crate::store::{Label, Name};
use crate::work::Context;

pub use items::LoopData;
use items::{LoopChunks, LoopRuns};
pub(crate) use items::{LoopItems, Seal};
pub use tiles::{Tile, TileMut, Tiles, TilesMut};

/// A loop over data, from [`JobSystem::over`](crate::JobSystem::over) or
/// [`Context::over`](crate::Context::over). Nothing happens until one of the calls that run it.
///
/// Items go to the threads in runs of neighbours, as [`parallel_for`](crate::Context::parallel_for)
/// divides them: a loop that stays on the calling thread wakes no thread, and each call returns when all
/// items are done. [`for_each`](Loop::for_each) and the searches allocate nothing.
///
/// A panic of a closure comes out of the call, after the parts that had begun have ended.
///
/// From rayon:
///
/// | there | here |
/// |---|---|
/// | `v.par_iter().for_each(f)`, `v.par_iter_mut()` | `over(&v).for_each(f)`, `over(&mut v)` |
/// | `par_iter().zip(&w)` | `over((&v, &w))`, of the same length |
/// | `par_iter_mut().enumerate()` | `over((0..v.len(), &mut v))` |
/// | `map(f).collect::<Vec<_>>()` | `map(f)` |
/// | `sum()`, `min()`, `max()` | `reduce(f, combine)` |
/// | `filter(p).count()` | `reduce(\|x\| usize::from(p(x)), \|a, b\| a + b)`, or `fold` |
/// | `filter(p).collect()` | `fold` into vectors, and put them together as they come |
/// | `par_chunks(n)`, `par_chunks_mut(n)` | `over(&v).chunks(n)`, `over(&mut v).chunks(n)` |
/// | rectangles of a picture, by `unsafe` | `over(tiles.of(&mut v))`, see [`Tiles::of`] |
/// | `find_first(p)`, `any(p)` | `find(p)`, `any(p)` |
/// | `with_min_len(n)` | `grain(Grain::Items(n))` |
/// | `par_sort`, `flat_map`, iterators of other collections | none: collect into a `Vec` first |
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut particles = vec![(0.0, 1.0); 1000];
/// js.over(&mut particles).for_each(|(position, speed)| *position += *speed);
/// let sum = js.over(&particles).reduce(|(position, _)| *position, |a, b| a + b);
/// assert_eq!(sum, Some(1000.0));
/// ```
#[must_use = "say what is to be done with the items"]
pub struct Loop<'a, I, P: Platform = Os> {
    from: Origin<'a, P>,
    label: Label,
    items: I,
    grain: Grain,
}

/// How many blocks the items of a [`fold`](Loop::fold) are divided into, at most. The blocks depend on the
/// number of items alone, and so does the result.
const FOLD_BLOCKS: usize = 256;

impl<'a, I: LoopItems, P: Platform> Loop<'a, I, P> {
    /// The loop under the name "over", with the place of the caller.
    #[track_caller]
    pub(super) fn new(from: Origin<'a, P>, items: I) -> Self {
        Loop {
            from,
            label: Label {
                name: "over",
                site: Location::caller(),
            },
            items,
            grain: Grain::Auto,
        }
    }

    /// The name of the loop in traces, reports and hooks, with the line of this call. Without it the name is
    /// "over", with the line of that call.
    ///
    /// Each thread remembers what an item has cost under a name and line, for the next such loop. So where
    /// one call of `over` serves loops of different cost, as in a function that returns a loop, each should
    /// have a name.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut headings = vec![0.0; 1000];
    /// js.over(&mut headings).named("steer").for_each(|heading| *heading += 0.1);
    /// assert!(js.labels().iter().any(|label| label.name == "steer"));
    /// ```
    #[track_caller]
    pub fn named(self, name: impl Into<Name>) -> Self {
        let label = Label {
            name: name.into().as_str(),
            site: Location::caller(),
        };
        Loop { label, ..self }
    }

    /// The same for a loop that stands for something with this label.
    pub(super) fn labelled(self, label: Label) -> Self {
        Loop { label, ..self }
    }

    /// Runs `body` over parts of the indices of all items.
    #[track_caller]
    fn over_indices(&self, body: impl Fn(Range<usize>, &Context<'_, P>) + Sync) {
        let indices = 0..self.items.len();
        or_panic(self.from.context()).run_loop(self.label, indices, self.grain, body);
    }

    /// How finely the items may be divided; [`Grain::Auto`] by default.
    ///
    /// ```
    /// use paceline::{Grain, JobSystem};
    /// let mut pages = vec![0; 64];
    /// JobSystem::new().over(&mut pages).grain(Grain::Items(8)).for_each(|page| *page += 1);
    /// assert_eq!(pages, [1; 64]);
    /// ```
    pub fn grain(self, grain: Grain) -> Self {
        Loop { grain, ..self }
    }

    /// Calls `f` for each item.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (mut sums, left, right) = ([0; 3], [1, 2, 3], [10, 20, 30]);
    /// js.over((&mut sums, &left, &right)).for_each(|(sum, a, b)| *sum = a + b);
    /// assert_eq!(sums, [11, 22, 33]);
    /// ```
    ///
    /// # Panics
    /// With the first panic of `f`; if there are 2³² items or more; as
    /// [`JobSystem::enter`](crate::JobSystem::enter).
    #[track_caller]
    pub fn for_each(self, f: impl Fn(I::Item) + Sync) {
        self.for_each_with(|_, item| f(item));
    }

    /// Calls `f` for each item, with the context of the thread that runs it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut rows = vec![vec![3, 1, 2], vec![6, 5, 4]];
    /// js.over(&mut rows).for_each_with(|cx, row| {
    ///     cx.join(|_| row.sort(), |_| ());
    /// });
    /// assert_eq!(rows, [[1, 2, 3], [4, 5, 6]]);
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Loop::for_each).
    #[track_caller]
    pub fn for_each_with(self, f: impl Fn(&Context<'_, P>, I::Item) + Sync) {
        let items = &self.items;
        self.over_indices(|part, cx| {
            let items = items.clone();
            for index in part {
                // SAFETY: parts are disjoint, and each runs once.
                f(cx, unsafe { items.item(index) });
            }
        });
    }

    /// The results of `f` for each item, in the order of the items. Allocates the vector.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let squares = js.over(0..5).map(|n| n * n);
    /// assert_eq!(squares, [0, 1, 4, 9, 16]);
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Loop::for_each). The results that were there are dropped.
    #[track_caller]
    pub fn map<R: Send>(self, f: impl Fn(I::Item) -> R + Sync) -> Vec<R> {
        let mut results = Results::<P, R>::new(self.items.len());
        let slots = results.slots();
        let items = &self.items;
        self.over_indices(|part, _| {
            let items = items.clone();
            // SAFETY: as in `for_each_with`; each slot is that of an index of this part.
            unsafe { slots.fill(part, |index| f(items.item(index))) };
        });
        results.finish()
    }

    /// Folds the items, block by block on several threads, and combines the results of the blocks. Blocks and
    /// results keep the order of the items, and the blocks depend on the number of items alone. So the result
    /// is the same on every machine and with any number of threads, also for sums of floating-point numbers.
    /// Allocates a vector for the results of the blocks, of which there are 256 at most.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let words = ["a", "job", "system"];
    /// let longest = js.over(&words).fold(|| 0, |most, word| most.max(word.len()), usize::max);
    /// assert_eq!(longest, 6);
    /// ```
    ///
    /// # Panics
    /// With the first panic of a closure; as [`JobSystem::enter`](crate::JobSystem::enter).
    #[track_caller]
    pub fn fold<A: Send>(
        self,
        init: impl Fn() -> A + Sync,
        fold: impl Fn(A, I::Item) -> A + Sync,
        combine: impl Fn(A, A) -> A,
    ) -> A {
        let items = &self.items;
        let fold_block = |block: Range<usize>| {
            let items = items.clone();
            // SAFETY: blocks are disjoint, and each is folded once.
            block.fold(init(), |sum, index| fold(sum, unsafe { items.item(index) }))
        };
        let sums = self.blocks(items.len(), fold_block);
        sums.into_iter().reduce(combine).unwrap_or_else(init)
    }

    /// Combines the results of `f` for each item; `None` if there are no items. Deterministic, as
    /// [`fold`](Loop::fold).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let masses = vec![0.5; 1000];
    /// assert_eq!(js.over(&masses).reduce(|mass| *mass, |a, b| a + b), Some(500.0));
    /// ```
    ///
    /// # Panics
    /// As [`fold`](Loop::fold).
    #[track_caller]
    pub fn reduce<A: Send>(
        self,
        f: impl Fn(I::Item) -> A + Sync,
        combine: impl Fn(A, A) -> A + Sync,
    ) -> Option<A> {
        let items = &self.items;
        let reduce_block = |block: Range<usize>| {
            let items = items.clone();
            // SAFETY: as in `fold`.
            let results = block.map(|index| f(unsafe { items.item(index) }));
            results.reduce(&combine)
        };
        let results = self.blocks(items.len(), reduce_block);
        results.into_iter().flatten().reduce(&combine)
    }

    /// The results of `f` for blocks of `len` indices.
    #[track_caller]
    fn blocks<A: Send>(&self, len: usize, f: impl Fn(Range<usize>) -> A + Sync) -> Vec<A> {
        let blocks = len.min(FOLD_BLOCKS);
        // The first blocks have one item more than the others.
        let (size, longer) = (len / blocks.max(1), len % blocks.max(1));
        let edge = |block: usize| block * size + block.min(longer);
        let all = Loop {
            from: self.from.copy(),
            label: self.label,
            items: 0..blocks,
            grain: self.grain,
        };
        all.map(|block| f(edge(block)..edge(block + 1)))
    }

    /// The first item for which `found` is true. Stops early: threads leave out what lies behind an item that
    /// was found.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let found = js.over(0..1_000_000).find(|&number| number * number > 300);
    /// assert_eq!(found, Some(18));
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Loop::for_each).
    #[track_caller]
    pub fn find(self, found: impl Fn(&I::Item) -> bool + Sync) -> Option<I::Item> {
        // The rank of the first item that was found, and 0 before: the first item has the highest rank.
        let highest = P::AtomicU64::new(0);
        let rank = |index: usize| u64::MAX - index as u64;
        let items = &self.items;
        self.over_indices(|part, _| {
            for index in part {
                // Relaxed, here and below: a number; the items are this thread's, or seen after the loop.
                if rank(index) <= highest.load(Ordering::Relaxed) {
                    return;
                }
                // SAFETY: as in `for_each_with`; the item ends with this turn.
                if found(&unsafe { items.item(index) }) {
                    highest.fetch_max(rank(index), Ordering::Relaxed);
                    return;
                }
            }
        });
        match highest.load(Ordering::Relaxed) {
            0 => None,
            // SAFETY: the loop is over, so no item is in other hands; the index was in its range.
            rank => Some(unsafe { self.items.item((u64::MAX - rank) as usize) }),
        }
    }

    /// Whether `found` is true for an item. Stops early, as [`find`](Loop::find).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.over(&[1, 2, 3]).any(|&number| number == 2));
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Loop::for_each).
    #[track_caller]
    pub fn any(self, found: impl Fn(I::Item) -> bool + Sync) -> bool {
        let is_found = P::AtomicU32::new(0);
        let items = &self.items;
        self.over_indices(|part, _| {
            for index in part {
                // Relaxed, as in `find`.
                if is_found.load(Ordering::Relaxed) != 0 {
                    return;
                }
                // SAFETY: as in `for_each_with`.
                if found(unsafe { items.item(index) }) {
                    is_found.store(1, Ordering::Relaxed);
                    return;
                }
            }
        });
        is_found.load(Ordering::Relaxed) != 0
    }
}

impl<'a, I: LoopRuns, P: Platform> Loop<'a, I, P> {
    /// The loop over chunks of `size` neighbours; the last one may be shorter. Of data side by side, each
    /// chunk is a tuple of slices.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut picture = vec![0; 6];
    /// js.over(&mut picture).chunks(2).for_each(|row| row[0] = 1);
    /// assert_eq!(picture, [1, 0, 1, 0, 1, 0]);
    /// ```
    ///
    /// # Panics
    /// If `size` is 0.
    #[track_caller]
    pub fn chunks(self, size: usize) -> Loop<'a, LoopChunks<I>, P> {
        assert!(size > 0, "chunks of no items");
        let items = LoopChunks {
            items: self.items,
            size,
        };
        Loop {
            from: self.from,
            label: self.label,
            items,
            grain: self.grain,
        }
    }
}

/// Room for the results of a loop, filled in runs.
struct Results<M: Memory, R> {
    room: Vec<MaybeUninit<R>>,
    /// The runs that are filled, if results have to be dropped when the loop panics.
    filled: M::Lock<Vec<Range<usize>>>,
}

impl<M: Memory, R> Results<M, R> {
    fn new(len: usize) -> Results<M, R> {
        let mut room = Vec::with_capacity(len);
        room.resize_with(len, MaybeUninit::uninit);
        Results {
            room,
            filled: M::Lock::new(Vec::new()),
        }
    }

    fn slots(&mut self) -> Slots<'_, M, R> {
        Slots {
            first: self.room.as_mut_ptr(),
            filled: &self.filled,
        }
    }

    /// The results. All slots are filled: the loop has ended without a panic.
    fn finish(mut self) -> Vec<R> {
        self.filled.with(Vec::clear);
        let mut room = ManuallyDrop::new(std::mem::take(&mut self.room));
        // SAFETY: `MaybeUninit<R>` has the layout of `R`, every slot is filled, and the vector is not used
        // again.
        unsafe { Vec::from_raw_parts(room.as_mut_ptr().cast(), room.len(), room.capacity()) }
    }
}

impl<M: Memory, R> Drop for Results<M, R> {
    fn drop(&mut self) {
        for index in self.filled.with(std::mem::take).into_iter().flatten() {
            // SAFETY: the slot was filled, and nothing has taken its result.
            unsafe { self.room[index].assume_init_drop() };
        }
    }
}

/// The slots of [`Results`] while threads fill them.
struct Slots<'r, M: Memory, R> {
    first: *mut MaybeUninit<R>,
    filled: &'r M::Lock<Vec<Range<usize>>>,
}

// SAFETY: each slot is written by one thread, which sends a result there (`R: Send`).
unsafe impl<M: Memory, R: Send> Sync for Slots<'_, M, R> {}

impl<M: Memory, R> Slots<'_, M, R> {
    /// Fills these slots, in order.
    ///
    /// # Safety
    /// They exist, and only this thread fills them, once.
    #[inline]
    unsafe fn fill(&self, part: Range<usize>, mut result: impl FnMut(usize) -> R) {
        let first = self.first;
        // SAFETY: the caller's promise.
        let write = |index: usize, result: R| unsafe { (*first.add(index)).write(result) };
        if !needs_drop::<R>() {
            // How far it came does not matter if it panics, so nothing else is written, and simple loops
            // become vector code.
            return part.for_each(|index| _ = write(index, result(index)));
        }
        let mut filling: Filling<'_, M> = Filling {
            filled: part.start..part.start,
            all: self.filled,
        };
        for index in part {
            write(index, result(index));
            filling.filled.end = index + 1;
        }
    }
}

/// A run of slots that one thread fills. Its end tells which are filled, also during an unwind.
struct Filling<'r, M: Memory> {
    filled: Range<usize>,
    all: &'r M::Lock<Vec<Range<usize>>>,
}

impl<M: Memory> Drop for Filling<'_, M> {
    fn drop(&mut self) {
        if !self.filled.is_empty() {
            self.all.with(|all| all.push(self.filled.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
