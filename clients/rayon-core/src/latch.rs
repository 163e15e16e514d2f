//! What a thread waits for that has handed work to others.

use std::sync::{Condvar, Mutex, PoisonError};

use paceline::{Context, Event};

use crate::registry::Here;
use crate::unwind::halt_unwinding;

/// Is open when it has been counted down to zero.
#[derive(Debug)]
pub(crate) struct CountLatch {
    state: Mutex<LatchState>,
    opened: Condvar,
}

#[derive(Debug)]
struct LatchState {
    left: usize,
    /// Completed when it opens: a worker waits for this.
    event: Option<Event>,
}

impl CountLatch {
    pub(crate) fn new(count: usize) -> CountLatch {
        CountLatch {
            state: Mutex::new(LatchState {
                left: count,
                event: None,
            }),
            opened: Condvar::new(),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut LatchState) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// To be counted down once more. It is not open yet.
    pub(crate) fn increment(&self) {
        self.with(|state| state.left += 1);
    }

    /// Counts down. When it opens, the thread that waits may free it at once.
    pub(crate) fn count_down(&self) {
        let event = self.with(|state| {
            state.left -= 1;
            if state.left > 0 {
                return None;
            }
            self.opened.notify_all();
            state.event.take()
        });
        if let Some(event) = event {
            event.complete();
        }
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
            (None, None) => self.block(),
        }
    }

    fn wait_in(&self, context: &Context<'_>) {
        let event = context.event("wait");
        let id = event.id();
        let is_open = self.with(|state| {
            if state.left > 0 {
                state.event = Some(event);
                return false;
            }
            true
        });
        if !is_open {
            context.wait(id);
        }
    }

    /// Waits until it is open, and does nothing else meanwhile.
    pub(crate) fn block(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened.wait_while(state, |state| state.left > 0);
        drop(opened.unwrap_or_else(PoisonError::into_inner));
    }
}
