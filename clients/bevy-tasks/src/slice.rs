//! Slices in pieces.

use crate::pool::TaskPool;

/// How long a piece is if there is one for each thread, and at most `max_tasks`; at least 1.
fn piece(len: usize, pool: &TaskPool, max_tasks: Option<usize>) -> usize {
    let of_threads = len / pool.thread_num();
    let of_most = max_tasks.map_or(0, |most| len / most.max(1));
    of_threads.max(of_most).max(1)
}

/// Calls with pieces of a slice.
pub trait ParallelSlice<T: Sync>: AsRef<[T]> {
    /// Calls `f` with each piece of `chunk_size` items and its number. What it returns, in order.
    ///
    /// # Panics
    /// If `chunk_size` is 0, and with the first panic of `f`.
    fn par_chunk_map<F, R>(&self, task_pool: &TaskPool, chunk_size: usize, f: F) -> Vec<R>
    where
        F: Fn(usize, &[T]) -> R + Send + Sync,
        R: Send + 'static,
    {
        let (pieces, f) = (self.as_ref().chunks(chunk_size), &f);
        task_pool.scope(|scope| {
            for (number, piece) in pieces.enumerate() {
                scope.spawn(async move { f(number, piece) });
            }
        })
    }

    /// The same with a piece for each thread, but at most `max_tasks` and some more where they do not divide
    /// the slice.
    fn par_splat_map<F, R>(&self, task_pool: &TaskPool, max_tasks: Option<usize>, f: F) -> Vec<R>
    where
        F: Fn(usize, &[T]) -> R + Send + Sync,
        R: Send + 'static,
    {
        let chunk_size = piece(self.as_ref().len(), task_pool, max_tasks);
        self.par_chunk_map(task_pool, chunk_size, f)
    }
}

impl<S: AsRef<[T]>, T: Sync> ParallelSlice<T> for S {}

/// Calls with pieces of a slice, which they may change.
pub trait ParallelSliceMut<T: Send>: AsMut<[T]> {
    /// As [`ParallelSlice::par_chunk_map`].
    ///
    /// # Panics
    /// As there.
    fn par_chunk_map_mut<F, R>(&mut self, task_pool: &TaskPool, chunk_size: usize, f: F) -> Vec<R>
    where
        F: Fn(usize, &mut [T]) -> R + Send + Sync,
        R: Send + 'static,
    {
        let (pieces, f) = (self.as_mut().chunks_mut(chunk_size), &f);
        task_pool.scope(|scope| {
            for (number, piece) in pieces.enumerate() {
                scope.spawn(async move { f(number, piece) });
            }
        })
    }

    /// As [`ParallelSlice::par_splat_map`].
    fn par_splat_map_mut<F, R>(
        &mut self,
        task_pool: &TaskPool,
        max_tasks: Option<usize>,
        f: F,
    ) -> Vec<R>
    where
        F: Fn(usize, &mut [T]) -> R + Send + Sync,
        R: Send + 'static,
    {
        let chunk_size = piece(self.as_mut().len(), task_pool, max_tasks);
        self.par_chunk_map_mut(task_pool, chunk_size, f)
    }
}

impl<S: AsMut<[T]>, T: Send> ParallelSliceMut<T> for S {}
