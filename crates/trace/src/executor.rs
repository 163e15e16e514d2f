//! The executor, which does parts of the work at the same time.
//!
//! This crate starts no threads. Where there is much to do it makes parts that can be done in any order, and
//! hands them to an executor of the caller's. The result is the same with every executor.

/// A part of the work.
pub type Part<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Does parts of the work, as many at the same time as it can.
///
/// ```
/// use paceline_trace::{Executor, Part, Serial};
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
/// let one = paceline_trace::read::read(text.as_bytes(), "text").unwrap();
/// let other = paceline_trace::read::read_on(text.as_bytes(), "text", &Threads).unwrap();
/// assert_eq!(one, other);
/// ```
pub trait Executor {
    /// The largest number of parts that are done at the same time. With a width of one, the work is divided
    /// less.
    fn width(&self) -> usize;

    /// Does each part once, on any thread and in any order, and returns when all are done. It is best to
    /// begin those in front first. If a part panics, the executor may do the others or leave them out, but
    /// none may be running when it returns.
    fn run(&self, parts: Vec<Part<'_>>);
}

/// Does all parts on the caller's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Executor for Serial {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        for part in parts {
            part();
        }
    }
}
