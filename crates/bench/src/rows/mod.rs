//! The rows. Each is a piece of work, the subjects' ways to do it, and its targets.

mod background;
mod build;
mod counted_graph;
mod frame;
mod frame_pools;
mod graph;
mod idle;
mod join;
mod load;
mod loops;
mod order;
mod safety;
mod short;
mod simulator;
mod slices;
mod spawn;
mod submit;
mod trace;

pub(super) use self::trace::tell;

use crate::row::Row;

/// All rows.
pub(super) const ROWS: &[Row] = &[
    spawn::ROW,
    join::ROW,
    loops::ROW,
    slices::ROW,
    graph::ROW,
    build::ROW,
    order::ROW,
    safety::ROW,
    submit::ROW,
    frame::ROW,
    short::ROW,
    load::ROW,
    background::ROW,
    idle::ROW,
    trace::ROW,
    simulator::ROW,
];
