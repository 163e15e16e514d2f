//! A simulated machine with a simulated kernel, as a platform that real programs run on.
//!
//! It runs real programs, not models of them: code that is written against [`platform::Platform`] runs on
//! simulated CPUs, scheduled by one of the kernel policies of crate `policy`, with costs from a machine's
//! description. Time is virtual, so a machine of 256 CPUs fits on one, and a run is a function of (program,
//! machine, policy, seed): every run can be replayed.
//!
//! Two uses:
//!
//! - *How long does it take there?* [`SimConfig::on`] a machine, under a policy such as `eevdf-6.18`.
//! - *Is it right in every order?* [`SimConfig::new`]: a machine on which nothing costs time, and policies
//!   that choose anew before every step.
//!
//! Limits of the simulation:
//! - Simulated atomics are sequentially consistent; a thread is preempted only at calls of the platform; code
//!   between two calls is atomic and takes no time. So wrong orders are found (lost wake-ups, deadlocks,
//!   races between steps), wrong memory orderings never.
//! - A deadline wakes its thread at that moment, as it does a real-time task on Linux. The longer sleep of
//!   other tasks there (the timer slack, 50 us by default) is not modelled.
//! - The work of a body is the time that it *charges* ([`platform::Platform::charge`]). The data that bodies
//!   move are not modelled.
//! - The threads are coroutines on the OS thread that calls [`Sim::run`]. `std` thread-locals, locks and
//!   floating-point modes are shared by all of them; blocking on anything but the platform blocks the whole
//!   run.
//! - While a thread panics it is not switched out; if it then waits for ever, the process ends with a
//!   message.
//! - A run that ends early (deadlock, step limit) leaks the stacks of the threads that had not ended, with
//!   everything on them. No destructor runs.
//!
//! ```
//! use event::Nanos;
//! use platform::{Atomic, Memory, Ordering, Platform, Thread, ThreadSpec};
//! use std::sync::Arc;
//! use paceline_sim::{Sim, SimConfig};
//!
//! let report = Sim::run(SimConfig::new(7), |sim| {
//!     let word = Arc::new(<Sim as Memory>::AtomicU64::new(0));
//!     let theirs = word.clone();
//!     let body = move || theirs.store(1, Ordering::Release);
//!     let thread = sim.spawn(ThreadSpec::default(), Box::new(body)).unwrap();
//!     Sim::spin_until(&word, |value| value == 1, Nanos::MAX);
//!     thread.join().unwrap();
//! });
//! report.expect_finished();
//! ```

mod config;
mod kernel;
mod lines;
pub mod machine;
mod quantity;
pub mod quiet;
mod report;
mod run;
pub mod scenario;
mod sched_params;
mod sim;
mod speeds;
pub mod sync;
mod trace;

pub use config::{CpuQuota, Perturb, Planned, SimConfig};
pub use machine::Machine;
pub use policy::random::Order;
pub use report::{Blocked, On, Outcome, QuotaUse, SimReport, Spent, ThreadReport, ThreadState};
pub use run::memory::{SimAtomicU32, SimAtomicU64, SimCell, SimLock};
pub use run::parker::SimParker;
pub use run::thread::SimThread;
pub use sim::{FirstThread, Sim};
