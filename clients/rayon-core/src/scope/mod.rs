//! Jobs that borrow, and that have ended when the scope does.

mod base;
mod fifo;

use std::fmt;
use std::sync::Arc;

use base::{ScopeBase, ScopePtr};
pub use fifo::ScopeFifo;

use crate::broadcast::BroadcastContext;
use crate::registry::{self, Here, Registry, global_registry};

/// A region whose jobs may borrow; see [`scope`].
pub struct Scope<'scope> {
    base: ScopeBase<'scope>,
}

/// Calls `op` on a thread of the current pool, with a scope. Returns when `op` and all jobs of the scope have
/// ended. The thread runs jobs while it waits.
///
/// ```
/// let mut values = [1, 2];
/// rayon_core::scope(|scope| {
///     for value in &mut values {
///         scope.spawn(move |_| *value += 1);
///     }
/// });
/// assert_eq!(values, [2, 3]);
/// ```
///
/// # Panics
/// When all have ended: with the first panic of a job, or else with that of `op`.
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    registry::in_worker(|here, _| Scope::open(&Registry::current(), here, op))
}

/// As [`scope`]; of the jobs that a thread makes the oldest is the next one, where the other kind of scope
/// takes the newest.
///
/// ```
/// let sum = rayon_core::scope_fifo(|_| 1 + 1);
/// assert_eq!(sum, 2);
/// ```
///
/// # Panics
/// As `scope`.
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    registry::in_worker(|here, _| ScopeFifo::open(&Registry::current(), here, op))
}

/// As [`scope`], with `op` on the calling thread, whichever that is. So it need not be Send.
///
/// ```
/// let not_send = std::rc::Rc::new(7);
/// assert_eq!(rayon_core::in_place_scope(|_| *not_send), 7);
/// ```
///
/// # Panics
/// As `scope`.
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    in_place(&in_place_registry(), |registry, here| {
        Scope::open(registry, here, op)
    })
}

/// As [`scope_fifo`], with `op` on the calling thread, whichever that is.
///
/// ```
/// let not_send = std::rc::Rc::new(7);
/// assert_eq!(rayon_core::in_place_scope_fifo(|_| *not_send), 7);
/// ```
///
/// # Panics
/// As `scope`.
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    in_place(&in_place_registry(), |registry, here| {
        ScopeFifo::open(registry, here, op)
    })
}

pub(crate) fn in_place_scope_in<'scope, R>(
    registry: &Arc<Registry>,
    op: impl FnOnce(&Scope<'scope>) -> R,
) -> R {
    in_place(registry, |registry, here| Scope::open(registry, here, op))
}

pub(crate) fn in_place_scope_fifo_in<'scope, R>(
    registry: &Arc<Registry>,
    op: impl FnOnce(&ScopeFifo<'scope>) -> R,
) -> R {
    in_place(registry, |registry, here| {
        ScopeFifo::open(registry, here, op)
    })
}

fn in_place_registry() -> Arc<Registry> {
    // The global pool may be made by this, and have the calling thread as one of its own.
    if Here::with(|here| here.registry().is_none()) {
        global_registry();
    }
    Registry::current()
}

/// Calls `f` here. A thread of the pool that is between jobs goes into the job system for it.
fn in_place<R>(registry: &Arc<Registry>, f: impl FnOnce(&Arc<Registry>, &Here) -> R) -> R {
    Here::with(|here| {
        if here.is_of(registry) {
            registry.in_own_thread(here, |here| f(registry, here))
        } else {
            f(registry, here)
        }
    })
}

impl<'scope> Scope<'scope> {
    fn open<R>(registry: &Arc<Registry>, here: &Here, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
        let scope = Scope {
            base: ScopeBase::new(registry),
        };
        scope.base.complete(here, || op(&scope))
    }

    /// Makes a job that ends before the scope does. On a thread of the pool the newest one is the next.
    ///
    /// ```
    /// let mut value = 1;
    /// rayon_core::scope(|scope| scope.spawn(|scope| scope.spawn(|_| value = 2)));
    /// assert_eq!(value, 2);
    /// ```
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        let this = ScopePtr::new(self);
        // SAFETY: this is a job of the scope.
        self.base.spawn(move |_| body(unsafe { this.scope() }));
    }

    /// Calls `body` on each thread of the pool, before the scope ends.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let calls = AtomicUsize::new(0);
    /// rayon_core::scope(|scope| {
    ///     scope.spawn_broadcast(|_, _| _ = calls.fetch_add(1, Ordering::Relaxed));
    /// });
    /// assert_eq!(calls.into_inner(), rayon_core::current_num_threads());
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let this = ScopePtr::new(self);
        self.base.spawn_on_each(move |here| {
            // SAFETY: this is a job of the scope.
            body(unsafe { this.scope() }, BroadcastContext::new(here));
        });
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("pool_id", &self.base.id())
            .finish_non_exhaustive()
    }
}
