//! Waiting for a thread's end, as std does it.

use std::any::Any;
use std::thread::JoinHandle;

/// Whether a thread has begun: it does not matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun(());

impl Begun {
    pub(super) fn note(&self) {}
}

pub(super) fn join(thread: JoinHandle<()>, _begun: &Begun) -> Result<(), Box<dyn Any + Send>> {
    thread.join()
}
