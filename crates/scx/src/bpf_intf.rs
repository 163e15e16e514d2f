//! The types of messages, as bindgen writes them.
#![allow(warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
