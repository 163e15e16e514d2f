//! Graphs that are built once: random ones against a serial oracle, parts of slices, what a run costs, and
//! single cases.

mod cases;
mod cost;
mod oracle;
mod order;
mod parts;
mod random;
