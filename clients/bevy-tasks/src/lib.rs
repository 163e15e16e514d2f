//! Bevy's tasks on Paceline's workers: the interface of `bevy_tasks`.
//!
#![doc = include_str!("../README.md")]

/// Which of Bevy's configurations this is, as macros that Bevy's crates call.
pub mod cfg {
    pub use bevy_platform::cfg::{alloc, std, web};

    bevy_platform::cfg::define_alias! {
        #[cfg(feature = "async_executor")] => {
            /// The default executor of futures.
            async_executor
        }

        #[cfg(feature = "multi_threaded")] => {
            /// More than one thread.
            multi_threaded
        }

        #[cfg(target_arch = "wasm32")] => {
            /// Futures need not be `Send`.
            conditional_send
        }
    }
}

#[cfg(not(feature = "multi_threaded"))]
compile_error!(
    "bevy_tasks on Paceline is for Bevy's feature `multi_threaded`; ask for it, or take the patch line away"
);

extern crate alloc;

mod blocked;
mod drive;
pub mod futures;
pub mod iter;
mod jobs;
mod pool;
mod scope;
mod slice;
mod system;
mod thread_executor;
mod usages;

use core::pin::Pin;

pub use async_task::Task;
pub use blocked::block_on;
pub use futures_lite;
pub use futures_lite::future::poll_once;
pub use iter::ParallelIterator;
pub use pool::{TaskPool, TaskPoolBuilder};
pub use scope::Scope;
pub use slice::{ParallelSlice, ParallelSliceMut};
pub use system::{JobSystemInUse, job_system, use_job_system};
pub use thread_executor::{ThreadExecutor, ThreadExecutorTicker};
pub use usages::{
    AsyncComputeTaskPool, ComputeTaskPool, IoTaskPool, tick_global_task_pools_on_main_thread,
};

/// A future that is `Send` where Bevy's futures have to be.
pub trait ConditionalSend: Send {}
impl<T: Send> ConditionalSend for T {}

/// A future with that bound.
pub trait ConditionalSendFuture: Future + ConditionalSend {}
impl<T: Future + ConditionalSend> ConditionalSendFuture for T {}

/// A future in a box.
pub type BoxedFuture<'a, T> = Pin<Box<dyn ConditionalSendFuture<Output = T> + 'a>>;

/// What programs use most.
pub mod prelude {
    #[doc(hidden)]
    pub use crate::{
        AsyncComputeTaskPool, ComputeTaskPool, IoTaskPool, ParallelIterator, ParallelSlice,
        ParallelSliceMut, block_on,
    };
}

/// How many CPUs this process may use; at least 1.
pub fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, core::num::NonZero::get)
}
