//! The simulated machine's own tests. A machine that finds nothing wrong proves nothing, so it comes with
//! planted errors that it must find.

mod checks;
mod order;
mod perturb;
mod policies;
mod quota;
mod sources;
mod threads;
mod waitfor;
mod waits;
