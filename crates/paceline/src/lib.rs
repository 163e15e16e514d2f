//! A job system for programs with deadlines: games, audio, simulation, user interfaces.
//!
//! ```
//! use paceline::JobSystem;
//!
//! let js = JobSystem::new(); // one worker less than the machine has threads: the waiter helps
//!
//! // Jobs and dependencies. A `JobId` is `Copy`, and may be dropped at any time.
//! let physics = js.job("physics").schedule(|_| println!("stepping"));
//! let animation = js.job("animation").schedule(|_| println!("posing"));
//! let cull = js.job("cull").after_all(&[physics, animation]).schedule(|_| println!("culling"));
//! js.wait(cull); // runs what `cull` needs on this thread too, and nothing else
//!
//! // Loops over data and recursion, which borrow.
//! let mut heights = vec![1.0_f32; 10_000];
//! js.over(&mut heights).for_each(|height| *height += 0.5);
//! let highest = js.over(&heights).reduce(|height| *height, f32::max);
//! let (a, b) = js.join(|_| heights.len(), |_| highest);
//! assert_eq!((a, b), (10_000, Some(1.5)));
//!
//! // Results, which go on to further jobs; and values from outside.
//! let answer = js.job("answer").run(|_| 42);
//! let (read, bytes) = js.event_with::<Vec<u8>>("read");
//! let sum = js.job("sum").with((answer, bytes)).run(|_, (answer, bytes)| answer + bytes.len());
//! read.complete_with(vec![0; 8]); // On any thread.
//! assert_eq!(sum.wait(), 50);
//! ```
//!
//! # Where it runs
//!
//! | system | workers | what the job system knows there |
//! |---|---|---|
//! | Linux, Android, of 64 bits and of 32 | threads | classes of CPUs, masks, quotas, other programs' load |
//! | Windows | threads | classes of CPUs, masks, jobs' rates, threads' CPU time; no other programs' load |
//! | macOS | threads | classes of CPUs, how many are active, threads' CPU time; there are no masks |
//! | `wasm32-wasip1-threads` | threads | nothing: one worker, or as many as are asked for |
//! | `wasm32-wasip1` | none | nothing |
//! | `wasm32-unknown-unknown` | none | nothing, nor the time: a counter, or a clock that it is given |
//!
//! Without workers the same program runs: jobs run in the calls that wait for them. That is also so where a
//! limit leaves no thread, and [`JobSystem::explain`] says it. A module for `wasm32-unknown-unknown` imports
//! nothing; a program that has a clock passes it to [`Os::set_clock`](platform::Os::set_clock). A wait that
//! only another thread could end panics where there can be none. In WebAssembly a panic ends the module, as
//! in every Rust program there.
//!
//! # Features
//!
//! `adapt`, on by default, is the adaptation to the machine. Without it (`default-features = false`) there
//! are as many workers as std counts CPUs, less the [reserve](Builder::reserve), or as many as were asked
//! for, and they run where the kernel puts them. Nothing is missing from the interface:
//!
//! | item | without `adapt` |
//! |---|---|
//! | [`Builder::cpus`], `PACELINE_CPUS`, `PACELINE_PLACEMENT` | [`BuildError`] |
//! | [`Builder::os_help`], [`JobSystem::os_help`] | each request is answered as not granted |
//! | [`JobSystem::adopt`] | the guard changes nothing |
//! | [`JobSystem::explain`], [`explain()`] | the number of workers, and that adaptation is not compiled in |
//! | [`JobSystem::interference`] | nothing is noticed |
//! | [`Builder::follow_machine`], [`Builder::steering`] | no effect |
//! | [`Builder::placement`], [`Builder::slice`] | no effect |
//! | [`JobSystem::limits`], [`Topology`] | equal CPUs, as many as std counts |
//!
//! `trace`, on by default, is `JobSystem::start_trace` and `PACELINE_TRACE`. `report`, on by default, makes a
//! job system say by itself what holds it up: `Builder::stuck_after`, `Builder::report_on`,
//! `Builder::on_report` and `PACELINE_STUCK`. [`JobSystem::report`] needs no feature.
//!
//! `hints`, on by default, is `Builder::hints`: a scheduler in user space is told which thread waits for
//! which.
//!
//! `checks`, on by default, is `Builder::checks`: whether jobs that declare what they touch
//! ([`NewJob::reads`], [`NewJob::writes`]) are in order is checked when they are scheduled, if the builder
//! asks for it.
//!
//! # How it works
//!
//! A job lives in a slot and is named by slot and generation. Queues hold *tickets*, copies of that name. A
//! claim on the slot decides which thread runs a job, so tickets may be stale or doubled. Every thread has a
//! thread slot with a deque of its own. Dependencies are counted in the slot of the job that waits. Workers
//! look for work and go idle; threads that wait run the jobs that they wait for. Loops share one word per
//! thread. Joins are private until a thread searches for work. Scopes are jobs that count others. A run of a
//! graph that was built once is a scope, which makes each job at the moment it is ready. A future is
//! a job that waits for its waker in between. Every file of the source begins with its subject. A map of all
//! of it, `ARCHITECTURE.md`, is in the workspace that the crate is developed in; the package has the crate
//! alone.

// What is behind the door of `adapt` asks much of the core with the feature and little without. So do the
// reports that make themselves.
#![cfg_attr(not(all(feature = "adapt", feature = "report")), allow(dead_code))]

/// The README's programs, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod access;
mod adapt;
mod api;
mod border;
mod error;
mod graph;
mod hooks;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the job system's platform does not make the threads of programs"
)]
mod interpreted;
mod limits;
#[cfg(all(test, paceline_models, feature = "adapt", not(miri)))] // See Cargo.toml.
mod models;
mod plan;
pub mod platform;
mod policy;
mod queues;
pub mod record;
mod report;
mod stats;
mod store;
mod work;

#[doc(inline)]
pub use ::platform::Lane;

#[doc(no_inline)]
pub use crate::platform::{
    CpuSet, Limits, Os, Platform, SchedParams, Signal, SpawnError, Topology,
};
pub use access::{
    AccessError, AccessFault, AccessKind, Conflict, Conflicting, MissingItems, Outside, Toucher,
};
pub use adapt::{Decision, Help, Interference, Placement, Role, explain};
pub use api::{
    Adopted, Builder, BuiltGraph, Condition, CriticalPath, DeclaredJob, Event, Frame, GraphBuilder,
    GraphJob, GraphNode, Group, IdempotentJob, Inputs, Items, Job, JobSystem, Latch, Loop,
    LoopData, NewJob, NewJobWith, NodeRef, NodeTiming, NotStarted, Outcome, Part, PerWorker,
    PinnedThread, ReadAccess, Reading, Res, ResEach, ResItem, ResPart, Resources, Shared, Span,
    StartedGraph, Tile, TileMut, Tiles, TilesMut, WhenDone, WriteAccess, Writing,
};
#[doc(hidden)]
pub use api::{Fields, KeyMaker, NameNumber};
#[cfg(feature = "trace")]
pub use api::{Trace, TraceError, Traced};
pub use error::{BuildError, GraphError, ScheduleError, Stuck, UnwaitedPanic, WaitError};
pub use event::Nanos;
pub use hooks::JobMoment;
pub use limits::{JOBS_MAX, NAMES_MAX, SPARES_MAX, THREADS_MAX, WORKERS_MAX};
pub use plan::PlanError;
#[cfg(feature = "pools")]
pub use policy::WaitRule;
pub use policy::{Grain, WaitPolicy, WaitPolicyError};
#[doc(no_inline)]
pub use record::{RingReader, Rings, Sink};
pub use report::{
    Activity, JobKind, JobState, LiveJob, LiveThread, LiveThreadKind, LiveWait, NamedJob, Report,
};
pub use stats::Stats;
pub use store::{CancelToken, JobId, Label, Name, ThreadPin};
pub use work::{Context, Scope};
