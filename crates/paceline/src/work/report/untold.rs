//! Without the feature `report` the job system makes no reports by itself.

use event::Nanos;
use platform::{Memory, Platform};

use crate::error::BuildError;
use crate::work::context::Context;
use crate::work::shared::Shared;

/// There is nothing to set.
#[derive(Clone, Copy, Default)]
pub(crate) struct StuckSetting {}

/// No wait is reported.
pub(crate) struct LongWaits<M: Memory>(std::marker::PhantomData<fn() -> M>);

/// Nothing listens.
pub(crate) type Telling = ();

impl<M: Memory> LongWaits<M> {
    pub(crate) fn new(_: &StuckSetting) -> Result<LongWaits<M>, BuildError> {
        Ok(LongWaits(std::marker::PhantomData))
    }

    #[inline]
    pub(crate) fn after(&self) -> Nanos {
        Nanos::MAX
    }

    pub(crate) fn may_report(&self, _: Nanos) -> bool {
        false
    }
}

impl<P: Platform> Shared<P> {
    pub(crate) fn report_long_wait(&self, _: &Context<'_, P>, _: Nanos) {}

    pub(crate) fn listen(&self, _: &StuckSetting) -> Result<Telling, BuildError> {
        Ok(())
    }
}
