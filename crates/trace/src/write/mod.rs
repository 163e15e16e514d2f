//! From recordings to files.

mod order;
mod perfetto;
mod written;

pub use order::settle_order;
pub use perfetto::{annotate, perfetto};
pub use written::Written;
