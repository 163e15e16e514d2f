//! A pool: a job system, and what rayon promises about its threads.

mod fifo;
mod global;
mod here;
mod make;
mod patience;
mod seats;
mod stack_job;
mod threads;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use paceline::{Context, JobSystem, ThreadPin};

pub(crate) use fifo::{BoxedJob, JobFifo};
pub(crate) use global::{adopt, global_registry, init_global_registry};
pub(crate) use here::Here;
pub(crate) use patience::Patience;
use seats::{Seat, Seats};
pub(crate) use stack_job::StackJob;
pub use threads::ThreadBuilder;
pub(crate) use threads::{CustomSpawn, DefaultSpawn, ThreadSpawn};

use crate::builder::Handlers;
use crate::latch::CountLatch;
use crate::unwind::{AbortIfPanic, halt_unwinding};

/// A pool.
pub(crate) struct Registry {
    /// Taken when `terminate_count` comes to zero.
    system: ManuallyDrop<Arc<JobSystem>>,
    num_threads: usize,
    kind: Kind,
    /// Of each thread: what it was told to run in the order of its calls.
    fifos: Box<[JobFifo]>,
    primed: CountLatch,
    stopped: CountLatch,
    handlers: Handlers,
    /// How many hold the pool: its owner, and each job that no thread waits for.
    terminate_count: AtomicUsize,
}

/// Where its threads come from.
enum Kind {
    /// The pool's own, with an index each.
    Own {
        /// What jobs are pinned to that are for one of the threads.
        pins: OnceLock<Vec<ThreadPin>>,
        /// The first thread is one of the program's.
        uses_current: bool,
    },
    /// Those of a job system of the program's.
    Adopted { seats: Seats },
}

/// Where a thread has its index from.
enum Place<'r> {
    Worker(usize),
    Seat(Seat<'r>),
}

impl Place<'_> {
    fn index(&self) -> usize {
        match self {
            Place::Worker(index) => *index,
            Place::Seat(seat) => seat.index(),
        }
    }
}

impl Registry {
    /// The pool of the calling thread, or else the global one.
    pub(crate) fn current() -> Arc<Registry> {
        Here::with(|here| match here.registry() {
            // SAFETY: it lives in an Arc (all do), and is alive.
            Some(registry) => unsafe {
                Arc::increment_strong_count(registry);
                Arc::from_raw(registry)
            },
            None => Arc::clone(global_registry()),
        })
    }

    /// Distinguishes pools.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(crate) fn num_threads(&self) -> usize {
        self.num_threads
    }

    /// The job system. Not after its end.
    pub(crate) fn system(&self) -> &Arc<JobSystem> {
        debug_assert!(self.terminate_count.load(Ordering::Relaxed) > 0 || self.uses_current());
        &self.system
    }

    fn uses_current(&self) -> bool {
        matches!(
            &self.kind,
            Kind::Own {
                uses_current: true,
                ..
            }
        )
    }

    /// The place of a thread that runs a job here, and is not one of the pool's own.
    #[cold]
    fn place(&self, context: &Context<'_>) -> Place<'_> {
        let worker = context.worker();
        match &self.kind {
            Kind::Adopted { seats } if worker >= seats.workers() => Place::Seat(seats.take()),
            Kind::Adopted { .. } | Kind::Own { .. } => Place::Worker(worker),
        }
    }

    /// What to pin jobs to, for each thread.
    pub(crate) fn pins(&self) -> Vec<ThreadPin> {
        match &self.kind {
            Kind::Own { pins, .. } => pins.get().cloned().unwrap_or_default(),
            Kind::Adopted { .. } => self.system().worker_pins(),
        }
    }

    /// The queue for calls in order of the thread with this index.
    pub(crate) fn fifo(&self, index: usize) -> &JobFifo {
        &self.fifos[index % self.fifos.len()]
    }

    /// Calls `f`. If it panics, the pool's handler is told. Without one, or if that panics, the process ends.
    pub(crate) fn catch_unwind(&self, f: impl FnOnce()) {
        if let Err(payload) = halt_unwinding(f) {
            let guard = AbortIfPanic;
            if let Some(handler) = &self.handlers.panic {
                handler(payload);
                std::mem::forget(guard);
            }
        }
    }

    fn begin_thread(&self, index: usize) {
        self.primed.count_down();
        if let Some(start) = &self.handlers.start {
            self.catch_unwind(|| start(index));
        }
    }

    fn end_thread(&self, index: usize) {
        self.stopped.count_down();
        if let Some(exit) = &self.handlers.exit {
            self.catch_unwind(|| exit(index));
        }
    }

    pub(crate) fn wait_until_primed(&self) {
        self.primed.block();
    }

    /// For tests, also for those of the original, which call it by this name.
    #[cfg(test)]
    pub(crate) fn wait_until_stopped(&self) {
        self.stopped.block();
    }
}

/// Jobs.
impl Registry {
    /// Schedules a job. On a thread of the pool it is the newest one there.
    pub(crate) fn schedule(self: &Arc<Self>, body: impl FnOnce(&Here) + Send + 'static) {
        let registry = Arc::clone(self);
        let job = move |context: &Context<'_>| {
            Here::with(|here| here.enter(&registry, context, body));
        };
        Here::with(|here| match here.context() {
            Some(context) if here.is_of(self) => _ = context.job("spawn").schedule(job),
            _ => {
                let system = self.system();
                system.job("spawn").schedule(job);
                self.wake();
            }
        });
    }

    /// A job from outside was scheduled: more than one worker may be needed for all of them. (Without workers
    /// the thread would run them, and it is not one of the pool's.)
    fn wake(&self) {
        if self.num_threads > 1 || !self.uses_current() {
            self.system().flush();
        }
    }

    /// Calls `op` on a thread of this pool. The calling thread waits, unless it is one.
    pub(crate) fn in_worker<OP, R>(self: &Arc<Self>, op: OP) -> R
    where
        OP: FnOnce(&Here, bool) -> R + Send,
        R: Send,
    {
        Here::with(|here| {
            if here.is_of(self) {
                self.in_own_thread(here, |here| op(here, false))
            } else {
                self.hand_over(here, op)
            }
        })
    }

    /// Whether the calling thread takes part in this job system, which is the program's: it is in no pool,
    /// but may be in a job of the program's.
    fn lets_in(&self, here: &Here) -> bool {
        matches!(self.kind, Kind::Adopted { .. }) && here.registry().is_none()
    }

    /// Calls `op`; in the job system, if the calling thread takes part in it, so that it waits as others do.
    pub(crate) fn in_adopted<R>(&self, here: &Here, op: impl FnOnce(&Here) -> R) -> R {
        if !self.lets_in(here) {
            return op(here);
        }
        self.system().enter(|context| here.enter(self, context, op))
    }

    /// On a thread of this pool, which may be between jobs.
    #[inline]
    pub(crate) fn in_own_thread<R>(&self, here: &Here, op: impl FnOnce(&Here) -> R) -> R {
        if here.context().is_some() {
            return op(here);
        }
        self.system().enter(|context| here.enter(self, context, op))
    }

    /// Has a thread of this pool call `op`, and waits.
    #[cold]
    fn hand_over<OP, R>(self: &Arc<Self>, here: &Here, op: OP) -> R
    where
        OP: FnOnce(&Here, bool) -> R + Send,
        R: Send,
    {
        if self.lets_in(here) {
            return self.in_adopted(here, |here| op(here, true));
        }
        let latch = CountLatch::new(1);
        let job = StackJob::new(|here: &Here| op(here, true));
        // SAFETY: this function leaves when the job has run.
        let to_run = unsafe { job.to_run() };
        let opens = LatchPtr::new(&latch);
        self.schedule(move |here| {
            to_run.run(here);
            drop(opens);
        });
        latch.wait(here);
        job.into_value()
    }

    pub(crate) fn increment_terminate_count(&self) {
        // Relaxed: the caller holds the pool already.
        self.terminate_count.fetch_add(1, Ordering::Relaxed);
    }

    /// One less holds the pool. The last one ends it, and does not wait for that.
    pub(crate) fn terminate(&self) {
        self.release(end);
    }

    /// The same with another way to end the job system.
    fn release(&self, end: fn(Arc<JobSystem>)) {
        // AcqRel, partner: the other calls: what was done with the pool comes before its end.
        if self.terminate_count.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if self.uses_current() {
            // Its first thread goes on belonging to it, and may call anything. So the job system stays,
            // without workers.
            let _ = self.system.resize(0);
            return;
        }
        // SAFETY: nothing holds the pool any more, so its job system is not asked for.
        let system: Arc<JobSystem> = unsafe { std::ptr::read(&*self.system) };
        end(system);
    }
}

/// Ends a job system without waiting for its threads: the last owner is a job, which does not wait for
/// itself.
fn end(system: Arc<JobSystem>) {
    // Held until this thread has come out of the job system.
    let gate = Arc::new(Mutex::new(()));
    let shut = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let (last, gate_of_job) = (Arc::clone(&system), Arc::clone(&gate));
    system.job("end").schedule(move |_| {
        drop(gate_of_job.lock().unwrap_or_else(PoisonError::into_inner));
        drop(last);
    });
    drop(system);
    drop(shut);
}

/// A latch on the stack of a thread that waits for it. It is counted down when this is dropped: a job has run
/// then, or never will.
pub(crate) struct LatchPtr(*const CountLatch);

// SAFETY: a latch may be used by any thread.
unsafe impl Send for LatchPtr {}
// SAFETY: as above.
unsafe impl Sync for LatchPtr {}

impl LatchPtr {
    pub(crate) fn new(latch: &CountLatch) -> LatchPtr {
        LatchPtr(latch)
    }
}

impl Drop for LatchPtr {
    fn drop(&mut self) {
        // SAFETY: the thread that made it waits for this call.
        unsafe { (*self.0).count_down() };
    }
}

/// A hold of the pool, by a job that no thread waits for.
pub(crate) struct Hold(Arc<Registry>);

impl Hold {
    pub(crate) fn of(registry: &Arc<Registry>) -> Hold {
        registry.increment_terminate_count();
        Hold(Arc::clone(registry))
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.terminate();
    }
}

/// Calls `op` on a thread of the current pool, or else of the global one.
#[inline]
pub(crate) fn in_worker<OP, R>(op: OP) -> R
where
    OP: FnOnce(&Here, bool) -> R + Send,
    R: Send,
{
    Here::with(|here| match here.registry() {
        Some(_) if here.context().is_some() => op(here, false),
        Some(registry) => registry.in_own_thread(here, |here| op(here, false)),
        None => global_registry().in_worker(op),
    })
}

#[cfg(test)]
mod tests {
    use crate::ThreadPoolBuilder;

    /// Goal: the threads of a pool end with it, and what was spawned has run by then. Method: a pool is
    /// dropped while a job waits to be told, on another thread and on one of its own.
    #[test]
    fn a_pool_ends_after_its_jobs() {
        let (send, receive) = std::sync::mpsc::channel();
        let (begin, begun) = std::sync::mpsc::channel();
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let registry = std::sync::Arc::clone(pool.registry());
        pool.spawn(move || {
            begun.recv().unwrap();
            crate::spawn(move || send.send(7).unwrap());
        });
        drop(pool);
        begin.send(()).unwrap();
        assert_eq!(receive.recv(), Ok(7));
        registry.wait_until_stopped();
        let inner = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let registry = std::sync::Arc::clone(inner.registry());
        inner.spawn({
            let inner = std::sync::Mutex::new(None::<crate::ThreadPool>);
            move || drop(inner)
        });
        drop(inner);
        registry.wait_until_stopped();
    }
}
