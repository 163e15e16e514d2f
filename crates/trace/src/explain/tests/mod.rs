//! Accounts of waits.

mod binder;
mod causes;
mod cpus;
mod fences;
mod inversions;
mod jobs;
mod order;
mod random;
mod real;
mod throttled;
mod turns;
