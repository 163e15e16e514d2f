//! The run whose thread is running on this OS thread: the only ambient state.
//!
//! Atomics carry no handle, so they need it. It is set around a run and its preparation and nowhere else, and
//! reached only through [`with`].
//!
//! Invariant: within a run only its programs ask for it. The loop that resumes them, the kernel and its
//! policy touch no simulated memory.
//!
//! Invariant: a run and all its coroutines stay on the OS thread that called `Sim::run`, so whatever a
//! compiler has cached about a thread-local's address stays right across a switch.

use std::cell::Cell;
use std::ptr;

use super::engine::Engine;

thread_local! {
    static ENGINE: Cell<*const Engine> = const { Cell::new(ptr::null()) };
}

/// Calls `f` with the engine whose thread is calling; `None` outside a simulated thread.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Engine) -> R) -> Option<R> {
    let engine = ENGINE.get();
    if engine.is_null() {
        return None;
    }
    // SAFETY: `enter` borrows the engine for as long as it keeps the pointer here. A coroutine that
    // calls this is resumed inside of `enter`, and when that returns every coroutine has ended or will
    // never be resumed again.
    Some(f(unsafe { &*engine }))
}

/// Whether the caller is a simulated thread.
pub(crate) fn is_inside() -> bool {
    !ENGINE.get().is_null()
}

/// Calls `run`, which runs threads of `engine`, or prepares to.
pub(crate) fn enter<R>(engine: &Engine, run: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ENGINE.set(ptr::null());
        }
    }
    assert!(!is_inside(), "a run was entered from inside a run");
    ENGINE.set(engine);
    let _leave = Leave;
    run()
}
