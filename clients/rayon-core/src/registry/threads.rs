//! How a pool's threads come to be.

use std::sync::Arc;
use std::{fmt, io, thread};

use paceline::platform::HostedThread;

use super::{Here, Registry};
use crate::unwind::AbortIfPanic;

/// One thread of a pool that is being built, for [`ThreadPoolBuilder::spawn_handler`]: some thread is to call
/// [`run`](ThreadBuilder::run).
///
/// [`ThreadPoolBuilder::spawn_handler`]: crate::ThreadPoolBuilder::spawn_handler
pub struct ThreadBuilder {
    pub(super) name: Option<String>,
    pub(super) stack_size: Option<usize>,
    pub(super) index: usize,
    pub(super) registry: Arc<Registry>,
    pub(super) worker: HostedThread,
}

impl ThreadBuilder {
    /// The index of the thread in its pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The name that [`ThreadPoolBuilder::thread_name`](crate::ThreadPoolBuilder::thread_name) gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The size of its stack, if [`ThreadPoolBuilder::stack_size`](crate::ThreadPoolBuilder::stack_size) was
    /// called.
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Works for the pool on the calling thread, until the pool has ended.
    pub fn run(self) {
        let (registry, index) = (self.registry, self.index);
        // A panic here would leave a pool with a thread that is not there.
        let guard = AbortIfPanic;
        Here::with(|here| {
            // SAFETY: this function keeps the pool alive, and takes it away below.
            unsafe { here.belong(Some(&registry), index) };
            registry.begin_thread(index);
            self.worker.run();
            registry.end_thread(index);
            // SAFETY: none.
            unsafe { here.belong(None, 0) };
        });
        std::mem::forget(guard);
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("pool", &self.registry.id())
            .field("index", &self.index)
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish()
    }
}

/// How the threads of a pool are made. Programs cannot implement it.
pub trait ThreadSpawn {
    /// No other crate can name what this returns.
    #[doc(hidden)]
    fn __rayon_private__(&self) -> crate::private::PrivateMarker;

    /// Makes a thread that calls [`ThreadBuilder::run`].
    ///
    /// # Errors
    /// If there is no thread to be had.
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// The size of a stack if none is asked for. A scope inside of a scope's job takes three to seven times as
/// much of it as rayon's, so a stack has eight times as much, and programs nest as deep. That is address
/// space: what is never used is no memory. Addresses of 32 bits are few.
fn usual_stack() -> Option<usize> {
    const LARGE: usize = 16 << 20;
    let is_told = std::env::var_os("RUST_MIN_STACK").is_some();
    (cfg!(target_pointer_width = "64") && !is_told).then_some(LARGE)
}

/// Threads of std.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl ThreadSpawn for DefaultSpawn {
    fn __rayon_private__(&self) -> crate::private::PrivateMarker {
        crate::private::PrivateMarker
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        let mut builder = thread::Builder::new();
        if let Some(name) = thread.name() {
            builder = builder.name(name.to_owned());
        }
        let bytes = thread.stack_size().or_else(usual_stack);
        if let Some(bytes) = bytes {
            builder = builder.stack_size(bytes);
        }
        let body = move || {
            Here::with(|here| here.stack_begins(bytes));
            thread.run();
        };
        builder.spawn(body).map(drop)
    }
}

/// Threads that the program makes.
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

impl<F> CustomSpawn<F> {
    pub(crate) fn new(spawn: F) -> Self {
        CustomSpawn(spawn)
    }
}

impl<F> ThreadSpawn for CustomSpawn<F>
where
    F: FnMut(ThreadBuilder) -> io::Result<()>,
{
    fn __rayon_private__(&self) -> crate::private::PrivateMarker {
        crate::private::PrivateMarker
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}
