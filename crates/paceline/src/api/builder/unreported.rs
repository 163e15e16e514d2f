//! Without the feature `report` the job system makes no reports by itself, and `PACELINE_STUCK` is an error.

use crate::adapt::environment::{of_process, variable};
use crate::error::BuildError;
use crate::work::StuckSetting;

pub(super) fn from_environment() -> Result<Option<StuckSetting>, BuildError> {
    let refuse = |_: &str| {
        let why = "this program was built without the feature `report` of crate paceline";
        Err(why.to_owned())
    };
    variable(&of_process, "PACELINE_STUCK", &refuse)
}
