//! The words every other crate shares: [`Nanos`], [`Event`] and the [`Sink`] events go to.
//!
//! The runtime, the simulators and (later) the trace readers speak one event model, so that a wait is
//! explained by the same code whether it happened on a real machine, a simulated one, or in a trace of
//! another program.
//!
//! Invariants: no dependencies, no unsafe code, and every event has exactly one encoding in
//! [`Event::to_bytes`], so "two runs were equal" means "their bytes were equal".
#![forbid(unsafe_code)]

/// The README's programs, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod kernel;
mod kind;
mod nanos;
mod random;
mod record;

pub use kernel::{Address, Cpu, FutexCall, KernelEvent, KernelEventKind, Left, Task};
pub use kind::{EventKind, Interfered, Resized, Steered, Why, Withheld};
pub use nanos::Nanos;
pub use random::{Random, mix};
pub use record::{EVENT_BYTES, Event, MemoryLog, MemorySink, Sink};
