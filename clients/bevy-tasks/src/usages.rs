//! Bevy's three pools. Here they are lanes of one: what frames wait for, and what they do not.

use core::ops::Deref;
use std::sync::OnceLock;

use crate::pool::{PoolUse, TaskPool};

/// How many local futures of each pool a tick runs at most.
const LOCAL_FUTURES: usize = 100;

macro_rules! global_pool {
    ($(#[$about:meta])* $name:ident, $which:ident, $held:ident) => {
        static $held: OnceLock<$name> = OnceLock::new();

        $(#[$about])*
        #[derive(Debug)]
        pub struct $name(TaskPool);

        impl $name {
            /// The pool; the first call makes it.
            pub fn get_or_init(make: impl FnOnce() -> TaskPool) -> &'static Self {
                $held.get_or_init(|| Self(make().of(PoolUse::$which)))
            }

            /// The pool, if it was made.
            pub fn try_get() -> Option<&'static Self> {
                $held.get()
            }

            /// The pool.
            ///
            /// # Panics
            /// If it was not made.
            pub fn get() -> &'static Self {
                Self::try_get().expect(concat!(
                    stringify!($name), " was not made; call ", stringify!($name), "::get_or_init first"
                ))
            }
        }

        impl Deref for $name {
            type Target = TaskPool;

            fn deref(&self) -> &TaskPool {
                &self.0
            }
        }
    };
}

global_pool! {
    /// For work that the frame waits for: the normal lane.
    ComputeTaskPool, Frame, COMPUTE
}

global_pool! {
    /// For work that takes longer than a frame: the background lane.
    AsyncComputeTaskPool, Background, ASYNC_COMPUTE
}

global_pool! {
    /// For futures that wait for devices: the background lane, too.
    IoTaskPool, Background, IO
}

/// Runs futures that were spawned as local ones on this thread, in any of the three pools.
///
/// # Panics
/// If one of the pools was not made.
pub fn tick_global_task_pools_on_main_thread() {
    let pools: [&TaskPool; 3] = [
        ComputeTaskPool::get(),
        AsyncComputeTaskPool::get(),
        IoTaskPool::get(),
    ];
    for pool in pools {
        pool.with_local_executor(|queue| {
            // Pools share the queue of a thread; the second one finds it empty.
            let _ran = (0..LOCAL_FUTURES).take_while(|_| queue.try_tick()).count();
        });
    }
}
