//! Data that jobs share as they declare: single cases, and random programs of several threads, each call
//! compared with an oracle.

mod auto;
mod cases;
mod mistakes;
mod oracle;
mod random;
