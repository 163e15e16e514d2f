//! The function tables of closures that are called once, by the type of the closure, and of the values that
//! events give.

use std::marker::PhantomData;

use platform::Platform;

use super::context::Context;
use crate::store::{Body, BodyTable, Erased};

/// Only ranges can be joined.
fn no_join(_: *const Body, _: Erased<'_>, _: usize) {
    unreachable!("only ranges can be joined")
}

/// The table of a closure that is called once and has no result; built at compile time.
pub(crate) struct Once<P, F>(PhantomData<(P, F)>);

impl<P: Platform, F: FnOnce(&Context<'_, P>)> Once<P, F> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds an `F`, in a slot of a job system on `P`.
            let (call, context) =
                unsafe { (Body::take::<F>(body), context.get::<Context<'_, P>>()) };
            call(context);
        },
        join: no_join,
        discard: |body| {
            // SAFETY: as above.
            drop(unsafe { Body::take::<F>(body) });
        },
        drop_result: |_| {},
    };
}

/// The table of a body with a result, which replaces the closure in the slot.
pub(crate) struct Typed<P, F, T>(PhantomData<(P, F, T)>);

impl<P: Platform, F: FnOnce(&Context<'_, P>) -> T, T> Typed<P, F, T> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds an `F`, in a slot of a job system on `P`.
            // Once the closure is taken out, the memory is free for the result.
            unsafe {
                let result = Body::take::<F>(body)(context.get::<Context<'_, P>>());
                Body::put(body, result);
            }
        },
        join: no_join,
        discard: |body| {
            // SAFETY: as above.
            drop(unsafe { Body::take::<F>(body) });
        },
        drop_result: |body| {
            // SAFETY: `run` has put a `T` there.
            drop(unsafe { Body::take::<T>(body) });
        },
    };
}

/// The same for a body that gets no context, and so knows no platform.
pub(crate) struct TypedAlone<F, T>(PhantomData<(F, T)>);

impl<F: FnOnce() -> T, T> TypedAlone<F, T> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |body, _| {
            // SAFETY: the table is stored beside a body that holds an `F`. Once the closure is taken out, the
            // memory is free for the result.
            unsafe {
                let result = Body::take::<F>(body)();
                Body::put(body, result);
            }
        },
        join: no_join,
        discard: |body| {
            // SAFETY: as above.
            drop(unsafe { Body::take::<F>(body) });
        },
        drop_result: |body| {
            // SAFETY: `run` has put a `T` there.
            drop(unsafe { Body::take::<T>(body) });
        },
    };
}

/// The table of a job without a body, whose value an event gives.
pub(crate) struct Given<T>(PhantomData<T>);

impl<T> Given<T> {
    pub(crate) const TABLE: BodyTable = BodyTable {
        run: |_, _| unreachable!("an event has no body"),
        join: no_join,
        discard: |_| {},
        drop_result: |body| {
            // SAFETY: the event has put a `T` there.
            drop(unsafe { Body::take::<T>(body) });
        },
    };
}
