//! Pools that a program makes: [`ThreadPool`].

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::broadcast::{self, BroadcastContext};
use crate::builder::ThreadPoolBuilder;
use crate::error::ThreadPoolBuildError;
use crate::registry::{Here, Registry, ThreadSpawn};
use crate::scope::{self, Scope, ScopeFifo};
use crate::{join, spawn};

/// A pool of threads, apart from the global one. It is a job system of its own. When it is dropped, its
/// threads end as soon as all that was spawned in it has run; the drop does not wait for that.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
/// assert_eq!(pool.join(|| 1, || 2), (1, 2));
/// ```
pub struct ThreadPool {
    registry: Arc<Registry>,
}

impl ThreadPool {
    /// See [`ThreadPoolBuilder::build`].
    ///
    /// # Errors
    /// As there.
    #[deprecated(note = "Use `ThreadPoolBuilder::build`")]
    #[allow(deprecated)]
    pub fn new(configuration: crate::Configuration) -> Result<ThreadPool, Box<dyn Error>> {
        Self::of(configuration.into_builder()).map_err(Box::from)
    }

    pub(crate) fn of<S: ThreadSpawn>(
        builder: ThreadPoolBuilder<S>,
    ) -> Result<ThreadPool, ThreadPoolBuildError> {
        let registry = Registry::build(builder)?;
        Ok(ThreadPool { registry })
    }

    /// The job system that this pool is.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Calls `op` on a thread of this pool, which is the current pool there, and waits. A thread of another
    /// pool runs other jobs of that one meanwhile.
    ///
    /// # Panics
    /// If `op` does.
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.registry.in_worker(|_, _| op())
    }

    /// See [`broadcast`](crate::broadcast()).
    ///
    /// # Panics
    /// As there.
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        broadcast::broadcast_in(op, &self.registry)
    }

    /// How many threads it has. That does not change.
    #[inline]
    pub fn current_num_threads(&self) -> usize {
        self.registry.num_threads()
    }

    /// The index of the calling thread, if it is one of this pool's.
    #[inline]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.on_own(Here::index)
    }

    /// See [`current_thread_has_pending_tasks`], if the calling thread is one of this pool's.
    #[inline]
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.on_own(has_pending)
    }

    /// See [`join`](crate::join()).
    ///
    /// # Panics
    /// As there.
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| join::join(oper_a, oper_b))
    }

    /// See [`scope`](crate::scope()).
    ///
    /// # Panics
    /// As there.
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope::scope(op))
    }

    /// See [`scope_fifo`](crate::scope_fifo()).
    ///
    /// # Panics
    /// As there.
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope::scope_fifo(op))
    }

    /// See [`in_place_scope`](crate::in_place_scope()).
    ///
    /// # Panics
    /// As there.
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        scope::in_place_scope_in(&self.registry, op)
    }

    /// See [`in_place_scope_fifo`](crate::in_place_scope_fifo()).
    ///
    /// # Panics
    /// As there.
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        scope::in_place_scope_fifo_in(&self.registry, op)
    }

    /// See [`spawn`](crate::spawn()).
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        spawn::spawn_in(op, &self.registry);
    }

    /// See [`spawn_fifo`](crate::spawn_fifo()).
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        spawn::spawn_fifo_in(op, &self.registry);
    }

    /// See [`spawn_broadcast`](crate::spawn_broadcast()).
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        broadcast::spawn_broadcast_in(op, &self.registry);
    }

    /// See [`yield_now`], if the calling thread is one of this pool's.
    pub fn yield_now(&self) -> Option<Yield> {
        self.on_own(yields)
    }

    /// See [`yield_local`], if the calling thread is one of this pool's.
    pub fn yield_local(&self) -> Option<Yield> {
        self.on_own(yields_to_own)
    }

    fn on_own<R>(&self, f: impl FnOnce(&Here) -> R) -> Option<R> {
        Here::with(|here| here.is_of(&self.registry).then(|| f(here)))
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.registry.terminate();
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .field("id", &self.registry.id())
            .finish()
    }
}

/// The index of the calling thread in its pool, if it is in one: less than
/// [`current_num_threads`](crate::current_num_threads), and no other thread of the pool has it. (On a job
/// system of the program's it is larger than that if that has got more workers since.)
///
/// ```
/// assert_eq!(rayon_core::current_thread_index(), None);
/// assert!(rayon_core::scope(|_| rayon_core::current_thread_index()).is_some());
/// ```
#[inline]
pub fn current_thread_index() -> Option<usize> {
    on_any(Here::index)
}

/// Whether jobs may be queued on the calling thread, if it is one of a pool's. True is a hint: another thread
/// may just have taken the last one.
///
/// ```
/// assert_eq!(rayon_core::current_thread_has_pending_tasks(), None);
/// ```
#[inline]
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    on_any(has_pending)
}

/// Runs one job of the pool, on a thread of a pool: one that is queued here, or else any.
///
/// ```
/// assert_eq!(rayon_core::yield_now(), None);
/// ```
pub fn yield_now() -> Option<Yield> {
    on_any(yields)
}

/// Runs one of the jobs that are queued on this thread, on a thread of a pool.
///
/// ```
/// assert_eq!(rayon_core::yield_local(), None);
/// ```
pub fn yield_local() -> Option<Yield> {
    on_any(yields_to_own)
}

/// Whether [`yield_now`] or [`yield_local`] has run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// It has.
    Executed,
    /// There was none.
    Idle,
}

impl Yield {
    fn of(executed: bool) -> Yield {
        if executed {
            Yield::Executed
        } else {
            Yield::Idle
        }
    }
}

fn on_any<R>(f: impl FnOnce(&Here) -> R) -> Option<R> {
    Here::with(|here| here.registry().is_some().then(|| f(here)))
}

fn has_pending(here: &Here) -> bool {
    here.context()
        .is_some_and(|context| context.has_own_ready())
}

fn yields(here: &Here) -> Yield {
    Yield::of(match (here.context(), here.registry()) {
        (Some(context), _) => context.poll(),
        (None, Some(registry)) => registry.system().poll(),
        (None, None) => false,
    })
}

fn yields_to_own(here: &Here) -> Yield {
    match here.context() {
        Some(context) => Yield::of(context.poll_own()),
        // What a thread between jobs makes is in the queue for jobs from outside.
        None => yields(here),
    }
}
