//! Panics: caught on the thread where they happen, raised again on the one that waits.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls `f`, and catches what it panics with.
#[inline]
pub(crate) fn halt_unwinding<R>(f: impl FnOnce() -> R) -> thread::Result<R> {
    panic::catch_unwind(AssertUnwindSafe(f))
}

/// Goes on with a panic that was caught.
pub(crate) fn resume_unwinding(payload: Payload) -> ! {
    panic::resume_unwind(payload)
}

/// Ends the process if it is dropped. It is forgotten where all went well.
pub(crate) struct AbortIfPanic;

impl Drop for AbortIfPanic {
    fn drop(&mut self) {
        eprintln!("rayon-core on paceline: a panic that nobody can be told of; aborting");
        std::process::abort();
    }
}
