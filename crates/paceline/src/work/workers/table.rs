//! The workers' entries, under one lock, and the numbers that all threads may read without it.

use std::any::Any;

use event::Nanos;
use platform::{Atomic, CpuSet, Lock, Ordering, Platform, Thread};
#[cfg(feature = "pools")]
use platform::{SpawnError, ThreadSpec};

use crate::work::thread_slot::ThreadKind;

/// Starts a worker's thread in place of the platform.
#[cfg(feature = "pools")]
pub(crate) type Spawner<P> = Box<
    dyn Fn(ThreadSpec, Box<dyn FnOnce() + Send>) -> Result<<P as Platform>::Thread, SpawnError>
        + Send
        + Sync,
>;

/// Nothing does.
#[cfg(not(feature = "pools"))]
pub(crate) use NoSpawner as Spawner;
#[cfg(not(feature = "pools"))]
pub(crate) type NoSpawner<P> = std::marker::PhantomData<fn(P)>;

/// The workers.
pub(crate) struct WorkerThreads<P: Platform> {
    pub(super) table: P::Lock<WorkerTable<P>>,
    /// Workers that have been started and have not left, spares included. Spares that rest have left.
    pub(super) active: P::AtomicU32,
    /// The number of regular workers wanted.
    target: P::AtomicU32,
    pub(super) stopping: P::AtomicU32,
    workers_max: usize,
    pub(super) spares_max: usize,
    /// 1 from when a spare was needed and none could be had, until one can be had again.
    pub(super) is_stuck: P::AtomicU32,
    pub(super) stack_bytes: Option<usize>,
    /// The slice that workers ask the kernel for.
    pub(crate) slice: Option<Nanos>,
    #[cfg_attr(not(feature = "pools"), allow(dead_code))]
    pub(super) spawner: Option<Spawner<P>>,
}

/// A place for a worker: its thread slot, and its thread while it has one.
pub(super) struct WorkerEntry<P: Platform> {
    pub(super) slot: u32,
    pub(super) kind: ThreadKind,
    pub(super) thread: Option<P::Thread>,
    /// The thread is done here and is to be joined. It is false again when the thread has been joined.
    pub(super) left: bool,
    /// The mask that its thread was given for this place.
    pub(super) given: Option<CpuSet>,
}

impl<P: Platform> WorkerEntry<P> {
    pub(super) fn is_vacant(&self) -> bool {
        self.thread.is_none() && !self.left
    }
}

pub(super) struct WorkerTable<P: Platform> {
    pub(super) entries: Vec<WorkerEntry<P>>,
}

impl<P: Platform> WorkerThreads<P> {
    pub(crate) fn new(
        (workers_max, spares_max): (usize, usize),
        stack_bytes: Option<usize>,
        slice: Option<Nanos>,
        spawner: Option<Spawner<P>>,
    ) -> WorkerThreads<P> {
        WorkerThreads {
            table: P::Lock::new(WorkerTable {
                entries: Vec::new(),
            }),
            active: P::AtomicU32::new(0),
            target: P::AtomicU32::new(0),
            stopping: P::AtomicU32::new(0),
            workers_max,
            spares_max,
            is_stuck: P::AtomicU32::new(0),
            stack_bytes,
            slice,
            spawner,
        }
    }

    /// Whether a spare was needed and none could be had, and none has been had since.
    pub(crate) fn is_stuck(&self) -> bool {
        // Relaxed: a wait that rests when this is set is woken, and looks again.
        self.is_stuck.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed) as usize
    }

    /// For models, whose own threads are the workers.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn pretend_active(&self, workers: usize) {
        self.active.store(workers as u32, Ordering::Relaxed);
    }

    /// For models without spares: this has been found out.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn pretend_stuck(&self) {
        self.is_stuck.store(1, Ordering::Relaxed);
    }

    pub(crate) fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed) as usize
    }

    /// Sets the number of regular workers that are wanted; `Shared::apply_target` starts and retires them.
    pub(crate) fn set_target(&self, target: usize) {
        debug_assert!(target <= self.workers_max);
        self.target.store(target as u32, Ordering::Relaxed);
    }

    pub(crate) fn workers_max(&self) -> usize {
        self.workers_max
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire, partner: the Release store in `stop`.
        self.stopping.load(Ordering::Acquire) != 0
    }
}

impl<P: Platform> WorkerTable<P> {
    /// The entry with this thread slot.
    pub(super) fn entry(&mut self, slot: u32) -> &mut WorkerEntry<P> {
        let entry = self.entries.iter_mut().find(|entry| entry.slot == slot);
        entry.expect("entries stay")
    }

    /// Threads that have left, to be joined outside the lock.
    pub(super) fn take_exited(&mut self, kind: ThreadKind) -> Vec<(u32, P::Thread)> {
        let entries = self.entries.iter_mut();
        let left = entries.filter(|entry| entry.left && entry.kind == kind);
        left.filter_map(|entry| Some((entry.slot, entry.thread.take()?)))
            .collect()
    }
}

/// Waits for the end of a worker's thread, after which another one may have its thread slot.
pub(super) fn join<T: Thread>(thread: T) {
    if !thread.is_current() {
        pass_on(thread.join());
    }
}

/// The same for the end of all, unless it is the calling thread. It is the calling thread while its
/// thread-locals are dropped, if one of them was the last owner of the job system.
pub(super) fn join_last<T: Thread>(thread: T) {
    if !thread.is_current() {
        pass_on(thread.join_last());
    }
}

fn pass_on(ended: Result<(), Box<dyn Any + Send>>) {
    // Nothing of the program's unwinds out of a worker. An unwind comes from the platform: a model has
    // failed.
    if let Err(payload) = ended
        && !std::thread::panicking()
    {
        std::panic::resume_unwind(payload);
    }
}
