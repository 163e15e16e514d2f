//! What the environment asks for.

use super::reports;
use crate::adapt::environment::{self, WorkersSetting};
use crate::api::trace;
use crate::error::BuildError;
use crate::work::StuckSetting;

/// The settings that the environment asks for.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) workers: Option<WorkersSetting>,
    pub(super) trace: Option<trace::Pattern>,
    pub(super) stuck: Option<StuckSetting>,
}

impl Asked {
    #[cold]
    pub(super) fn by_environment() -> Result<Asked, BuildError> {
        Ok(Asked {
            workers: environment::workers()?,
            trace: trace::asked()?,
            stuck: reports::from_environment()?,
        })
    }
}
