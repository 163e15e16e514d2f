//! Without the feature `report` the job system makes no reports by itself, and `PACELINE_STUCK` is an error.

use std::marker::PhantomData;

use event::Nanos;
use platform::{Memory, OnSignal, Platform, Signal};

use crate::error::BuildError;
use crate::work::context::Context;
use crate::work::shared::Shared;

/// No wait is reported.
pub(crate) struct LongWaits<M: Memory> {
    pub(crate) after: Nanos,
    _memory: PhantomData<fn() -> M>,
}

impl<M: Memory> LongWaits<M> {
    pub(crate) fn new(after: Option<Nanos>) -> Result<LongWaits<M>, BuildError> {
        match after {
            None => Ok(LongWaits {
                after: Nanos::MAX,
                _memory: PhantomData,
            }),
            Some(_) => Err(not_built_in()),
        }
    }

    pub(crate) fn may_report(&self, _: Nanos) -> bool {
        false
    }
}

impl<P: Platform> Shared<P> {
    pub(crate) fn report_long_wait(&self, _: &Context<'_, P>, _: Nanos) {}

    pub(crate) fn report_on(&self, _: Signal) -> Result<OnSignal, BuildError> {
        Err(not_built_in())
    }
}

fn not_built_in() -> BuildError {
    let text =
        "PACELINE_STUCK: this program was built without the feature `report` of crate paceline";
    BuildError::Environment(text.to_owned())
}
