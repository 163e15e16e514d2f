//! Graphs that are built once: random ones against a serial oracle, what a run costs, and single cases.

mod cases;
mod cost;
mod oracle;
mod random;
