//! Values of `--what-if` and `--tick` on the command line.

use event::Nanos;
use replay::Change;

/// Reads a change.
///
/// # Errors
/// The part that is none.
pub(super) fn read(text: &str) -> Result<Change, String> {
    Change::parse(text).map_err(|error| error.to_string())
}

/// Reads a length of time.
///
/// # Errors
/// If it is none.
pub(super) fn length(text: &str) -> Result<Nanos, String> {
    replay::length(text)
}
