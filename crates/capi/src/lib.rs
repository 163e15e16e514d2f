//! The job system for C: `include/paceline.h` and the library behind it.
//!
//! Each function here is one that C calls. It checks what it is given, calls the job system, and returns a
//! [`pl_status`]; [`pl_last_error`] has the sentence. No panic crosses the border in either direction: what
//! would panic in Rust is a status, and a body that fails says so with [`pl_fail`].
//!
//! - `status`: statuses, and the last error of each thread.
//! - `sites`: where a program makes its jobs, for texts.
//! - `described`: descriptions that may grow with later versions, texts, arrays: what C passes by pointer.
//! - `system`: a job system behind a pointer that can be checked after its end.
//! - `body`: functions and data of C as bodies of jobs.
//! - `graph`: a graph that C declares and runs, behind its number.
//! - the rest: the calls, by topic.
//!
//! The header is made of these files (`cargo test -p paceline-capi --test header`), so their comments are
//! written for people who read C.

// The names are those of C.
#![allow(non_camel_case_types)]

mod asking;
mod body;
mod described;
mod events;
mod frames;
mod graph;
mod graphs;
mod groups;
mod hooks;
mod jobs;
mod loops;
mod names;
mod nodes;
mod pinned;
mod seen;
mod sites;
mod status;
mod system;
mod tokens;
mod tracing;
mod waits;

pub use asking::*;
pub use body::*;
pub use events::*;
pub use frames::*;
pub use graphs::*;
pub use groups::*;
pub use jobs::*;
pub use loops::*;
pub use names::pl_site;
pub use nodes::*;
pub use pinned::*;
pub use status::*;
pub use system::*;
pub use tokens::*;
pub use tracing::*;
pub use waits::*;
