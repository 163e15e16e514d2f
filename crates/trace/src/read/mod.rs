//! Reads what other programs recorded.
#![allow(dead_code, unused_imports, reason = "readers come")]

pub(crate) mod builder;
pub(crate) mod markers;
mod numbers;
mod perfetto;
