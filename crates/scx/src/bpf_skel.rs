//! The compiled BPF part, as libbpf-cargo embeds it.
#![allow(warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
