//! Owning handles: [`Job`], for the result of a typed job, and [`Event`], the right to complete an event.
//! Their types do not name the platform, so that they can be stored anywhere.

mod event;
mod future;
mod job;
mod owner;
mod shared;

pub use event::Event;
pub use job::Job;
