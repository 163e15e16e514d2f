//! Without the feature `trace` there are no traces, and `PACELINE_TRACE` is an error.

use std::convert::Infallible;
use std::marker::PhantomData;

use platform::Platform;

use crate::error::BuildError;
use crate::work::shared::Shared;

/// There is none.
pub(super) struct Trace<P: Platform>(Infallible, PhantomData<fn() -> P>);

impl<P: Platform> Trace<P> {
    pub(super) fn from_environment(_: &Shared<P>, _: &str) -> Result<Trace<P>, BuildError> {
        Err(BuildError::Environment(
            "PACELINE_TRACE: this program was built without the feature `trace` of crate paceline"
                .to_owned(),
        ))
    }
}
