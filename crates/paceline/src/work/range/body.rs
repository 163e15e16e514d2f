//! The closure of a range, and the items it ranges over.

use std::ops::Range;

use platform::Platform;

use super::words::RangeItems;
use crate::error::ScheduleError;
use crate::policy::Grain;
use crate::work::context::Context;

/// The body of a range.
pub(crate) struct SharedRange<F> {
    pub(super) start: usize,
    pub(super) items: u32,
    pub(super) grain: u32,
    body: F,
}

impl<F> SharedRange<F> {
    pub(crate) fn new(range: Range<usize>, grain: Grain, body: F) -> Result<Self, ScheduleError> {
        let items = range.end.saturating_sub(range.start);
        let too_long = ScheduleError::TooLong { items };
        let items = u32::try_from(items).map_err(|_| too_long)?;
        Ok(SharedRange {
            start: range.start,
            items,
            grain: grain.items(),
            body,
        })
    }

    /// Calls the body with these items.
    #[inline]
    pub(super) fn run<P: Platform>(&self, items: RangeItems, context: &Context<'_, P>)
    where
        F: Fn(Range<usize>, &Context<'_, P>),
    {
        let part = self.start + items.lo as usize..self.start + items.hi as usize;
        (self.body)(part, context);
    }
}

impl<F> SharedRange<&F> {
    /// The same range again, as the body of a job.
    pub(super) fn again(&self) -> Self {
        SharedRange { ..*self }
    }
}
