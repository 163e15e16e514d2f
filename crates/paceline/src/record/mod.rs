//! Recordings: the events of a job system, and the sinks that take them.
//!
//! A recording's [`Event`] is one line of it: what happened, where and when. (The event of
//! [`JobSystem::event`](crate::JobSystem::event) is [`paceline::Event`](crate::Event), a job that the program
//! completes.) [`Builder::sink`](crate::Builder::sink) takes a sink: [`Rings`], which cost a few nanoseconds
//! an event, a [`MemorySink`], or one of the program's own.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use paceline::record::{Event, EventKind, Sink};
//!
//! #[derive(Default)]
//! struct CountJobs(AtomicU64);
//!
//! impl Sink for CountJobs {
//!     fn record(&self, event: &Event) {
//!         if event.kind == EventKind::Begin {
//!             self.0.fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! let jobs = Arc::new(CountJobs::default());
//! let js = paceline::Builder::new().sink(jobs.clone()).build().unwrap();
//! js.wait(js.schedule(|_| ()));
//! drop(js);
//! assert_eq!(jobs.0.load(Ordering::Relaxed), 1);
//! ```

#[cfg(feature = "trace")]
mod own_rings;
mod recorder;
pub(crate) mod rings;

#[doc(inline)]
pub use event::{
    EVENT_BYTES, Event, EventKind, Interfered, MemoryLog, MemorySink, Resized, Sink, Steered, Why,
    Withheld,
};
#[cfg(feature = "trace")]
pub(crate) use own_rings::NoReader;
pub(crate) use recorder::{RecordLocal, Recorder};
pub use rings::{RingReader, Rings};
