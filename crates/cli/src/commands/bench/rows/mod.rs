//! The rows: each is a piece of work, the ways the subjects do it, and its targets.

mod counted_graph;
mod frame;
mod frame_pools;
mod graph;
mod idle;
mod join;
mod load;
mod loops;
mod simulator;
mod spawn;
mod submit;
mod trace;

pub(super) use self::trace::tell;

use event::Nanos;
use platform::{Os, Platform};

use super::case::Case;
use super::session::Setup;
use crate::failure::Failure;

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// In one line.
    pub(super) title: &'static str,
    /// What exactly is measured, for those who judge the numbers.
    pub(super) means: &'static str,
    pub(super) measure: fn(&mut Setup) -> Result<Vec<Case>, Failure>,
}

/// All rows.
pub(super) const ROWS: &[Row] = &[
    spawn::ROW,
    join::ROW,
    loops::ROW,
    graph::ROW,
    submit::ROW,
    frame::ROW,
    load::ROW,
    idle::ROW,
    trace::ROW,
    simulator::ROW,
];

/// How long `f` takes, in nanoseconds.
fn nanos(f: impl FnOnce()) -> f64 {
    let begin = Os.now();
    f();
    (Os.now() - begin).0 as f64
}

/// The result if it is the right one.
fn check<T: PartialEq + std::fmt::Display>(got: T, expected: T) -> Result<(), String> {
    match got == expected {
        true => Ok(()),
        false => Err(format!("{got} instead of {expected}")),
    }
}

/// A length for a label: in microseconds if it is a whole number of tenths of them.
fn short(length: Nanos) -> String {
    match length.0 {
        0..100 => format!("{} ns", length.0),
        ns if ns % 100 == 0 && ns >= 500 => format!("{} µs", ns as f64 / 1e3),
        ns => format!("{ns} ns"),
    }
}
