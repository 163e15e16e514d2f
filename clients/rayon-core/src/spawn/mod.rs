//! Jobs that no thread waits for.

use std::sync::Arc;

use crate::registry::{Here, Registry};

/// Has a thread of the current pool call `func`, now or later. On a thread of the pool the newest of such
/// jobs is the next one.
///
/// A panic goes to the pool's [handler](crate::ThreadPoolBuilder::panic_handler).
///
/// ```
/// let (send, receive) = std::sync::mpsc::channel();
/// rayon_core::spawn(move || send.send(7).unwrap());
/// assert_eq!(receive.recv(), Ok(7));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_in(func, &Registry::current());
}

/// As [`spawn`]; of those that a thread of the pool makes by this the oldest is the next one.
///
/// ```
/// let (send, receive) = std::sync::mpsc::channel();
/// rayon_core::spawn_fifo(move || send.send(7).unwrap());
/// assert_eq!(receive.recv(), Ok(7));
/// ```
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_fifo_in(func, &Registry::current());
}

pub(crate) fn spawn_in<F>(func: F, registry: &Arc<Registry>)
where
    F: FnOnce() + Send + 'static,
{
    registry.schedule(counted(func, registry));
}

pub(crate) fn spawn_fifo_in<F>(func: F, registry: &Arc<Registry>)
where
    F: FnOnce() + Send + 'static,
{
    let job = counted(func, registry);
    let index = Here::with(|here| here.is_of(registry).then(|| here.index()));
    let Some(index) = index else {
        return registry.schedule(job);
    };
    registry.fifo(index).push(Box::new(job));
    let registry_of_job = Arc::clone(registry);
    registry.schedule(move |here| registry_of_job.fifo(index).run_oldest(here));
}

/// The pool does not end before this has run.
fn counted<F>(func: F, registry: &Arc<Registry>) -> impl FnOnce(&Here) + Send + 'static
where
    F: FnOnce() + Send + 'static,
{
    registry.increment_terminate_count();
    let registry = Arc::clone(registry);
    move |_: &Here| {
        registry.catch_unwind(func);
        registry.terminate();
    }
}
