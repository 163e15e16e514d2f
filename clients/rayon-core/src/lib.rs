//! rayon's core, on Paceline's workers.
#![doc = include_str!("../README.md")]

mod broadcast;
mod builder;
mod error;
mod join;
mod latch;
mod private;
mod registry;
mod scope;
mod spawn;
mod thread_pool;
mod unwind;

use std::sync::Arc;

use paceline::JobSystem;

pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
#[allow(deprecated)]
pub use builder::{Configuration, ThreadPoolBuilder, initialize};
pub use error::ThreadPoolBuildError;
pub use join::{FnContext, join, join_context};
pub use registry::ThreadBuilder;
use registry::{Here, Registry, global_registry};
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_fifo};
pub use thread_pool::{
    ThreadPool, Yield, current_thread_has_pending_tasks, current_thread_index, yield_local,
    yield_now,
};

/// The most threads that a pool can have.
pub fn max_num_threads() -> usize {
    paceline::WORKERS_MAX
}

/// How many threads the current pool has, or else the global one.
///
/// ```
/// assert!(rayon_core::current_num_threads() >= 1);
/// ```
pub fn current_num_threads() -> usize {
    Here::with(|here| match here.registry() {
        Some(registry) => registry.num_threads(),
        None => global_registry().num_threads(),
    })
}

/// Has the global pool be this job system, which the program has made: rayon and the program's own jobs then
/// share one set of workers. Call it before the first use of rayon.
///
/// The global pool has one thread more than there are workers: threads of the program take part in what they
/// call.
/// [`broadcast()`] reaches the workers.
///
/// ```
/// use std::sync::Arc;
/// let js = Arc::new(paceline::JobSystem::new());
/// rayon_core::use_job_system(Arc::clone(&js)).unwrap();
/// js.wait(js.job("sum").schedule(|_| {
///     // A job of the program's, and one of rayon's.
///     assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
/// }));
/// ```
///
/// # Errors
/// If there is a global pool already.
pub fn use_job_system(system: Arc<JobSystem>) -> Result<(), ThreadPoolBuildError> {
    registry::adopt(system)
}

/// The job system that the current pool runs on, or else the global pool. It is for jobs of the program's
/// own, on the same workers.
///
/// ```
/// let js = rayon_core::job_system();
/// let answer = js.job("answer").run(|_| 42);
/// assert_eq!(answer.wait(), 42);
/// ```
pub fn job_system() -> Arc<JobSystem> {
    Arc::clone(Registry::current().system())
}

impl ThreadPool {
    /// The job system that this pool runs on. It ends with the pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    /// assert_eq!(pool.job_system().workers(), 2);
    /// ```
    pub fn job_system(&self) -> &JobSystem {
        self.registry().system()
    }
}
