//! A row of the table, and helpers of most rows.

use std::fmt::Display;

use console::Failure;
use event::Nanos;
use platform::{Os, Platform};

use crate::case::Case;
use crate::session::Setup;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The work in one line.
    pub(crate) title: &'static str,
    /// The exact measurement, for readers of the numbers.
    pub(crate) means: &'static str,
    pub(crate) measure: fn(&mut Setup) -> Result<Vec<Case>, Failure>,
}

/// The time of `f` in nanoseconds.
pub(crate) fn nanos(f: impl FnOnce()) -> f64 {
    let begin = Os.now();
    f();
    (Os.now() - begin).0 as f64
}

/// Fails if the result is wrong.
pub(crate) fn check<T: PartialEq + Display>(got: T, expected: T) -> Result<(), String> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{got} instead of {expected}"))
    }
}

/// A length for a label: in microseconds from 500 ns on if it is a whole number of tenths of them.
pub(crate) fn short(length: Nanos) -> String {
    match length.0 {
        0..100 => format!("{} ns", length.0),
        ns if ns % 100 == 0 && ns >= 500 => format!("{} µs", ns as f64 / 1e3),
        ns => format!("{ns} ns"),
    }
}
