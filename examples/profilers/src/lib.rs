//! Nothing but the programs of the guide to profilers, which run as tests. The examples beside this show the
//! same in whole programs, whose output is compared with what is committed.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/profilers.md")]
struct Guide;
