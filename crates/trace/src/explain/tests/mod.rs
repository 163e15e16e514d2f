//! Accounts of waits.

mod causes;
mod inversions;
mod jobs;
mod random;
mod real;
mod throttled;
