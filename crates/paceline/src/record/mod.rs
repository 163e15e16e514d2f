//! Recording: the recorder, which passes events on to a sink, and rings, a sink that keeps them.

mod recorder;
pub(crate) mod rings;

pub(crate) use recorder::{RecordLocal, Recorder};
pub use rings::{RingReader, Rings};
