//! What adapts the job system to its machine.

pub(crate) mod environment;
mod explain;
pub(crate) mod interference;
pub(crate) mod live;
pub(crate) mod place;
pub(crate) mod roles;
pub(crate) mod steer;

pub use explain::explain;
pub use interference::{Decision, Interference};
pub use place::Placement;
pub use roles::{Adopted, Help, Role};
