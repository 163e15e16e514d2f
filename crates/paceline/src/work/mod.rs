//! Threads at work: workers and the threads of the program, the tickets they publish, the jobs they run and
//! wait for, and the loops they share.

mod bodies;
pub(crate) mod built;
mod caller;
pub(crate) mod checks;
pub(crate) mod context;
mod ending;
mod entry;
mod fork;
mod future;
pub(crate) mod hints;
pub(crate) mod lanes;
mod lending;
pub(crate) mod order;
#[cfg(feature = "trace")]
mod own_rings;
mod pinned;
pub(crate) mod posted;
mod publish;
pub(crate) mod range;
mod record;
mod repeat;
mod report;
mod run;
mod scope;
pub(crate) mod shared;
mod shutdown;
pub(crate) mod slow;
mod spin;
pub(crate) mod thread_record;
pub(crate) mod thread_slot;
mod thread_slots;
mod tokens;
mod wait;
mod worker;
mod workers;

pub(crate) use bodies::{Given, Once, Typed, TypedAlone};
pub use context::Context;
#[cfg(all(test, paceline_models, feature = "adapt", not(miri)))] // For the models.
pub(crate) use ending::EndOfSystem;
pub(crate) use future::{FutureBody, Polled};
pub(crate) use lanes::ShareSetting;
pub(crate) use order::MakeOrder;
pub(crate) use range::{RangeTable, SharedRange};
pub(crate) use repeat::{OnEnd, Pieces, Repeat, RepeatEnd};
pub(crate) use report::{LongWaits, StuckSetting, Telling};
pub use scope::Scope;
pub(crate) use scope::ScopeJobs;
pub(crate) use shared::Shared;
pub(crate) use tokens::KeepToken;
#[cfg(all(test, paceline_models, not(miri)))]
pub(crate) use wait::StackLimits;
pub(crate) use workers::Spawner;
