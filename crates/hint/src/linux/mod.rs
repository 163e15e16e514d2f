//! Pages in memory that processes share, and how they get into the right hands: Linux's part.
//!
//! ```text
//! scheduler                       broker, its child                    program
//! memory files, mapped to read
//!   fork ───────────────────────► listens
//! loads its policy; maps nothing  accepts; asks the socket which       connects
//! more, starts no more threads    process this is; clears a page,
//!                                 binds it, sends its file ──────────► maps it, publishes
//! Segment::read: bindings, pages  …the process ends: unbinds
//! ```
//!
//! Each page is a memory file of its own. The program gets no file but its own, so it can neither read nor
//! write what others say. The scheduler has all of them mapped before the first is handed out.

mod broker;
mod client;
mod memory;
mod place;
mod segment;
mod wire;

pub use broker::{Broker, BrokerProcess};
pub use client::connect;
pub use segment::{Segment, Shape, is_thread_of};
