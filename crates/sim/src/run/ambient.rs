//! The run whose thread is running on this OS thread: the only ambient state.
//!
//! Atomics carry no handle, so they need it. It is set around each resume of a coroutine and
//! nowhere else, and reached through [`with`] alone.
//!
//! Invariant: a run and all its coroutines stay on the OS thread that called `Sim::run`, so
//! whatever a compiler has cached about a thread-local's address stays right across a switch.

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
    // SAFETY: `enter` keeps the pointer here only while it runs a coroutine of that run, so the
    // caller is such a coroutine. The engine outlives each of them: `Sim::run` owns it, and when
    // it returns every coroutine has ended or will never be resumed again.
    Some(f(unsafe { &*engine }))
}

/// Whether the caller is a simulated thread.
pub(crate) fn is_inside() -> bool {
    !ENGINE.get().is_null()
}

/// Calls `resume`, which runs a thread of `engine`.
pub(crate) fn enter<R>(engine: &Engine, resume: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ENGINE.set(ptr::null());
        }
    }
    assert!(!is_inside(), "a run was entered from inside a run");
    ENGINE.set(engine);
    let _leave = Leave;
    resume()
}
