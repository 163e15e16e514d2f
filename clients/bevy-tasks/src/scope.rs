//! Futures that borrow.

use std::any::Any;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_executor::Executor;
use async_task::{FallibleTask, Task};
use futures_lite::FutureExt;
use futures_lite::future::{or, pending};

use crate::drive::drive;
use crate::pool::TaskPool;
use crate::system::job_system;
use crate::thread_executor::ThreadExecutor;

/// The output of a future, or its panic. Wherever it is dropped untaken, in the queue of another thread or in
/// a worker, a panic of its own drop goes no further: one panic is told already.
#[derive(Debug)]
struct Caught<T>(Option<Result<T, Box<dyn Any + Send>>>);

impl<T> Caught<T> {
    async fn of(future: impl Future<Output = T>) -> Caught<T> {
        Caught(Some(AssertUnwindSafe(future).catch_unwind().await))
    }

    fn take(mut self) -> Option<Result<T, Box<dyn Any + Send>>> {
        self.0.take()
    }
}

impl<T> Drop for Caught<T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// Where futures of a scope are spawned; from [`TaskPool::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope, T> {
    pool: &'scope TaskPool,
    /// For the thread of the scope.
    own: &'scope Executor<'scope>,
    external: &'scope ThreadExecutor<'scope>,
    /// All futures whose outputs were not taken yet, in order.
    spawned: &'scope Spawned<T>,
    // Neither can be made longer or shorter.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, T: Send + 'scope> Scope<'scope, '_, T> {
    /// Runs a future on any thread.
    pub fn spawn<F: Future<Output = T> + 'scope + Send>(&self, future: F) {
        let builder = async_task::Builder::new();
        let future = Caught::of(future);
        // SAFETY: the future and its output are dropped before 'scope ends: `in_scope` waits for all that was
        // spawned, or cancels it and waits for that, before it returns. The waker is `Send`, `Sync` and
        // 'static as the schedule function is.
        let (runnable, task) =
            unsafe { builder.spawn_unchecked(|()| future, self.pool.schedule()) };
        runnable.schedule();
        self.spawned.push(task);
    }

    /// Runs a future on the thread that called `scope`.
    pub fn spawn_on_scope<F: Future<Output = T> + 'scope + Send>(&self, future: F) {
        let future = Caught::of(future);
        self.spawned.push(self.own.spawn(future));
    }

    /// Runs a future on the thread of the executor that `scope_with_executor` was given.
    pub fn spawn_on_external<F: Future<Output = T> + 'scope + Send>(&self, future: F) {
        let future = Caught::of(future);
        self.spawned.push(self.external.spawn(future));
    }
}

/// The futures of a scope.
#[derive(Debug)]
struct Spawned<T>(Mutex<Vec<FallibleTask<Caught<T>>>>);

impl<T> Spawned<T> {
    fn tasks(&self) -> MutexGuard<'_, Vec<FallibleTask<Caught<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Task<Caught<T>>) {
        self.tasks().push(task.fallible());
    }

    /// The outputs of all, also of those that others of them spawn meanwhile, and the first panic.
    async fn outputs(&self) -> (Vec<T>, Option<Box<dyn Any + Send>>) {
        let (mut outputs, mut panic) = (Vec::new(), None);
        loop {
            let tasks = mem::take(&mut *self.tasks());
            if tasks.is_empty() {
                return (outputs, panic);
            }
            for task in tasks {
                match task.await.and_then(Caught::take) {
                    Some(Ok(output)) => outputs.push(output),
                    Some(Err(payload)) if panic.is_none() => panic = Some(payload),
                    Some(Err(payload)) => discard(payload),
                    // It was dropped with its queue, unfinished.
                    None => {
                        panic = panic.or_else(|| Some(Box::new("a task of a scope was dropped")))
                    }
                }
            }
        }
    }

    /// Ends all of them where they are, and waits until none runs.
    async fn cancel(&self) {
        loop {
            let tasks = mem::take(&mut *self.tasks());
            if tasks.is_empty() {
                return;
            }
            for task in tasks {
                drop(task.cancel().await);
            }
        }
    }
}

/// Calls `f`, and runs what it spawns.
pub(crate) fn in_scope<'env, F, T>(pool: &TaskPool, external: &ThreadExecutor<'_>, f: F) -> Vec<T>
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, T>),
    T: Send + 'static,
{
    let own = Executor::new();
    let spawned = Spawned(Mutex::new(Vec::new()));
    // SAFETY: these are borrowed for as long as the program may name, 'env, and are used for less: nothing of
    // the scope is left when this function is, as below, and `own` and `spawned` end after that.
    let (pool, own, external, spawned) = unsafe {
        (
            mem::transmute::<&TaskPool, &'env TaskPool>(pool),
            mem::transmute::<&Executor<'_>, &'env Executor<'env>>(&own),
            mem::transmute::<&ThreadExecutor<'_>, &'env ThreadExecutor<'env>>(external),
            mem::transmute::<&Spawned<T>, &'env Spawned<T>>(&spawned),
        )
    };
    let scope = Scope {
        pool,
        own,
        external,
        spawned,
        scope: PhantomData,
        env: PhantomData,
    };
    // SAFETY: as above.
    let scope: &'env Scope<'env, 'env, T> = unsafe { mem::transmute(&scope) };
    // Nothing below panics. If something did, futures would outlive what they borrow.
    let guard = AbortOnUnwind;
    let called = catch_unwind(AssertUnwindSafe(|| f(scope)));
    if let Err(payload) = called {
        drive(job_system(), or(spawned.cancel(), beside(own, external)));
        mem::forget(guard);
        resume_unwind(payload);
    }
    let (outputs, panic) = drive(job_system(), or(spawned.outputs(), beside(own, external)));
    mem::forget(guard);
    let Some(payload) = panic else {
        return outputs;
    };
    for output in outputs {
        discard(output);
    }
    resume_unwind(payload)
}

/// Drops what may panic when it is dropped.
fn discard<T>(left: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(left))) {
        mem::forget(payload);
    }
}

/// Ends the process if it is dropped.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Runs the futures of this thread for as long as others are waited for: never ready.
async fn beside<R>(own: &Executor<'_>, external: &ThreadExecutor<'_>) -> R {
    let Some(ticker) = external.ticker() else {
        return own.run(pending()).await;
    };
    let tick = async {
        loop {
            ticker.tick().await;
        }
    };
    or(own.run(pending()), tick).await
}
