//! Owning handles: [`Job`], for the result of a typed job, [`Event`], the right to complete an event, and
//! [`Latch`], an event that counts.
//! Their types do not name the platform, so that they can be stored anywhere.

mod event;
mod future;
mod job;
mod latch;
mod owner;
mod shared;

pub use event::Event;
pub use future::{Outcome, WhenDone};
pub use job::Job;
pub use latch::Latch;
pub(super) use owner::{Owner, given_before};
