//! Worlds to test Paceline in.
//!
//! Each is an ordinary type that implements [`platform::Memory`] and [`platform::Platform`], so one
//! test body runs in all of them, in one binary:
//!
//! - [`Loom`] explores every interleaving and every weak-memory outcome of a small model;
//! - [`Counted`] counts the loads, stores, read-modify-writes and fences of an operation.
//!
//! Whole programs run on simulated threads, which are crate `sim`'s. Orderings are [`Loom`]'s business alone,
//! because the simulated machine is sequentially consistent. Schedules of whole programs are the simulator's,
//! because the model checker cannot hold them.

pub mod counted;
mod executor;
mod forward;
pub mod loom;

pub use self::loom::Loom;
pub use counted::{Counted, Counts};
pub use executor::block_on;
