//! Worlds to test Paceline in.
//!
//! Each is an ordinary type that implements [`platform::Memory`] and [`platform::Platform`], so one
//! test body runs in all of them, in one binary:
//!
//! - [`Loom`] explores every interleaving and every weak-memory outcome of a small model;
//! - [`Counted`] counts what an operation costs in loads, stores, read-modify-writes and fences;
//! - [`sim::Sim`] runs whole programs on simulated threads, in an order chosen from a seed.
//!
//! What each may be trusted for: orderings are [`Loom`]'s business alone, because the simulated
//! platform is sequentially consistent; schedules of whole programs are [`sim::Sim`]'s, because the
//! model checker cannot hold them.

pub mod counted;
mod forward;
pub mod loom;
pub mod quiet;
pub mod sim;

pub use self::loom::Loom;
pub use counted::{Counted, Counts};
pub use sim::{Order, Outcome, Sim, SimConfig, SimReport};
