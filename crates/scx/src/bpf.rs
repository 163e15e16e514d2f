//! The core's Rust part, as it generates it.
#![allow(
    warnings,
    clippy::all,
    clippy::disallowed_types,
    clippy::disallowed_methods
)]
#![allow(clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/core/src/bpf.rs"));
