//! Without the feature `trace` there are no traces, and `PACELINE_TRACE` is an error.

use std::convert::Infallible;
use std::marker::PhantomData;

use platform::Platform;

use crate::adapt::environment::{of_process, variable};
use crate::error::BuildError;
use crate::work::shared::Shared;

/// No variable asks for a file.
pub(super) type Pattern = Infallible;

/// # Errors
/// If the environment asks for a trace.
pub(super) fn asked() -> Result<Option<Pattern>, BuildError> {
    let refuse = |_: &str| {
        let why = "this program was built without the feature `trace` of crate paceline";
        Err(why.to_owned())
    };
    variable(&of_process, "PACELINE_TRACE", &refuse)
}

/// There is none.
pub(super) struct Trace<P: Platform>(Infallible, PhantomData<fn() -> P>);

impl<P: Platform> Trace<P> {
    pub(super) fn from_environment(
        _: &Shared<P>,
        pattern: &Pattern,
    ) -> Result<Trace<P>, BuildError> {
        match *pattern {}
    }
}
