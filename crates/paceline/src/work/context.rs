//! A thread's view of the job system while it is inside: [`Context`].
//!
//! A context is the thread's slot and the data that all threads share. This file gives access to the thread
//! slot's own data, to the graph, and to the jobs that run here. The work that a thread does with them is in
//! the files beside this one, one for each subject: publishing tickets (`publish`), running a job (`run`),
//! looking for work (`worker`), waiting (`wait`), and so on.

use std::marker::PhantomData;

use event::Nanos;
use platform::{Os, Platform, SharedCell};

use super::shared::Shared;
use super::thread_slot::{Own, ThreadKind, ThreadSlot};
use crate::graph::OnGraph;
use crate::store::Ticket;

/// A thread's access to the job system it is working for. Job bodies are given one. An outside thread gets
/// one from [`JobSystem::enter`](crate::JobSystem::enter).
///
/// A context stays on its thread: it is neither `Send` nor `Sync`. That makes its operations cheap, because
/// no thread-local is read. Calls that make jobs allocate nothing as long as there is room in the tables,
/// which grow in steps, and the closure has at most 64 bytes; a larger one is boxed.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let sum = js.enter(|cx| {
///     let (a, b) = cx.join(|_| 1 + 1, |_| 2 + 2);
///     a + b
/// });
/// assert_eq!(sum, 6);
/// ```
pub struct Context<'a, P: Platform = Os> {
    pub(crate) shared: &'a Shared<P>,
    pub(crate) thread: &'a ThreadSlot<P>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl<'a, P: Platform> Context<'a, P> {
    /// # Safety
    /// `thread` is the calling thread's slot, and belongs to `shared`.
    pub(crate) unsafe fn new(shared: &'a Shared<P>, thread: &'a ThreadSlot<P>) -> Context<'a, P> {
        Context {
            shared,
            thread,
            _stays_on_its_thread: PhantomData,
        }
    }

    /// Gives `f` the part of the thread slot that only this thread touches. `f` is a few loads and stores: it
    /// calls nothing that could come back here.
    #[inline(always)]
    pub(crate) fn own<R>(&self, f: impl FnOnce(&mut Own) -> R) -> R {
        // SAFETY: a context exists only on the thread that has the slot (see `new`) and never leaves
        // it; and `f` does not re-enter, so this is the only reference.
        unsafe { self.thread.own.with_mut(|own| f(&mut *own)) }
    }

    /// The number of this thread's slot: an index for data that each thread has for itself.
    ///
    /// It is less than [`thread_slots`](Context::thread_slots), and two threads never have the same number at
    /// the same time. A worker keeps its number for life. Threads of the program have numbers, too. It is a
    /// load: it does not block, allocate or wake.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let found: Vec<AtomicUsize> = (0..js.thread_slots()).map(|_| AtomicUsize::new(0)).collect();
    /// js.parallel_for(0..1000, paceline::Grain::Auto, |part, cx| {
    ///     found[cx.worker()].fetch_add(part.len(), Ordering::Relaxed);
    /// });
    /// assert_eq!(found.iter().map(|n| n.load(Ordering::Relaxed)).sum::<usize>(), 1000);
    /// ```
    pub fn worker(&self) -> usize {
        self.thread.index as usize
    }

    /// One more than the largest number that [`worker`](Context::worker) can ever return in this job system.
    /// It does not change, and costs a load.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.schedule(|cx| assert!(cx.worker() < cx.thread_slots())));
    /// ```
    pub fn thread_slots(&self) -> usize {
        self.shared.threads.limit()
    }

    /// Says that the body has just done `work` worth of computing. On a real machine nothing happens, because
    /// computing takes its time by itself. On a simulated machine virtual time passes.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// js.enter(|cx| cx.work(Duration::from_millis(5))); // Returns at once: this machine is real.
    /// ```
    pub fn work(&self, work: impl Into<Nanos>) {
        self.shared.platform.charge(work.into());
    }

    /// The platform that this job system runs on: the operating system, or a simulated machine. It costs
    /// nothing. It has no example, because programs on the operating system have no use for it.
    pub fn platform(&self) -> &P {
        &self.shared.platform
    }

    /// The graph, with this thread as the one that works on it.
    #[inline(always)]
    pub(crate) fn graph(&self) -> OnGraph<'_, P, Self> {
        OnGraph::new(self)
    }

    /// The job that this thread is running. None on an outside thread between jobs.
    pub(crate) fn current_job(&self) -> Ticket {
        let frame = self.own(|own| own.frame);
        if frame.is_null() {
            return Ticket::NONE;
        }
        // SAFETY: a frame that is not null was made by `in_frame` (see `run`) further down this stack.
        unsafe { (*frame).job }
    }

    /// Calls `visit` with the jobs that this thread is in the middle of, innermost first, until `visit`
    /// returns true.
    pub(crate) fn any_running(&self, mut visit: impl FnMut(Ticket) -> bool) -> bool {
        let mut frame = self.own(|own| own.frame);
        while !frame.is_null() {
            // SAFETY: as in `current_job`; `outer` points further down the same stack.
            let (job, outer) = unsafe { ((*frame).job, (*frame).outer) };
            if visit(job) {
                return true;
            }
            frame = outer;
        }
        false
    }

    /// Whether this is a worker that takes its next ticket when the job that runs here is over: no wait lies
    /// underneath.
    pub(crate) fn goes_on_with_next(&self) -> bool {
        let frame = self.own(|own| own.frame);
        // SAFETY: as in `current_job`.
        let is_outermost = !frame.is_null() && unsafe { (*frame).outer.is_null() };
        is_outermost && self.thread.kind != ThreadKind::Guest
    }

    /// Whether the thread is inside code of the program's that the job system has called.
    pub(crate) fn is_called_back(&self) -> bool {
        self.own(|own| !own.frame.is_null())
    }
}
