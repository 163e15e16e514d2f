//! A closure once on each thread of a pool.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use paceline::{Context, JobId, ScheduleError, ThreadPin};

use crate::latch::CountLatch;
use crate::registry::{Here, Hold, LatchPtr, Registry, StackJob};
use crate::unwind::{AbortIfPanic, halt_unwinding};

/// Calls `op` on each thread of the current pool, when that has no other jobs of its own, and returns what
/// the calls return, by the threads' indices.
///
/// ```
/// let indices = rayon_core::broadcast(|context| context.index());
/// assert!(indices.into_iter().eq(0..rayon_core::current_num_threads()));
/// ```
///
/// # Panics
/// If a call does, when all have ended.
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    broadcast_in(op, &Registry::current())
}

/// As [`broadcast`], without waiting. Panics go to the pool's
/// [handler](crate::ThreadPoolBuilder::panic_handler).
///
/// ```
/// let (send, receive) = std::sync::mpsc::channel();
/// rayon_core::spawn_broadcast(move |context| send.send(context.index()).unwrap());
/// assert_eq!(receive.iter().count(), rayon_core::current_num_threads());
/// ```
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    spawn_broadcast_in(op, &Registry::current());
}

/// What a call of [`broadcast`] is told.
pub struct BroadcastContext<'a> {
    here: &'a Here,
    /// Not Send.
    _here: PhantomData<&'a mut dyn Fn()>,
}

impl<'a> BroadcastContext<'a> {
    pub(crate) fn new(here: &'a Here) -> Self {
        BroadcastContext {
            here,
            _here: PhantomData,
        }
    }

    /// The index of the thread.
    #[inline]
    pub fn index(&self) -> usize {
        self.here.index()
    }

    /// How many threads the pool has.
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.here.registry().map_or(0, Registry::num_threads)
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index())
            .field("num_threads", &self.num_threads())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Has a thread run `part` for each pin. A part is dropped if its thread has left, as workers of a job
    /// system of the program's may, or if its job is refused for another reason. Returns the jobs, and that
    /// reason.
    pub(crate) fn on_each<J>(
        self: &Arc<Self>,
        pins: Vec<ThreadPin>,
        mut part: impl FnMut() -> J,
    ) -> (Vec<JobId>, Result<(), ScheduleError>)
    where
        J: FnOnce(&Here) + Send + 'static,
    {
        let (mut ids, mut refused) = (Vec::with_capacity(pins.len()), Ok(()));
        for pin in pins {
            let (registry, part) = (Arc::clone(self), part());
            let job = move |context: &Context<'_>| {
                Here::with(|here| here.enter(&registry, context, part));
            };
            let made = self.system().job("broadcast").pinned_to(pin);
            match made.try_schedule(job) {
                Ok(id) => ids.push(id),
                Err(ScheduleError::NoSuchThread) => {}
                Err(error) => refused = Err(error),
            }
        }
        (ids, refused)
    }

    /// Waits for the jobs of a broadcast, of which the latch is told, too.
    fn wait_for_each(&self, here: &Here, ids: &[JobId], latch: &CountLatch) {
        self.in_adopted(here, |here| {
            if let Some(context) = here.context() {
                // One of them may be pinned to this thread, which finds it if it waits for it. Another job
                // system's are left to the latch.
                let each = |&id: &JobId| drop(context.try_wait(id));
                let _ = halt_unwinding(|| ids.iter().for_each(each));
            }
            latch.wait(here);
        });
    }
}

pub(crate) fn broadcast_in<OP, R>(op: OP, registry: &Arc<Registry>) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    let op = |here: &Here| (here.index(), op(BroadcastContext::new(here)));
    let pins = registry.pins();
    let latch = CountLatch::new(pins.len());
    let jobs: Vec<_> = pins.iter().map(|_| StackJob::new(&op)).collect();
    let mut left = jobs.iter();
    let guard = AbortIfPanic;
    let (ids, refused) = registry.on_each(pins, || {
        let job = left.next().expect("there is one for each thread");
        // SAFETY: this function leaves when all have run, or were dropped.
        let to_run = unsafe { job.to_run() };
        let opens = LatchPtr::new(&latch);
        move |here: &Here| {
            to_run.run(here);
            drop(opens);
        }
    });
    Here::with(|here| registry.wait_for_each(here, &ids, &latch));
    std::mem::forget(guard);
    or_panic(refused);
    let results = jobs.into_iter().filter_map(StackJob::into_value_if_run);
    let mut results: Vec<(usize, R)> = results.collect();
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

pub(crate) fn spawn_broadcast_in<OP>(op: OP, registry: &Arc<Registry>)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    let op = Arc::new(op);
    let pins = registry.pins();
    // All before the first may end.
    let mut holds: Vec<Hold> = pins.iter().map(|_| Hold::of(registry)).collect();
    let (_, refused) = registry.on_each(pins, || {
        let (op, hold) = (Arc::clone(&op), holds.pop());
        move |here: &Here| {
            let (op, hold) = (op, hold);
            if let Some(hold) = &hold {
                let body = || op(BroadcastContext::new(here));
                hold.registry().catch_unwind(body);
            }
            // The last one drops it before the pool ends: a program may wait for that.
            drop(op);
            drop(hold);
        }
    });
    or_panic(refused);
}

/// A job was refused, and its part of the broadcast with it.
pub(crate) fn or_panic(refused: Result<(), ScheduleError>) {
    if let Err(error) = refused {
        panic!("a broadcast: {error}");
    }
}
