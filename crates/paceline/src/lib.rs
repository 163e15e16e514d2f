//! A job system for programs with deadlines: games, audio, simulation, user interfaces.
//!
//! ```
//! use paceline::{Grain, JobSystem};
//!
//! let js = JobSystem::new(); // one worker less than the machine has threads: the waiter helps
//!
//! // Jobs and dependencies. A `JobId` is a copyable name that you owe nothing.
//! let physics = js.job("physics").schedule(|_| println!("stepping"));
//! let animation = js.job("animation").schedule(|_| println!("posing"));
//! let cull = js.job("cull").after_all(&[physics, animation]).schedule(|_| println!("culling"));
//! js.wait(cull); // runs what `cull` needs on this thread too, and nothing else
//!
//! // Loops and recursion that borrow.
//! let heights = vec![1.0_f32; 10_000];
//! js.parallel_for(0..heights.len(), Grain::Auto, |part, _| {
//!     let _highest = heights[part].iter().copied().fold(0.0, f32::max);
//! });
//! let (a, b) = js.join(|_| heights.len(), |_| heights[0]);
//! assert_eq!((a, b), (10_000, 1.0));
//!
//! // Results.
//! let answer = js.job("answer").run(|_| 42);
//! assert_eq!(answer.wait(), 42);
//! ```
//!
//! # How it works
//!
//! A job lives in a slot and is named by slot and generation. Queues hold *tickets*, copies of that
//! name; who runs a job is decided by a claim on the slot, so tickets may be stale or doubled. Every
//! thread has a seat with a deque of its own. Dependencies are counted in the slot of the job that
//! waits. Workers look for work and go idle; threads that wait run what they wait for. Loops share
//! one word per thread, joins are private until somebody is hungry, scopes are jobs that count
//! others. ARCHITECTURE.md is the map; every file begins with what it is about.

mod adapt;
mod border;
mod builder;
mod context;
mod crew;
mod cycle;
mod deque;
mod edges;
mod entry;
mod error;
mod failure;
mod fork;
mod frame;
mod graph;
mod handle;
mod idle;
mod injector;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "threads of programs are no business of the job system's platform"
)]
mod interpreted;
mod job;
mod limits;
mod listen;
mod machine;
#[cfg(all(test, not(any(miri, paceline_tsan))))] // See Cargo.toml.
mod models;
mod policy;
mod range;
mod record;
mod rings;
mod schedule;
mod scope;
mod seat;
mod shared;
mod shutdown;
mod sitting;
mod slab;
mod slow;
mod stats;
mod system;
mod wait;
mod worker;

pub use adapt::{Decision, Help, Interference, Placement, Role, explain};
pub use builder::Builder;
pub use context::Context;
pub use error::{BuildError, GraphError, ScheduleError, Stuck, UnwaitedPanic, WaitError};
pub use frame::Frame;
pub use handle::{Event, Job};
pub use job::{JobId, Label};
pub use limits::{JOBS_MAX, SPARES_MAX, THREADS_MAX, WORKERS_MAX};
pub use machine::Adopted;
pub use policy::{Grain, WaitPolicy, WaitPolicyError};
pub use rings::{RingReader, Rings};
pub use schedule::NewJob;
pub use scope::Scope;
pub use stats::Stats;
pub use system::JobSystem;
