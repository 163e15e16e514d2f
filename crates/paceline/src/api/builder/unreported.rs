//! Without the feature `report` the job system makes no reports by itself, and `PACELINE_STUCK` is an error.

use crate::adapt::environment::of_process;
use crate::error::BuildError;
use crate::work::StuckSetting;

pub(super) fn from_environment() -> Result<Option<StuckSetting>, BuildError> {
    match of_process("PACELINE_STUCK") {
        None => Ok(None),
        Some(_) => Err(BuildError::Environment(
            "PACELINE_STUCK: this program was built without the feature `report` of crate paceline"
                .to_owned(),
        )),
    }
}
