//! Which graphs' jobs the calling thread is in the middle of.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the bodies of a graph know about its run.
pub(crate) struct RunOfGraph {
    number: u64,
    data: AtomicPtr<c_void>,
}

/// A body of a graph on this thread's stack.
struct BodyHere {
    graph: u64,
    outer: *const BodyHere,
}

thread_local! {
    /// The innermost one.
    static HERE: Cell<*const BodyHere> = const { Cell::new(null()) };
}

impl RunOfGraph {
    pub(super) fn new(number: u64) -> RunOfGraph {
        RunOfGraph {
            number,
            data: AtomicPtr::new(null_mut()),
        }
    }

    /// The data of the run that begins now.
    pub(super) fn set_data(&self, data: *mut c_void) {
        // Relaxed: the run publishes it with its jobs.
        self.data.store(data, Ordering::Relaxed);
    }

    /// Calls a part of a body with the data of the run.
    pub(crate) fn enter<R>(&self, body: impl FnOnce(*mut c_void) -> R) -> R {
        let here = BodyHere {
            graph: self.number,
            outer: HERE.try_with(|top| top.get()).unwrap_or(null()),
        };
        let _ = HERE.try_with(|top| top.set(&here));
        let outer = Leave(here.outer);
        // Relaxed: as above.
        let result = body(self.data.load(Ordering::Relaxed));
        drop(outer);
        result
    }
}

/// Ends a body, also one that failed.
struct Leave(*const BodyHere);

impl Drop for Leave {
    fn drop(&mut self) {
        let _ = HERE.try_with(|top| top.set(self.0));
    }
}

/// Whether this thread is in the middle of a job of this graph.
pub(super) fn is_here(graph: u64) -> bool {
    let mut at = HERE.try_with(|top| top.get()).unwrap_or(null());
    while !at.is_null() {
        // SAFETY: each one lies on this thread's stack until `Leave` takes it out of the list.
        let here = unsafe { &*at };
        if here.graph == graph {
            return true;
        }
        at = here.outer;
    }
    false
}
