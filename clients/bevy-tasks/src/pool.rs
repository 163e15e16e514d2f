//! Pools, which are ways to the one job system.

use std::sync::Arc;

use async_executor::LocalExecutor;
use async_task::{Runnable, Task};
use paceline::{JobSystem, Lane};

use crate::jobs;
use crate::scope::{Scope, in_scope};
use crate::system::job_system;
use crate::thread_executor::ThreadExecutor;

thread_local! {
    /// The futures that only this thread runs.
    static LOCAL: LocalExecutor<'static> = const { LocalExecutor::new() };
    static OWN: Arc<ThreadExecutor<'static>> = Arc::new(ThreadExecutor::new());
}

/// The settings of a pool. All pools run on one job system, whose threads are there already: what they say of
/// threads has no effect.
#[derive(Default)]
#[must_use]
pub struct TaskPoolBuilder(());

impl TaskPoolBuilder {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has no effect.
    pub fn num_threads(self, _num_threads: usize) -> Self {
        self
    }

    /// Has no effect.
    pub fn stack_size(self, _stack_size: usize) -> Self {
        self
    }

    /// Has no effect.
    pub fn thread_name(self, _thread_name: String) -> Self {
        self
    }

    /// Has no effect: the job system's workers are there already.
    pub fn on_thread_spawn(self, _call: impl Fn() + Send + Sync + 'static) -> Self {
        self
    }

    /// Has no effect: the job system's workers are there for as long as the process.
    pub fn on_thread_destroy(self, _call: impl Fn() + Send + Sync + 'static) -> Self {
        self
    }

    /// The pool.
    pub fn build(self) -> TaskPool {
        TaskPool::new()
    }
}

/// What a pool's futures are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolUse {
    /// The frame waits for them.
    Frame,
    /// They take longer than a frame.
    Background,
}

/// A way to the job system: its futures are jobs.
#[derive(Debug)]
pub struct TaskPool {
    used_for: PoolUse,
}

impl Default for TaskPool {
    fn default() -> Self {
        TaskPool {
            used_for: PoolUse::Frame,
        }
    }
}

impl TaskPool {
    /// A pool with the usual settings.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn of(self, used_for: PoolUse) -> Self {
        TaskPool { used_for }
    }

    /// The queue of futures that the calling thread runs.
    pub fn get_thread_executor() -> Arc<ThreadExecutor<'static>> {
        OWN.with(Arc::clone)
    }

    /// How many workers there are.
    pub fn thread_num(&self) -> usize {
        job_system().workers().max(1)
    }

    /// Calls `f`, which spawns futures that borrow, runs them all, and returns their outputs in the order in
    /// which they were spawned.
    ///
    /// # Panics
    /// With the first panic of `f` or of a future, when all others have ended.
    pub fn scope<'env, F, T>(&self, f: F) -> Vec<T>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, T>),
        T: Send + 'static,
    {
        self.scope_with_executor(true, None, f)
    }

    /// The same. While it waits, the thread runs futures of `external`, too, if that is its own. It runs jobs
    /// of the job system in any case.
    ///
    /// # Panics
    /// As [`scope`](TaskPool::scope).
    pub fn scope_with_executor<'env, F, T>(
        &self,
        _tick_task_pool_executor: bool,
        external_executor: Option<&ThreadExecutor<'_>>,
        f: F,
    ) -> Vec<T>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, T>),
        T: Send + 'static,
    {
        match external_executor {
            Some(external) => in_scope(self, external, f),
            None => OWN.with(|own| in_scope(self, own, f)),
        }
    }

    /// Runs a future.
    pub fn spawn<T>(&self, future: impl Future<Output = T> + Send + 'static) -> Task<T>
    where
        T: Send + 'static,
    {
        let builder = async_task::Builder::new().propagate_panic(true);
        let (runnable, task) = builder.spawn(|()| future, self.schedule());
        runnable.schedule();
        task
    }

    /// Runs a future on the calling thread, when that ticks its queue
    /// ([`with_local_executor`](TaskPool::with_local_executor)).
    pub fn spawn_local<T>(&self, future: impl Future<Output = T> + 'static) -> Task<T>
    where
        T: 'static,
    {
        LOCAL.with(|queue| queue.spawn(future))
    }

    /// Calls `f` with the calling thread's queue of local futures, to run some of them.
    pub fn with_local_executor<F, R>(&self, f: F) -> R
    where
        F: FnOnce(&LocalExecutor<'static>) -> R,
    {
        LOCAL.with(f)
    }

    /// What makes a job of a future that may go on.
    pub(crate) fn schedule(&self) -> impl Fn(Runnable) + Send + Sync + 'static {
        let js: &'static JobSystem = job_system();
        let lane = match self.used_for {
            PoolUse::Frame => Lane::Normal,
            PoolUse::Background => Lane::Background,
        };
        move |runnable| jobs::schedule(js, lane, runnable)
    }
}
