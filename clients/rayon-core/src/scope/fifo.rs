//! Scopes whose jobs run in the order in which a thread has made them.

use std::fmt;
use std::sync::Arc;

use super::base::{ScopeBase, ScopePtr, unborrowed};
use crate::broadcast::BroadcastContext;
use crate::registry::{Here, JobFifo, Registry};

/// A region whose jobs may borrow; see [`scope_fifo`](super::scope_fifo).
pub struct ScopeFifo<'scope> {
    base: ScopeBase<'scope>,
    /// For each thread: the jobs that it has made.
    fifos: Box<[JobFifo]>,
}

impl<'scope> ScopeFifo<'scope> {
    pub(super) fn open<R>(
        registry: &Arc<Registry>,
        here: &Here,
        op: impl FnOnce(&ScopeFifo<'scope>) -> R,
    ) -> R {
        let scope = ScopeFifo {
            base: ScopeBase::new(registry),
            fifos: (0..registry.num_threads())
                .map(|_| JobFifo::default())
                .collect(),
        };
        scope.base.complete(here, || op(&scope))
    }

    /// Makes a job that ends before the scope does. Of those that one thread of the pool makes, the oldest is
    /// the next one.
    ///
    /// ```
    /// let mut values = [1, 2];
    /// rayon_core::scope_fifo(|scope| {
    ///     for value in &mut values {
    ///         scope.spawn_fifo(move |_| *value += 1);
    ///     }
    /// });
    /// assert_eq!(values, [2, 3]);
    /// ```
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        let this = ScopePtr::new(self);
        // SAFETY: this is a job of the scope.
        let job = move |_: &Here| body(unsafe { this.scope() });
        let index = Here::with(|here| here.is_of(self.base.registry()).then(|| here.index()));
        let Some(index) = index else {
            return self.base.spawn(job);
        };
        let index = index % self.fifos.len();
        self.fifos[index].push(unborrowed(Box::new(job)));
        let this = ScopePtr::new(self);
        self.base.spawn(move |here| {
            // SAFETY: as above.
            let this: &Self = unsafe { this.scope() };
            this.fifos[index].run_oldest(here);
        });
    }

    /// Calls `body` on each thread of the pool, before the scope ends.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let calls = AtomicUsize::new(0);
    /// rayon_core::scope_fifo(|scope| {
    ///     scope.spawn_broadcast(|_, _| _ = calls.fetch_add(1, Ordering::Relaxed));
    /// });
    /// assert_eq!(calls.into_inner(), rayon_core::current_num_threads());
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let this = ScopePtr::new(self);
        self.base.spawn_on_each(move |here| {
            // SAFETY: this is a job of the scope.
            body(unsafe { this.scope() }, BroadcastContext::new(here));
        });
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeFifo")
            .field("num_fifos", &self.fifos.len())
            .field("pool_id", &self.base.id())
            .finish_non_exhaustive()
    }
}
