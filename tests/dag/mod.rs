//! Goal: whatever a program does with jobs and dependencies, each job runs exactly once, after all it waits
//! for; no worker sleeps through work; nothing is left behind.
//!
//! Method: random programs (`plan`), made from a seed, run on simulated threads (`simulated`) in
//! thousands of orders and on the operating system (`real`), with few slots of every kind so that
//! limits are reached. Runs on simulated threads are made twice and must be equal to the byte.
//!
//! Oracle: `oracle` for the program's own view, `support::log` for the recording. A thread that was not told
//! is a deadlock of the simulated machine; a worker that was not told is one where the work is left to the
//! workers (`left`), since waiters find by themselves what they need. Runtimes broken on purpose (`planted`)
//! must be found out. Reports of what a running program does must be true (`reported`).

pub(crate) mod broken;
mod left;
mod oracle;
mod plan;
mod planted;
mod real;
mod reported;
mod run;
mod simulated;
mod slow;
mod theme;
mod world;
