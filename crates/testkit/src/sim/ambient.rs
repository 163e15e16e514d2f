//! The machine whose thread is running on this OS thread: the only ambient state.
//!
//! Atomics carry no handle, so they need it. It is set around each resume of a coroutine and
//! nowhere else, and reached through [`with`] alone.
//!
//! Invariant: a machine and all its coroutines stay on the OS thread that called `Sim::run`, so
//! whatever a compiler has cached about a thread-local's address stays right across a switch.

use std::cell::Cell;
use std::ptr;

use super::machine::Machine;

thread_local! {
    static MACHINE: Cell<*const Machine> = const { Cell::new(ptr::null()) };
}

/// Calls `f` with the machine whose thread is calling; `None` outside a simulated thread.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Machine) -> R) -> Option<R> {
    let machine = MACHINE.get();
    if machine.is_null() {
        return None;
    }
    // SAFETY: `enter` keeps the pointer here only while it runs a coroutine of that machine, so the
    // caller is such a coroutine. The machine outlives each of them: `Sim::run` owns it, and when
    // it returns every coroutine has ended or will never be resumed again.
    Some(f(unsafe { &*machine }))
}

/// Whether the caller is a simulated thread.
pub(super) fn is_inside() -> bool {
    !MACHINE.get().is_null()
}

/// Calls `resume`, which runs a thread of `machine`.
pub(super) fn enter<R>(machine: &Machine, resume: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            MACHINE.set(ptr::null());
        }
    }
    assert!(!is_inside(), "a machine was entered from inside a machine");
    MACHINE.set(machine);
    let _leave = Leave;
    resume()
}
