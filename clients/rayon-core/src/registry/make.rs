//! How a pool is made.

use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use paceline::platform::HostedThread;
use paceline::{Builder, JOBS_MAX, JobSystem, Os, THREADS_MAX, WaitRule};

use super::seats::Seats;
use super::{Here, JobFifo, Kind, Registry, ThreadBuilder, ThreadSpawn};
use crate::builder::{Handlers, ThreadPoolBuilder};
use crate::error::{ErrorKind, ThreadPoolBuildError};
use crate::latch::CountLatch;

/// Ends the pool if it could not be built.
struct Terminator<'a>(&'a Arc<Registry>);

impl Drop for Terminator<'_> {
    fn drop(&mut self) {
        // Threads that were not made run no job. Those that were are waited for.
        self.0.release(drop);
    }
}

impl Registry {
    /// A pool with threads of its own.
    ///
    /// # Errors
    /// If a thread cannot be made, or if the calling thread is to be part of it and is part of another.
    pub(crate) fn build<S: ThreadSpawn>(
        mut builder: ThreadPoolBuilder<S>,
    ) -> Result<Arc<Registry>, ThreadPoolBuildError> {
        let num_threads = builder.threads_to_build();
        let uses_current = builder.use_current_thread;
        if uses_current && Here::with(|here| here.registry().is_some()) {
            return Err(ThreadPoolBuildError::new(
                ErrorKind::CurrentThreadAlreadyInPool,
            ));
        }
        let (system, workers) = start(num_threads - usize::from(uses_current))?;
        let handlers = std::mem::take(&mut builder.handlers);
        let pins = OnceLock::new();
        let kind = Kind::Own { pins, uses_current };
        let started = (workers.len(), num_threads);
        let registry = Registry::with(Arc::new(system), kind, handlers, started);
        let terminator = Terminator(&registry);
        let mut first = 0;
        if uses_current {
            builder.name_of(0);
            registry.clone().take_current_thread();
            first = 1;
        }
        if let Kind::Own { pins, .. } = &registry.kind {
            let current = uses_current.then(|| {
                let here = registry.system().pinned_thread();
                let pin = here.pin();
                // As the thread: it belongs to the pool for good.
                std::mem::forget(here);
                pin
            });
            let workers = registry.system().worker_pins();
            let _ = pins.set(current.into_iter().chain(workers).collect());
        }
        for (worker, index) in workers.into_iter().zip(first..) {
            let thread = ThreadBuilder {
                name: builder.name_of(index),
                stack_size: builder.stack_size,
                index,
                registry: Arc::clone(&registry),
                worker,
            };
            builder.spawn_handler.spawn(thread)?;
        }
        std::mem::forget(terminator);
        Ok(registry)
    }

    /// A pool on a job system of the program's.
    pub(super) fn on(system: Arc<JobSystem>) -> Arc<Registry> {
        // A thread of the program takes part while it waits.
        let seats = Seats::behind(system.workers());
        let threads = system.workers() + 1;
        Registry::with(
            system,
            Kind::Adopted { seats },
            Handlers::default(),
            (0, threads),
        )
    }

    /// `threads`: how many are started for it, and how many it has.
    fn with(
        system: Arc<JobSystem>,
        kind: Kind,
        handlers: Handlers,
        (started, num_threads): (usize, usize),
    ) -> Arc<Registry> {
        Arc::new(Registry {
            system: ManuallyDrop::new(system),
            num_threads,
            kind,
            fifos: (0..num_threads).map(|_| JobFifo::default()).collect(),
            primed: CountLatch::new(started),
            stopped: CountLatch::new(started),
            handlers,
            terminate_count: AtomicUsize::new(1),
        })
    }

    /// The calling thread is the first of the pool from now on.
    fn take_current_thread(self: Arc<Self>) {
        // SAFETY: the pool is leaked, since a thread has no place to drop it.
        Here::with(|here| unsafe { here.belong(Some(&self), 0) });
        std::mem::forget(self);
    }
}

/// All threads of a pool wait, one of them deep in its stack: it may be too deep to run what is left.
fn warn_if_deep(here: &Here) {
    if here.is_deep() {
        eprintln!(
            "rayon on Paceline: all threads of a pool wait, and the stack of one is used up, so it starts \
             nothing more: scopes and iterators nest too deep; see ThreadPoolBuilder::stack_size"
        );
    }
}

/// A job system for a pool, and what its workers' threads are to do.
fn start(workers: usize) -> Result<(JobSystem, Vec<HostedThread>), ThreadPoolBuildError> {
    let threads: Arc<Mutex<Vec<HostedThread>>> = Arc::default();
    let collected = Arc::clone(&threads);
    let host = move |thread| {
        let mut threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread);
        Ok(())
    };
    // A pool has the threads that it was asked for, always. A wait runs whatever there is, so waits that hold
    // all of them are no reason to warn.
    let system = Builder::with_platform(Os)
        .workers(workers)
        .follow_machine(false)
        .max_spares(0)
        .max_jobs(JOBS_MAX)
        .max_threads(THREADS_MAX)
        .callers_sleep(thread::yield_now)
        .on_stuck(|_| Here::with(warn_if_deep))
        .wait_rule(WaitRule::Anything)
        .host_workers(host)
        .build()?;
    let mut workers = collected.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((system, std::mem::take(&mut *workers)))
}
