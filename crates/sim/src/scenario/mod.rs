//! Scenarios: threads that work, sleep, lock and message each other, as data.
//!
//! A scenario says what runs on a machine; the machine and the policy are chosen beside it. It is a TOML
//! file:
//!
//! ```
//! use paceline_sim::scenario::Scenario;
//! use paceline_sim::Machine;
//!
//! let scenario = Scenario::parse("two hogs", r#"
//!     about = "two threads on one CPU"
//!     machine = "vm-2"
//!     policy = "eevdf-6.18"
//!     until = "1 s"
//!
//!     [[thread]]
//!     name = "hog"
//!     count = 2
//!     cpus = [0]
//!     repeat = "forever"
//!     phases = [{ work = "10 ms" }]
//! "#)?;
//! assert_eq!(scenario.threads.len(), 1);
//! assert_eq!(scenario.threads[0].count, 2);
//! # Ok::<(), paceline_sim::scenario::BadScenario>(())
//! ```
//!
//! Lengths of time are text with a unit (`"1.5 ms"`), or two of them (`["1 ms", "2 ms"]`): then the length is
//! drawn anew each time, uniformly, from the seed.
//!
//! Instead of phases a thread may have `segments`, text with a line for each thing that it does once: so are
//! programs written that were made of recordings ([`Segment`] has the lines).
//!
//! Files of rt-app are read as well ([`Scenario::from_rt_app`]).
//!
//! A scenario may also have a `[program]`: real code that runs beside the threads, such as the job system
//! with a scene. This crate does not know the programs; the code that runs the scenario does.

mod changes;
mod check;
mod enders;
mod file;
mod held;
mod library;
mod objects;
mod quota;
mod read;
pub mod rtapp;
mod run;
mod segments;
mod signals;
mod span;
mod waits;

pub use changes::Change;
pub use file::{
    BadScenario, DisciplineName, Forever, Phase, Repeat, Scenario, ThreadPlan, WaitKind,
};
pub use objects::Measured;
pub use quota::QuotaPlan;
pub use run::{Ran, run, run_watched, run_with};
pub use segments::{Exactly, Segment, Segments, WaitUntil};
pub use span::Span;
