//! Waiting for a thread's end, as std does it.

use std::any::Any;
use std::thread::JoinHandle;

pub(super) fn join(thread: JoinHandle<()>) -> Result<(), Box<dyn Any + Send>> {
    thread.join()
}
