//! What every measurement on the machine at hand needs, whoever makes it.
//!
//! - [`Machine`]: which machine it was, as far as a reader of the numbers has to know;
//! - [`dump`]: the files that say so, of this machine or another;
//! - [`Watch`]: whether it was quiet meanwhile;
//! - [`process_cpu`], [`thread_cpu`], [`OtherThreads`]: what threads have used of it;
//! - [`Times`], [`Spread`], [`rank`]: many measurements in a few numbers;
//! - [`markdown`]: the documents that are written from them.
//!
//! Invariant: what is described here is published, so there is no name of a host or a person in it and
//! no path.

mod cpu_time;
pub mod dump;
mod machine;
pub mod markdown;
mod noise;
mod summary;
mod threads;

pub use cpu_time::{children_cpu, process_cpu, thread_cpu};
pub use machine::Machine;
pub use noise::{Noise, Watch};
pub use summary::{Spread, Times, median_interval, rank};
pub use threads::{OtherThreads, Used};
