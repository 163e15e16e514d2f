//! Scheduling parameters on systems that are not asked for any.

use event::Nanos;

use crate::{RefusalKind, SchedParams, SchedParamsError};

pub(super) fn set(_thread: u64, how: &SchedParams) -> Result<SchedParams, SchedParamsError> {
    Err(SchedParamsError::new(
        how,
        RefusalKind::Unsupported,
        "Paceline asks for help on Linux, Windows and macOS only",
    ))
}

/// Nothing is asked for.
pub(super) fn ask_for_slice(_slice: Nanos) {}
