//! The data that a loop can go over: slices, several of them side by side, ranges of numbers, tiles.

use std::marker::PhantomData;
use std::ops::Range;

/// Data that [`JobSystem::over`](crate::JobSystem::over) takes: shared and mutable slices, arrays and
/// vectors, ranges of `usize`, [`Tiles`](crate::Tiles) without points or with them
/// ([`Tiles::of`](crate::Tiles::of)), and tuples of up to six of these, side by side.
/// Programs need no implementation of their own.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let (mut positions, speeds) = (vec![0.0; 100], vec![2.0; 100]);
/// js.over((&mut positions, &speeds)).for_each(|(position, speed)| *position += speed);
/// assert!(positions.iter().all(|&position| position == 2.0));
/// ```
#[diagnostic::on_unimplemented(
    message = "a loop cannot go over `{Self}`",
    label = "no data for a loop",
    note = "`over` takes slices, arrays and vectors by reference (`&v`, `&mut v`), ranges of `usize`, \
            `Tiles` and `Tiles::of`, and tuples of two to six of these, side by side",
    note = "for the index beside each item: `over((0..v.len(), &mut v))`",
    note = "anything else, such as a map or an iterator, is collected into a `Vec` first"
)]
pub trait LoopData {
    /// The items that can be handed out, one by one, on any thread.
    #[doc(hidden)]
    type Items: LoopItems;

    #[doc(hidden)]
    #[track_caller]
    fn into_items(self, seal: Seal) -> Self::Items;
}

/// What [`LoopData::into_items`] takes. Programs can neither make it nor name it, so they neither call that
/// nor write one of their own. Items in other hands could be cloned and handed to two loops, and those of a
/// mutable slice are borrowed once.
///
/// ```compile_fail,E0061
/// use paceline::LoopData;
/// let mut values = [1, 2, 3];
/// let items = (&mut values).into_items();
/// ```
///
/// ```compile_fail,E0050
/// use paceline::LoopData;
/// struct Mine(std::ops::Range<usize>);
/// impl LoopData for Mine {
///     type Items = std::ops::Range<usize>;
///     fn into_items(self) -> Self::Items {
///         self.0
///     }
/// }
/// ```
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Seal(());

impl Seal {
    pub(in crate::api) const HERE: Seal = Seal(());
}

/// Items by their index, on any thread. It has no example, because programs do not name it.
///
/// A thread that goes over a part clones them first: the compiler then knows that nothing changes where the
/// items lie, keeps the pointers in registers, and makes vector code of simple loops.
///
/// # Safety
/// Calls of `item` and `run` with different indices, at the same time and on different threads, return
/// things that do not interfere with each other. That includes calls on clones.
#[doc(hidden)]
pub unsafe trait LoopItems: Clone + Sync {
    type Item;

    fn len(&self) -> usize;

    /// # Safety
    /// `index` is less than `len`, and what an earlier call with this index returned is gone.
    unsafe fn item(&self, index: usize) -> Self::Item;
}

/// Items that lie side by side, so that neighbours can be handed out together. It has no example, because
/// programs do not name it.
///
/// # Safety
/// As for [`LoopItems`].
#[doc(hidden)]
pub unsafe trait LoopRuns: LoopItems {
    type Run;

    /// # Safety
    /// The range is not empty and ends at `len` at the latest, and what earlier calls with one of its indices
    /// returned is gone.
    unsafe fn run(&self, range: Range<usize>) -> Self::Run;
}

// SAFETY: shared items may be seen by any number of threads (`T: Sync`).
unsafe impl<'a, T: Sync> LoopItems for &'a [T] {
    type Item = &'a T;

    #[inline]
    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    #[inline]
    unsafe fn item(&self, index: usize) -> &'a T {
        // With `get_unchecked` reductions by `f32::max` have no vector code and are five times as slow.
        // SAFETY: the index is within the slice (the caller's promise).
        unsafe { &*self.as_ptr().add(index) }
    }
}

// SAFETY: as above.
unsafe impl<'a, T: Sync> LoopRuns for &'a [T] {
    type Run = &'a [T];

    #[inline]
    unsafe fn run(&self, range: Range<usize>) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { self.get_unchecked(range) }
    }
}

/// A mutable slice that is handed out in pieces. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct SliceMut<'a, T> {
    first: *mut T,
    len: usize,
    _borrow: PhantomData<&'a mut [T]>,
}

impl<T> Clone for SliceMut<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        SliceMut { ..*self }
    }
}

// SAFETY: each item is handed out once at a time (the contract of `LoopItems::item`), so sharing this is
// sending items to other threads (`T: Send`).
unsafe impl<T: Send> Sync for SliceMut<'_, T> {}

// SAFETY: different indices are different items of a slice that is borrowed for `'a`.
unsafe impl<'a, T: Send> LoopItems for SliceMut<'a, T> {
    type Item = &'a mut T;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    unsafe fn item(&self, index: usize) -> &'a mut T {
        // SAFETY: the index is within the slice, and no other reference to this item is alive (the caller's
        // promise).
        unsafe { &mut *self.first.add(index) }
    }
}

// SAFETY: as above.
unsafe impl<'a, T: Send> LoopRuns for SliceMut<'a, T> {
    type Run = &'a mut [T];

    #[inline]
    unsafe fn run(&self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: as above, for each index of the range.
        unsafe {
            std::slice::from_raw_parts_mut(self.first.add(range.start), range.end - range.start)
        }
    }
}

// SAFETY: numbers are copies.
unsafe impl LoopItems for Range<usize> {
    type Item = usize;

    #[inline]
    fn len(&self) -> usize {
        ExactSizeIterator::len(self)
    }

    #[inline]
    unsafe fn item(&self, index: usize) -> usize {
        self.start + index
    }
}

// SAFETY: as above.
unsafe impl LoopRuns for Range<usize> {
    type Run = Range<usize>;

    #[inline]
    unsafe fn run(&self, range: Range<usize>) -> Range<usize> {
        self.start + range.start..self.start + range.end
    }
}

/// Runs of `size` items; the last one may be shorter. It has no example, because programs do not name it.
#[doc(hidden)]
#[derive(Clone)]
pub struct LoopChunks<I> {
    pub(super) items: I,
    pub(super) size: usize,
}

// SAFETY: different chunks are runs of different items.
unsafe impl<I: LoopRuns> LoopItems for LoopChunks<I> {
    type Item = I::Run;

    #[inline]
    fn len(&self) -> usize {
        self.items.len().div_ceil(self.size)
    }

    #[inline]
    unsafe fn item(&self, index: usize) -> I::Run {
        let first = index * self.size;
        let end = (first + self.size).min(self.items.len());
        // SAFETY: the index is that of a chunk, so its first item exists; the rest is the caller's promise.
        unsafe { self.items.run(first..end) }
    }
}

impl<'a, T: Sync> LoopData for &'a [T] {
    type Items = &'a [T];

    fn into_items(self, _: Seal) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> LoopData for &'a mut [T] {
    type Items = SliceMut<'a, T>;

    fn into_items(self, _: Seal) -> SliceMut<'a, T> {
        SliceMut {
            first: self.as_mut_ptr(),
            len: self.len(),
            _borrow: PhantomData,
        }
    }
}

impl<'a, T: Sync> LoopData for &'a Vec<T> {
    type Items = &'a [T];

    fn into_items(self, _: Seal) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> LoopData for &'a mut Vec<T> {
    type Items = SliceMut<'a, T>;

    fn into_items(self, seal: Seal) -> SliceMut<'a, T> {
        self.as_mut_slice().into_items(seal)
    }
}

impl<'a, T: Sync, const N: usize> LoopData for &'a [T; N] {
    type Items = &'a [T];

    fn into_items(self, _: Seal) -> &'a [T] {
        self
    }
}

impl<'a, T: Send, const N: usize> LoopData for &'a mut [T; N] {
    type Items = SliceMut<'a, T>;

    fn into_items(self, seal: Seal) -> SliceMut<'a, T> {
        self.as_mut_slice().into_items(seal)
    }
}

impl LoopData for Range<usize> {
    type Items = Range<usize>;

    fn into_items(self, _: Seal) -> Range<usize> {
        self
    }
}

/// Implements the traits for a tuple.
macro_rules! side_by_side {
    ($($name:ident $at:tt),+) => {
        // SAFETY: what each part hands out for different indices does not interfere, so neither do tuples.
        unsafe impl<$($name: LoopItems),+> LoopItems for ($($name,)+) {
            type Item = ($($name::Item,)+);

            #[inline]
            fn len(&self) -> usize {
                self.0.len()
            }

            #[inline]
            unsafe fn item(&self, index: usize) -> Self::Item {
                // SAFETY: all parts have the same length (`into_items`); the rest is the caller's promise.
                unsafe { ($(self.$at.item(index),)+) }
            }
        }

        // SAFETY: as above.
        unsafe impl<$($name: LoopRuns),+> LoopRuns for ($($name,)+) {
            type Run = ($($name::Run,)+);

            #[inline]
            unsafe fn run(&self, range: Range<usize>) -> Self::Run {
                // SAFETY: as above.
                unsafe { ($(self.$at.run(range.clone()),)+) }
            }
        }

        impl<$($name: LoopData),+> LoopData for ($($name,)+) {
            type Items = ($($name::Items,)+);

            #[track_caller]
            fn into_items(self, seal: Seal) -> Self::Items {
                let items = ($(self.$at.into_items(seal),)+);
                let lens = [$(items.$at.len()),+];
                assert!(
                    lens.iter().all(|len| *len == lens[0]),
                    "data side by side in a loop has different lengths: {lens:?}"
                );
                items
            }
        }
    };
}

side_by_side!(A 0, B 1);
side_by_side!(A 0, B 1, C 2);
side_by_side!(A 0, B 1, C 2, D 3);
side_by_side!(A 0, B 1, C 2, D 3, E 4);
side_by_side!(A 0, B 1, C 2, D 3, E 4, F 5);
