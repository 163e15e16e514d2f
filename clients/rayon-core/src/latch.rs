//! What a thread waits for that has handed work to others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

use paceline::{Context, Event};

use crate::registry::{Here, Patience};
use crate::unwind::halt_unwinding;

/// Is open when it has been counted down to zero.
#[derive(Debug)]
pub(crate) struct CountLatch {
    /// Changed under the lock. It is 0 for good when the latch is open.
    left: AtomicUsize,
    waiters: Mutex<Waiters>,
}

/// What is told when a latch opens.
#[derive(Debug, Default)]
struct Waiters {
    /// Completed: a worker waits for this.
    event: Option<Event>,
    /// Unparked.
    parked: Vec<Thread>,
}

impl CountLatch {
    pub(crate) fn new(count: usize) -> CountLatch {
        CountLatch {
            left: AtomicUsize::new(count),
            waiters: Mutex::default(),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Waiters) -> R) -> R {
        f(&mut self.waiters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// To be counted down once more. It is not open yet.
    pub(crate) fn increment(&self) {
        // Relaxed, here and below: what was done before it opens comes before it is seen open by the lock.
        self.with(|_| self.left.fetch_add(1, Ordering::Relaxed));
    }

    /// Counts down. When it opens, the thread that waits may free it at once.
    pub(crate) fn count_down(&self) {
        let opened = self.with(|waiters| {
            let is_last = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
            is_last.then(|| std::mem::take(waiters))
        });
        // The lock is free by now: a thread that runs at once, in the place of this one, does not find it
        // taken.
        let Some(Waiters { event, parked }) = opened else {
            return;
        };
        if let Some(event) = event {
            event.complete();
        }
        parked.iter().for_each(Thread::unpark);
    }

    /// Whether it is open. The thread that opened it does not touch it any more then.
    fn is_open(&self) -> bool {
        self.with(|_| self.left.load(Ordering::Relaxed) == 0)
    }

    /// Waits until it is open. On a thread of a pool the job system waits, and runs other jobs meanwhile.
    /// Never unwinds: what others were handed may borrow from the caller.
    pub(crate) fn wait(&self, here: &Here) {
        match (here.context(), here.registry()) {
            (Some(context), _) => {
                // The job system refuses where its table is full, or little of the stack is left.
                if halt_unwinding(|| self.wait_in(context)).is_err() {
                    self.block();
                }
            }
            // The program's own thread, between jobs: what it waits for may be for it to run.
            (None, Some(registry)) => registry.in_own_thread(here, |here| self.wait(here)),
            (None, None) => self.wait_outside(here.patience()),
        }
    }

    fn wait_in(&self, context: &Context<'_>) {
        let event = context.event("wait");
        let id = event.id();
        let is_open = self.with(|waiters| {
            if self.left.load(Ordering::Relaxed) > 0 {
                waiters.event = Some(event);
                return false;
            }
            true
        });
        if !is_open {
            context.wait(id);
        }
    }

    /// Waits on a thread that belongs to no pool: looks on for a while, then sleeps.
    fn wait_outside(&self, patience: &Patience) {
        // Relaxed: `is_open` has the edge.
        if !patience.look_on(|| self.left.load(Ordering::Relaxed) == 0) || !self.is_open() {
            patience.sleep(|| self.block());
        }
    }

    /// Waits until it is open, and does nothing else meanwhile.
    pub(crate) fn block(&self) {
        let must_park = self.with(|waiters| {
            let must = self.left.load(Ordering::Relaxed) > 0;
            if must {
                waiters.parked.push(thread::current());
            }
            must
        });
        // A thread may be unparked for other reasons, too.
        while must_park && !self.is_open() {
            thread::park();
        }
    }
}
