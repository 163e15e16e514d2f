//! Accounts of waits.

mod causes;
mod inversions;
mod jobs;
mod order;
mod random;
mod real;
mod throttled;
