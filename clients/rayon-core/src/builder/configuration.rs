//! The deprecated name of the settings.

#![allow(deprecated)]

use std::any::Any;
use std::error::Error;
use std::fmt;

use super::ThreadPoolBuilder;
use crate::ThreadPool;

/// Describes a pool, by methods with the names of [`ThreadPoolBuilder`]'s.
#[deprecated(note = "Use `ThreadPoolBuilder`")]
#[derive(Default)]
pub struct Configuration {
    builder: ThreadPoolBuilder,
}

/// Makes the global pool; see [`ThreadPoolBuilder::build_global`].
///
/// # Errors
/// As there.
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.into_builder().build_global().map_err(Box::from)
}

impl Configuration {
    /// Default settings.
    pub fn new() -> Configuration {
        Configuration::default()
    }

    /// See [`ThreadPoolBuilder::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.builder.build().map_err(Box::from)
    }

    /// See [`ThreadPoolBuilder::thread_name`].
    pub fn thread_name<F>(self, name: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.but(|builder| builder.thread_name(name))
    }

    /// See [`ThreadPoolBuilder::num_threads`].
    pub fn num_threads(self, num_threads: usize) -> Self {
        self.but(|builder| builder.num_threads(num_threads))
    }

    /// See [`ThreadPoolBuilder::panic_handler`].
    pub fn panic_handler<H>(self, handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.but(|builder| builder.panic_handler(handler))
    }

    /// See [`ThreadPoolBuilder::stack_size`].
    pub fn stack_size(self, stack_size: usize) -> Self {
        self.but(|builder| builder.stack_size(stack_size))
    }

    /// See [`ThreadPoolBuilder::breadth_first`].
    pub fn breadth_first(self) -> Self {
        self.but(ThreadPoolBuilder::breadth_first)
    }

    /// See [`ThreadPoolBuilder::start_handler`].
    pub fn start_handler<H>(self, handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.but(|builder| builder.start_handler(handler))
    }

    /// See [`ThreadPoolBuilder::exit_handler`].
    pub fn exit_handler<H>(self, handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.but(|builder| builder.exit_handler(handler))
    }

    pub(crate) fn into_builder(self) -> ThreadPoolBuilder {
        self.builder
    }

    fn but(self, change: impl FnOnce(ThreadPoolBuilder) -> ThreadPoolBuilder) -> Self {
        Configuration {
            builder: change(self.builder),
        }
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}
