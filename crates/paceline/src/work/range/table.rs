//! The function table of the job that shares a range.

use std::ops::Range;

use platform::Platform;

use super::body::SharedRange;
use super::open::OpenLoop;
use crate::store::{Body, BodyTable};
use crate::work::context::Context;

/// The table of a range's body, by platform and closure. The closure stays in place until it is discarded. A
/// participant catches the panics of its own share.
pub(crate) struct RangeTable<P, F>(std::marker::PhantomData<(P, F)>);

impl<P: Platform, F: Fn(Range<usize>, &Context<'_, P>) + Sync> RangeTable<P, F> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds a `SharedRange<F>`, which stays
            // there until the last participant has left, in a slot of a job system on `P`.
            let (range, context) = unsafe {
                let range = Body::peek::<SharedRange<F>>(body);
                (range, context.get::<Context<'_, P>>())
            };
            OpenLoop::current(context).open_and_run(range);
        },
        join: |body, context, number| {
            // SAFETY: as above; the caller is a participant.
            let (range, context) = unsafe {
                let range = Body::peek::<SharedRange<F>>(body);
                (range, context.get::<Context<'_, P>>())
            };
            OpenLoop::current(context).run_share(range, number);
        },
        discard: |body| {
            // SAFETY: as above; the loop has no participant any more, or never had one.
            drop(unsafe { Body::take::<SharedRange<F>>(body) });
        },
        drop_result: |_| {},
    };
}
