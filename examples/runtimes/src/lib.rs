//! Nothing but the programs of the guide to async code, which run as tests. The example beside this is a
//! whole program: its output is compared with what is committed.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/async.md")]
struct Guide;
