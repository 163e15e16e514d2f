//! Checks of settings.

use platform::{CpuSet, Limits, Platform};

use crate::adapt::{calling_thread, limits_of};
use crate::error::BuildError;

/// The part of the machine that the calling thread may use, within the CPUs asked for.
pub(super) fn limits<P: Platform>(
    platform: &P,
    asked: Option<&CpuSet>,
) -> Result<Limits, BuildError> {
    let limits = limits_of(platform, &[calling_thread(platform)], asked, &CpuSet::new());
    let usable = limits.usable();
    match asked {
        Some(asked) if asked.intersection(&usable).is_empty() => Err(BuildError::NoCpu {
            asked: asked.clone(),
            usable,
        }),
        _ => Ok(limits),
    }
}

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
