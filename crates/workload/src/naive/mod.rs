//! Ways to wait that programs use and should not, as values.
//!
//! Source 000 ends in a thread that waits busily, on the one CPU that is left, for a job that waits for
//! this CPU. Source 002 (J. Cownie, "To sched_yield() or not to sched_yield()?") asks whether a loop
//! that yields is any better, and its readers recommend back-off and the shortest sleep there is.
//! [`NaiveWait`] has all of them, and the right one ([`NaiveWait::Park`]) beside them; two programs
//! show what they cost:
//!
//! - [`PollBeside`]: source 002's benchmark, one thread that waits for the other on the same CPU;
//! - [`BarrierLoop`]: threads with unequal work that wait for each other, round after round: the real
//!   question of the source.
//!
//! Both run on every platform. Invariant: nothing of the job system waits like this; see
//! [`Polling::poll`](platform::Polling::poll).

mod barrier;
mod beside;
mod statistic;

pub use barrier::{BarrierLoop, BarrierReport, Waiter};
pub(crate) use beside::used;
pub use beside::{BesideReport, PollBeside};
pub use statistic::Statistic;

pub use crate::flag::{Flag, NaiveWait};

#[cfg(test)]
mod tests;
