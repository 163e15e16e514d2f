//! Whether settings are in their ranges.

use crate::error::BuildError;

pub(super) fn in_range(
    setting: &'static str,
    asked: u64,
    low: u64,
    high: u64,
) -> Result<(), BuildError> {
    if (low..=high).contains(&asked) {
        Ok(())
    } else {
        Err(out_of_range(setting, asked, low, high))
    }
}

pub(super) fn out_of_range(setting: &'static str, asked: u64, low: u64, high: u64) -> BuildError {
    BuildError::OutOfRange {
        setting,
        asked,
        range: (low, high),
    }
}
