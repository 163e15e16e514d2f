//! Threads and their stacks, as std knows them.

use std::thread::JoinHandle;

/// Whether this is the calling thread.
pub(super) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == std::thread::current().id()
}

/// The lowest address of the calling thread's stack: std does not know it.
pub(super) fn end() -> Option<usize> {
    None
}
