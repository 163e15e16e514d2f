//! Systems that are not asked to treat a thread in any way.

use event::Nanos;

use crate::{Treatment, TreatmentError};

pub(super) fn treat(_thread: u64, _how: &Treatment) -> Result<Treatment, TreatmentError> {
    Err(TreatmentError(
        "Paceline asks for help on Linux only".into(),
    ))
}

/// Nothing is asked for.
pub(super) fn ask_for_slice(_slice: Nanos) {}
