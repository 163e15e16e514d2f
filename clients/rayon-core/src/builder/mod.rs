//! Settings of a pool: [`ThreadPoolBuilder`].

mod configuration;

use std::any::Any;
use std::{env, fmt, io, thread};

#[allow(deprecated)]
pub use configuration::{Configuration, initialize};

use crate::ThreadPool;
use crate::error::ThreadPoolBuildError;
use crate::registry::{self, CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn};

type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
type ThreadHandler = dyn Fn(usize) + Send + Sync;

/// What of the program's a pool calls.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) panic: Option<Box<PanicHandler>>,
    pub(crate) start: Option<Box<ThreadHandler>>,
    pub(crate) exit: Option<Box<ThreadHandler>>,
}

/// Describes a pool, or the global one.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
/// assert_eq!(pool.install(rayon_core::current_num_threads), 2);
/// ```
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    num_threads: usize,
    pub(crate) use_current_thread: bool,
    pub(crate) stack_size: Option<usize>,
    breadth_first: bool,
    name: Option<Box<dyn FnMut(usize) -> String>>,
    pub(crate) handlers: Handlers,
    pub(crate) spawn_handler: S,
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        ThreadPoolBuilder {
            num_threads: 0,
            use_current_thread: false,
            stack_size: None,
            breadth_first: false,
            name: None,
            handlers: Handlers::default(),
            spawn_handler: DefaultSpawn,
        }
    }
}

impl ThreadPoolBuilder {
    /// Default settings; see the methods.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool whose threads may borrow: each calls `wrapper`, which is to call [`ThreadBuilder::run`].
    /// Calls `with_pool`, and returns when the threads have ended.
    ///
    /// ```
    /// let name = String::from("a local value");
    /// let length = rayon_core::ThreadPoolBuilder::new().num_threads(1).build_scoped(
    ///     |thread| {
    ///         assert!(!name.is_empty());
    ///         thread.run();
    ///     },
    ///     |pool| pool.install(|| name.len()),
    /// );
    /// assert_eq!(length.unwrap(), 13);
    /// ```
    ///
    /// # Errors
    /// If the pool cannot be built.
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        thread::scope(|scope| {
            let wrapper = &wrapper;
            let spawn = |thread: ThreadBuilder| {
                let mut builder = thread::Builder::new();
                if let Some(name) = thread.name() {
                    builder = builder.name(name.to_owned());
                }
                if let Some(bytes) = thread.stack_size() {
                    builder = builder.stack_size(bytes);
                }
                builder.spawn_scoped(scope, || wrapper(thread)).map(drop)
            };
            let pool = self.spawn_handler(spawn).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds a pool with threads of its own, on a job system of its own.
    ///
    /// # Errors
    /// If a thread cannot be made.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        ThreadPool::of(self)
    }

    /// Makes the global pool, before its first use would. Its threads have begun when this returns.
    ///
    /// ```
    /// rayon_core::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
    /// assert_eq!(rayon_core::current_num_threads(), 2);
    /// ```
    ///
    /// # Errors
    /// If the global pool is there already, or if a thread cannot be made.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        registry::init_global_registry(self)?.wait_until_primed();
        Ok(())
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Has `spawn` make the threads. Each is to call [`ThreadBuilder::run`].
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).spawn_handler(|thread| {
    ///     std::thread::spawn(|| thread.run());
    ///     Ok(())
    /// });
    /// assert_eq!(pool.build().unwrap().install(|| 7), 7);
    /// ```
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            spawn_handler: CustomSpawn::new(spawn),
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            stack_size: self.stack_size,
            breadth_first: self.breadth_first,
            name: self.name,
            handlers: self.handlers,
        }
    }

    /// Names the threads by their indices.
    pub fn thread_name<F>(mut self, name: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.name = Some(Box::new(name));
        self
    }

    /// How many threads. Zero, the default, is what `RAYON_NUM_THREADS` says, or else as many as the program
    /// has CPUs. There are [`max_num_threads`](crate::max_num_threads) at most.
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// The calling thread of `build` is thread 0 of the pool. It runs jobs when it waits or yields.
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// What is told of panics in jobs that no thread waits for. Without it, or if it panics, they end the
    /// process.
    pub fn panic_handler<H>(mut self, handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.handlers.panic = Some(Box::new(handler));
        self
    }

    /// The size of the threads' stacks, in bytes.
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Has no effect: [`scope_fifo`](crate::scope_fifo) and [`spawn_fifo`](crate::spawn_fifo) run the oldest
    /// first.
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Is called on each thread when it begins, with its index.
    pub fn start_handler<H>(mut self, handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.handlers.start = Some(Box::new(handler));
        self
    }

    /// Is called on each thread before it ends, with its index.
    pub fn exit_handler<H>(mut self, handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.handlers.exit = Some(Box::new(handler));
        self
    }

    /// The name for the thread with this index.
    pub(crate) fn name_of(&mut self, index: usize) -> Option<String> {
        self.name.as_mut().map(|name| name(index))
    }

    /// How many threads to build.
    pub(crate) fn threads_to_build(&self) -> usize {
        let wanted = match self.num_threads {
            0 => number_of_environment().unwrap_or_else(parallelism),
            threads => threads,
        };
        wanted.min(crate::max_num_threads())
    }
}

fn parallelism() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What the environment asks for. The second name is an older one.
fn number_of_environment() -> Option<usize> {
    let number = |name| env::var(name).ok()?.parse::<usize>().ok();
    match number("RAYON_NUM_THREADS") {
        Some(0) => None,
        Some(threads) => Some(threads),
        None => number("RAYON_RS_NUM_CPUS").filter(|&threads| threads > 0),
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("stack_size", &self.stack_size)
            .field("breadth_first", &self.breadth_first)
            .finish_non_exhaustive()
    }
}
