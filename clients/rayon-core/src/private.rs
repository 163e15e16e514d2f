//! Methods that only traits of this crate can have.

/// A type that no other crate can name.
#[allow(missing_debug_implementations)]
pub struct PrivateMarker;
