//! Adapters, which are those of the batches.

use core::iter;

use super::ParallelIterator;

/// First these batches, then those; from [`ParallelIterator::chain`].
#[derive(Debug)]
pub struct Chain<T, U> {
    first: Option<T>,
    then: U,
}

impl<T, U> Chain<T, U> {
    pub(super) fn new(first: T, then: U) -> Self {
        Chain {
            first: Some(first),
            then,
        }
    }
}

impl<B, T, U> ParallelIterator<B> for Chain<T, U>
where
    B: Iterator + Send,
    T: ParallelIterator<B>,
    U: ParallelIterator<B>,
{
    fn next_batch(&mut self) -> Option<B> {
        if let Some(batch) = self.first.as_mut().and_then(T::next_batch) {
            return Some(batch);
        }
        self.first = None;
        self.then.next_batch()
    }
}

/// An adapter that does to each batch what the iterator's method of the same name does.
macro_rules! of_batches {
    ($(#[$about:meta])* $name:ident.$method:ident, [$($more:ident),*], $batch:ty, {$($bound:tt)*}) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<P, F> {
            inner: P,
            f: F,
        }

        impl<P, F> $name<P, F> {
            pub(super) fn new(inner: P, f: F) -> Self {
                $name { inner, f }
            }
        }

        impl<B, P, F, $($more),*> ParallelIterator<$batch> for $name<P, F>
        where
            B: Iterator + Send,
            P: ParallelIterator<B>,
            $($bound)*
        {
            fn next_batch(&mut self) -> Option<$batch> {
                Some(self.inner.next_batch()?.$method(self.f.clone()))
            }
        }
    };
}

of_batches! {
    /// From [`ParallelIterator::map`].
    Map.map, [U], iter::Map<B, F>, { F: FnMut(B::Item) -> U + Send + Clone }
}

of_batches! {
    /// From [`ParallelIterator::filter`].
    Filter.filter, [], iter::Filter<B, F>, { F: FnMut(&B::Item) -> bool + Send + Clone }
}

of_batches! {
    /// From [`ParallelIterator::filter_map`].
    FilterMap.filter_map, [R], iter::FilterMap<B, F>, { F: FnMut(B::Item) -> Option<R> + Send + Clone }
}

of_batches! {
    /// From [`ParallelIterator::flat_map`].
    FlatMap.flat_map, [U], iter::FlatMap<B, U, F>,
    { F: FnMut(B::Item) -> U + Send + Clone, U: IntoIterator, U::IntoIter: Send }
}

of_batches! {
    /// From [`ParallelIterator::inspect`].
    Inspect.inspect, [], iter::Inspect<B, F>, { F: FnMut(&B::Item) + Send + Clone }
}

/// An adapter without a function.
macro_rules! of_one {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<P> {
            inner: P,
        }

        impl<P> $name<P> {
            pub(super) fn new(inner: P) -> Self {
                $name { inner }
            }
        }
    };
}

of_one! {
    /// From [`ParallelIterator::flatten`].
    Flatten
}

impl<B, P> ParallelIterator<iter::Flatten<B>> for Flatten<P>
where
    B: Iterator + Send,
    P: ParallelIterator<B>,
    B::Item: IntoIterator,
    <B::Item as IntoIterator>::IntoIter: Send,
{
    fn next_batch(&mut self) -> Option<iter::Flatten<B>> {
        Some(self.inner.next_batch()?.flatten())
    }
}

of_one! {
    /// From [`ParallelIterator::copied`].
    Copied
}

impl<'a, B, P, T> ParallelIterator<iter::Copied<B>> for Copied<P>
where
    B: Iterator<Item = &'a T> + Send,
    P: ParallelIterator<B>,
    T: 'a + Copy,
{
    fn next_batch(&mut self) -> Option<iter::Copied<B>> {
        Some(self.inner.next_batch()?.copied())
    }
}

of_one! {
    /// From [`ParallelIterator::cloned`].
    Cloned
}

impl<'a, B, P, T> ParallelIterator<iter::Cloned<B>> for Cloned<P>
where
    B: Iterator<Item = &'a T> + Send,
    P: ParallelIterator<B>,
    T: 'a + Copy,
{
    fn next_batch(&mut self) -> Option<iter::Cloned<B>> {
        Some(self.inner.next_batch()?.cloned())
    }
}

/// From [`ParallelIterator::fuse`].
#[derive(Debug)]
pub struct Fuse<P> {
    inner: Option<P>,
}

impl<P> Fuse<P> {
    pub(super) fn new(inner: P) -> Self {
        Fuse { inner: Some(inner) }
    }
}

impl<B, P> ParallelIterator<B> for Fuse<P>
where
    B: Iterator + Send,
    P: ParallelIterator<B>,
{
    fn next_batch(&mut self) -> Option<B> {
        let batch = self.inner.as_mut()?.next_batch();
        if batch.is_none() {
            self.inner = None;
        }
        batch
    }
}

/// From [`ParallelIterator::cycle`].
#[derive(Debug)]
pub struct Cycle<P> {
    whole: P,
    left: P,
}

impl<P: Clone> Cycle<P> {
    pub(super) fn new(whole: P) -> Self {
        Cycle {
            left: whole.clone(),
            whole,
        }
    }
}

impl<B, P> ParallelIterator<B> for Cycle<P>
where
    B: Iterator + Send,
    P: ParallelIterator<B> + Clone,
{
    fn next_batch(&mut self) -> Option<B> {
        // An iterator without batches has none, however often.
        self.left.next_batch().or_else(|| {
            self.left = self.whole.clone();
            self.left.next_batch()
        })
    }
}
