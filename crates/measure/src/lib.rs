//! Shared parts of all measurements on the machine at hand.
//!
//! - [`Machine`]: which machine it was, as far as a reader of the numbers has to know;
//! - [`dump`]: the files that describe it, of this machine or another;
//! - [`Watch`]: whether it was quiet meanwhile;
//! - [`process_cpu`], [`thread_cpu`], [`OtherThreads`]: the use of it by threads;
//! - [`Hogs`]: threads that only burn CPU time, as a busy machine has;
//! - [`Times`], [`Spread`], [`rank`]: many measurements in a few numbers;
//! - [`markdown`]: the documents that are written from them.
//!
//! Invariant: these descriptions are published, so there is no name of a host or a person in them and no
//! path.

mod cpu_time;
pub mod dump;
mod hogs;
mod machine;
pub mod markdown;
mod noise;
mod summary;
mod threads;

pub use cpu_time::{children_cpu, process_cpu, thread_cpu};
pub use hogs::Hogs;
pub use machine::Machine;
pub use noise::{Noise, Watch};
pub use summary::{Spread, Times, median_interval, rank};
pub use threads::{OtherThreads, Used};
