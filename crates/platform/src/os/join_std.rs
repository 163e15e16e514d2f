//! Waiting for the last threads' ends, as std does it.

use std::any::Any;
use std::thread::JoinHandle;

/// Whether a thread has begun: it does not matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning(());

impl Beginning {
    /// Whether the calling thread, which is about to begin, may.
    pub(super) fn begin(&self) -> bool {
        true
    }
}

pub(super) fn join_last(
    thread: JoinHandle<()>,
    _beginning: &Beginning,
) -> Result<(), Box<dyn Any + Send>> {
    thread.join()
}
