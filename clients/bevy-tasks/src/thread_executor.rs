//! Futures that one thread runs: that of the program's main function, for what the system's libraries allow
//! nowhere else.

use std::marker::PhantomData;
use std::thread::{self, ThreadId};

use async_executor::Executor;
use async_task::Task;

/// A queue of futures from any thread, which the thread that made it runs.
#[derive(Debug)]
pub struct ThreadExecutor<'task> {
    queue: Executor<'task>,
    thread: ThreadId,
}

impl Default for ThreadExecutor<'_> {
    fn default() -> Self {
        ThreadExecutor {
            queue: Executor::new(),
            thread: thread::current().id(),
        }
    }
}

impl<'task> ThreadExecutor<'task> {
    /// That of the calling thread.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues a future, from any thread.
    pub fn spawn<T: Send + 'task>(
        &self,
        future: impl Future<Output = T> + Send + 'task,
    ) -> Task<T> {
        self.queue.spawn(future)
    }

    /// What runs the queue; none on other threads than that which made it.
    pub fn ticker<'ticker>(&'ticker self) -> Option<ThreadExecutorTicker<'task, 'ticker>> {
        let ticker = ThreadExecutorTicker {
            executor: self,
            stays: PhantomData,
        };
        (thread::current().id() == self.thread).then_some(ticker)
    }

    /// Whether both are the same queue.
    pub fn is_same(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// Runs the queue of a [`ThreadExecutor`], and stays on its thread.
#[derive(Debug)]
pub struct ThreadExecutorTicker<'task, 'ticker> {
    executor: &'ticker ThreadExecutor<'task>,
    stays: PhantomData<*const ()>,
}

impl ThreadExecutorTicker<'_, '_> {
    /// Runs a future of the queue for a while; waits for one if there is none.
    pub async fn tick(&self) {
        self.executor.queue.tick().await;
    }

    /// Runs a future of the queue for a while; whether there was one.
    pub fn try_tick(&self) -> bool {
        self.executor.queue.try_tick()
    }
}
