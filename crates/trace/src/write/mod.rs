//! From recordings to files.

mod order;
mod perfetto;
mod written;

pub use order::settle_order;
#[cfg(feature = "read")]
pub use perfetto::annotate;
pub use perfetto::perfetto;
pub use written::Written;
