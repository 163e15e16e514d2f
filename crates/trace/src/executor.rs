//! Whoever does parts of the work at the same time.
//!
//! This crate starts no threads. Where there is much to do it makes parts that can be done in any order, and
//! hands them to an executor of the caller's. What comes out is the same whoever does them.

/// A part of the work.
pub type Part<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Does parts, as many at the same time as it can.
///
/// ```
/// use trace::{Executor, Part, Serial};
///
/// /// A thread for each part.
/// struct Threads;
///
/// impl Executor for Threads {
///     fn width(&self) -> usize {
///         2
///     }
///
///     fn run(&self, parts: Vec<Part<'_>>) {
///         std::thread::scope(|scope| parts.into_iter().for_each(|part| drop(scope.spawn(part))));
///     }
/// }
///
/// let text = "a-7 [0] ... 1.000000: tracing_mark_write: B|7|frame\n";
/// let one = trace::read::read(text.as_bytes(), "text").unwrap();
/// let other = trace::read::read_on(text.as_bytes(), "text", &Threads).unwrap();
/// assert_eq!(one, other);
/// ```
pub trait Executor {
    /// How many parts are done at the same time, at most. With one, less is divided.
    fn width(&self) -> usize;

    /// Does each part once, on any thread and in any order, and returns when all are done. Those in front are
    /// best begun first. A part that panics may be one of several; what becomes of the others is up to the
    /// executor, as long as none is running any more.
    fn run(&self, parts: Vec<Part<'_>>);
}

/// Nobody but the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Executor for Serial {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        parts.into_iter().for_each(|part| part());
    }
}
