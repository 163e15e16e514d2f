//! Iterators whose batches run as tasks.

mod adapters;

use core::cmp::Ordering;

pub use adapters::{
    Chain, Cloned, Copied, Cycle, Filter, FilterMap, FlatMap, Flatten, Fuse, Inspect, Map,
};

use crate::pool::TaskPool;

/// An iterator over batches, each of which is an iterator. Its adapters change batches; what needs the items
/// runs a task for each batch, in a scope of a pool, and waits.
pub trait ParallelIterator<BatchIter>
where
    BatchIter: Iterator + Send,
    Self: Sized + Send,
{
    /// The next batch.
    fn next_batch(&mut self) -> Option<BatchIter>;

    /// How many items there are: at least, and at most.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, None)
    }

    /// What `f` makes of each batch, in the order of the batches.
    #[doc(hidden)]
    fn of_batches<R: Send + 'static>(
        mut self,
        pool: &TaskPool,
        f: impl FnOnce(BatchIter) -> R + Clone + Send,
    ) -> Vec<R> {
        pool.scope(|scope| {
            while let Some(batch) = self.next_batch() {
                let f = f.clone();
                scope.spawn(async move { f(batch) });
            }
        })
    }

    /// How many items there are.
    fn count(self, pool: &TaskPool) -> usize {
        self.of_batches(pool, BatchIter::count).into_iter().sum()
    }

    /// The last item of the last batch.
    fn last(mut self, _pool: &TaskPool) -> Option<BatchIter::Item> {
        let mut last = None;
        while let Some(batch) = self.next_batch() {
            last = Some(batch);
        }
        last?.last()
    }

    /// The item of this number. (No tasks: one batch after the other.)
    fn nth(mut self, _pool: &TaskPool, n: usize) -> Option<BatchIter::Item> {
        let mut left = n;
        while let Some(batch) = self.next_batch() {
            for item in batch {
                if left == 0 {
                    return Some(item);
                }
                left -= 1;
            }
        }
        None
    }

    /// These batches, then those of `other`.
    fn chain<U>(self, other: U) -> Chain<Self, U>
    where
        U: ParallelIterator<BatchIter>,
    {
        Chain::new(self, other)
    }

    /// What `f` makes of each item.
    fn map<T, F>(self, f: F) -> Map<Self, F>
    where
        F: FnMut(BatchIter::Item) -> T + Send + Clone,
    {
        Map::new(self, f)
    }

    /// Calls `f` with each item.
    fn for_each<F>(self, pool: &TaskPool, f: F)
    where
        F: FnMut(BatchIter::Item) + Send + Clone + Sync,
    {
        self.of_batches(pool, |batch| batch.for_each(f));
    }

    /// The items for which `predicate` is true.
    fn filter<F>(self, predicate: F) -> Filter<Self, F>
    where
        F: FnMut(&BatchIter::Item) -> bool,
    {
        Filter::new(self, predicate)
    }

    /// What `f` makes of items, without its `None`s.
    fn filter_map<R, F>(self, f: F) -> FilterMap<Self, F>
    where
        F: FnMut(BatchIter::Item) -> Option<R>,
    {
        FilterMap::new(self, f)
    }

    /// The items of what `f` makes of items.
    fn flat_map<U, F>(self, f: F) -> FlatMap<Self, F>
    where
        F: FnMut(BatchIter::Item) -> U,
        U: IntoIterator,
    {
        FlatMap::new(self, f)
    }

    /// The items of items.
    fn flatten(self) -> Flatten<Self>
    where
        BatchIter::Item: IntoIterator,
    {
        Flatten::new(self)
    }

    /// No more batches after the first `None`.
    fn fuse(self) -> Fuse<Self> {
        Fuse::new(self)
    }

    /// Calls `f` with each item when it is made.
    fn inspect<F>(self, f: F) -> Inspect<Self, F>
    where
        F: FnMut(&BatchIter::Item),
    {
        Inspect::new(self, f)
    }

    /// This iterator itself.
    fn by_ref(&mut self) -> &mut Self {
        self
    }

    /// All items.
    fn collect<C>(self, pool: &TaskPool) -> C
    where
        C: FromIterator<BatchIter::Item>,
        BatchIter::Item: Send + 'static,
    {
        let batches = self.of_batches(pool, |batch| batch.collect::<Vec<_>>());
        batches.into_iter().flatten().collect()
    }

    /// The items for which `f` is true, and the others.
    fn partition<C, F>(self, pool: &TaskPool, f: F) -> (C, C)
    where
        C: Default + Extend<BatchIter::Item> + Send,
        F: FnMut(&BatchIter::Item) -> bool + Send + Sync + Clone,
        BatchIter::Item: Send + 'static,
    {
        let batches = self.of_batches(pool, |batch| batch.partition::<Vec<_>, _>(f));
        let (mut those, mut others) = (C::default(), C::default());
        for (of_those, of_others) in batches {
            those.extend(of_those);
            others.extend(of_others);
        }
        (those, others)
    }

    /// What `f` makes of each batch, which begins with `init`.
    fn fold<C, F, D>(self, pool: &TaskPool, init: C, f: F) -> Vec<C>
    where
        F: FnMut(C, BatchIter::Item) -> C + Send + Sync + Clone,
        C: Clone + Send + Sync + 'static,
    {
        self.of_batches(pool, |batch| batch.fold(init, f))
    }

    /// Whether `f` is true for all items.
    fn all<F>(self, pool: &TaskPool, f: F) -> bool
    where
        F: FnMut(BatchIter::Item) -> bool + Send + Sync + Clone,
    {
        let batches = self.of_batches(pool, |mut batch| batch.all(f));
        batches.into_iter().all(|holds| holds)
    }

    /// Whether `f` is true for an item.
    fn any<F>(self, pool: &TaskPool, f: F) -> bool
    where
        F: FnMut(BatchIter::Item) -> bool + Send + Sync + Clone,
    {
        let batches = self.of_batches(pool, |mut batch| batch.any(f));
        batches.into_iter().any(|holds| holds)
    }

    /// The number of the first item for which `f` is true.
    fn position<F>(self, pool: &TaskPool, f: F) -> Option<usize>
    where
        F: FnMut(BatchIter::Item) -> bool + Send + Sync + Clone,
    {
        let of_batch = |batch: BatchIter| {
            let mut f = f;
            let (mut len, mut found) = (0, None);
            for item in batch {
                // Later items are made all the same: how many there are is asked.
                found = found.or_else(|| f(item).then_some(len));
                len += 1;
            }
            (len, found)
        };
        let mut before = 0;
        for (len, found) in self.of_batches(pool, of_batch) {
            if let Some(at) = found {
                return Some(before + at);
            }
            before += len;
        }
        None
    }

    /// The greatest item; of equal ones the last.
    fn max(self, pool: &TaskPool) -> Option<BatchIter::Item>
    where
        BatchIter::Item: Ord + Send + 'static,
    {
        let batches = self.of_batches(pool, BatchIter::max);
        batches.into_iter().flatten().max()
    }

    /// The least item; of equal ones the first.
    fn min(self, pool: &TaskPool) -> Option<BatchIter::Item>
    where
        BatchIter::Item: Ord + Send + 'static,
    {
        let batches = self.of_batches(pool, BatchIter::min);
        batches.into_iter().flatten().min()
    }

    /// The item with the greatest key.
    fn max_by_key<R, F>(self, pool: &TaskPool, f: F) -> Option<BatchIter::Item>
    where
        R: Ord,
        F: FnMut(&BatchIter::Item) -> R + Send + Sync + Clone,
        BatchIter::Item: Send + 'static,
    {
        let of_batch = f.clone();
        let batches = self.of_batches(pool, |batch| batch.max_by_key(of_batch));
        batches.into_iter().flatten().max_by_key(f)
    }

    /// The greatest item by `f`.
    fn max_by<F>(self, pool: &TaskPool, f: F) -> Option<BatchIter::Item>
    where
        F: FnMut(&BatchIter::Item, &BatchIter::Item) -> Ordering + Send + Sync + Clone,
        BatchIter::Item: Send + 'static,
    {
        let of_batch = f.clone();
        let batches = self.of_batches(pool, |batch| batch.max_by(of_batch));
        batches.into_iter().flatten().max_by(f)
    }

    /// The item with the least key.
    fn min_by_key<R, F>(self, pool: &TaskPool, f: F) -> Option<BatchIter::Item>
    where
        R: Ord,
        F: FnMut(&BatchIter::Item) -> R + Send + Sync + Clone,
        BatchIter::Item: Send + 'static,
    {
        let of_batch = f.clone();
        let batches = self.of_batches(pool, |batch| batch.min_by_key(of_batch));
        batches.into_iter().flatten().min_by_key(f)
    }

    /// The least item by `f`.
    fn min_by<F>(self, pool: &TaskPool, f: F) -> Option<BatchIter::Item>
    where
        F: FnMut(&BatchIter::Item, &BatchIter::Item) -> Ordering + Send + Sync + Clone,
        BatchIter::Item: Send + 'static,
    {
        let of_batch = f.clone();
        let batches = self.of_batches(pool, |batch| batch.min_by(of_batch));
        batches.into_iter().flatten().min_by(f)
    }

    /// Copies of the items.
    fn copied<'a, T>(self) -> Copied<Self>
    where
        Self: ParallelIterator<BatchIter>,
        T: 'a + Copy,
    {
        Copied::new(self)
    }

    /// Clones of the items.
    fn cloned<'a, T>(self) -> Cloned<Self>
    where
        Self: ParallelIterator<BatchIter>,
        T: 'a + Copy,
    {
        Cloned::new(self)
    }

    /// All batches again and again.
    fn cycle(self) -> Cycle<Self>
    where
        Self: Clone,
    {
        Cycle::new(self)
    }

    /// The sum of all items.
    fn sum<S, R>(self, pool: &TaskPool) -> R
    where
        S: core::iter::Sum<BatchIter::Item> + Send + 'static,
        R: core::iter::Sum<S>,
    {
        self.of_batches(pool, BatchIter::sum::<S>).into_iter().sum()
    }

    /// The product of all items.
    fn product<S, R>(self, pool: &TaskPool) -> R
    where
        S: core::iter::Product<BatchIter::Item> + Send + 'static,
        R: core::iter::Product<S>,
    {
        self.of_batches(pool, BatchIter::product::<S>)
            .into_iter()
            .product()
    }
}
