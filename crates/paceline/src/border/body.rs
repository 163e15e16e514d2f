//! What a job does, erased: the bytes of a closure and a table of functions that know its type.
//!
//! Closures of up to [`BODY_BYTES`] bytes (and alignment) lie in the job's slot; larger ones are
//! boxed. Invariant: a body is put in once, and after that either called once or dropped once.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use platform::Platform;

use super::{Payload, caught};
use crate::Context;

/// Bytes of a slot that hold a closure, or the result of a typed job.
pub(crate) const BODY_BYTES: usize = 64;

/// Memory for a closure.
#[repr(C, align(64))]
pub(crate) struct Body(MaybeUninit<[u8; BODY_BYTES]>);

/// The functions of a body's type. They are called by the methods of the same names, which catch.
pub(crate) struct BodyTable<P: Platform> {
    run: unsafe fn(*mut Body, &Context<'_, P>),
    join: unsafe fn(*const Body, &Context<'_, P>, usize),
    discard: unsafe fn(*mut Body),
    drop_result: unsafe fn(*mut Body),
}

impl<P: Platform> BodyTable<P> {
    /// The table of a range, whose closure stays in place until [`discard`](BodyTable::discard). `run` and
    /// `join` call it through [`caught`].
    pub(crate) const fn of_range(
        run: unsafe fn(*mut Body, &Context<'_, P>),
        join: unsafe fn(*const Body, &Context<'_, P>, usize),
        discard: unsafe fn(*mut Body),
    ) -> BodyTable<P> {
        BodyTable {
            run,
            join,
            discard,
            drop_result: |_| {},
        }
    }

    /// Calls the closure and leaves the memory empty (or holding the result of a typed job).
    ///
    /// # Safety
    /// The pointer is to a [`Body`] filled by the constructor of this table and not yet emptied.
    #[inline(always)]
    pub(crate) unsafe fn run(
        &self,
        body: *mut Body,
        context: &Context<'_, P>,
    ) -> Result<(), Payload> {
        // SAFETY: the caller's promise.
        caught(|| unsafe { (self.run)(body, context) })
    }

    /// Does a share of a range as member number `member`; the closure stays where it is.
    ///
    /// # Safety
    /// The pointer is to the body of an open range whose crew the caller belongs to.
    pub(crate) unsafe fn join(&self, body: *const Body, context: &Context<'_, P>, member: usize) {
        // SAFETY: the caller's promise. A range catches in its own share (see `of_range`).
        unsafe { (self.join)(body, context, member) };
    }

    /// The same for the one that opens the range.
    ///
    /// # Safety
    /// As for [`run`](BodyTable::run), of a range.
    pub(crate) unsafe fn open(&self, body: *mut Body, context: &Context<'_, P>) {
        // SAFETY: the caller's promise. A range catches in its own share (see `of_range`).
        unsafe { (self.run)(body, context) };
    }

    /// Drops the closure uncalled.
    ///
    /// # Safety
    /// As for [`run`](BodyTable::run).
    pub(crate) unsafe fn discard(&self, body: *mut Body) -> Result<(), Payload> {
        // SAFETY: the caller's promise.
        caught(|| unsafe { (self.discard)(body) })
    }

    /// Drops the result that `run` of a typed job has left.
    ///
    /// # Safety
    /// `run` has returned without a panic, and the result was not taken.
    pub(crate) unsafe fn drop_result(&self, body: *mut Body) -> Result<(), Payload> {
        // SAFETY: the caller's promise.
        caught(|| unsafe { (self.drop_result)(body) })
    }
}

impl Body {
    pub(crate) const EMPTY: Body = Body(MaybeUninit::uninit());

    /// Whether a `T` lies in the slot itself.
    pub(crate) const fn holds<T>() -> bool {
        size_of::<T>() <= BODY_BYTES && align_of::<T>() <= align_of::<Body>()
    }

    /// Puts a value in, boxed if it is too large.
    ///
    /// # Safety
    /// `this` is valid for writing and holds nothing that needs dropping.
    #[inline]
    pub(crate) unsafe fn put<T>(this: *mut Body, value: T) {
        if Body::holds::<T>() {
            // SAFETY: size and alignment were just checked; the caller vouches for the memory.
            unsafe { this.cast::<T>().write(value) };
        } else {
            // SAFETY: a pointer fits any body; the caller vouches for the memory.
            unsafe { this.cast::<Box<T>>().write(Box::new(value)) };
        }
    }

    /// The value, left where it is.
    ///
    /// # Safety
    /// `this` holds a `T` put in by [`Body::put`], which stays there for `'b`.
    pub(crate) unsafe fn peek<'b, T>(this: *const Body) -> &'b T {
        if Body::holds::<T>() {
            // SAFETY: the caller vouches that a `T` is there and stays.
            unsafe { &*this.cast::<T>() }
        } else {
            // SAFETY: as above; large values were boxed by `put`.
            unsafe { &*this.cast::<Box<T>>() }
        }
    }

    /// Takes the value out again.
    ///
    /// # Safety
    /// `this` holds a `T` put in by [`Body::put`]; it is empty afterwards.
    #[inline]
    pub(crate) unsafe fn take<T>(this: *mut Body) -> T {
        if Body::holds::<T>() {
            // SAFETY: the caller vouches that a `T` is there.
            unsafe { this.cast::<T>().read() }
        } else {
            // SAFETY: as above; large values were boxed by `put`.
            *unsafe { this.cast::<Box<T>>().read() }
        }
    }
}

/// Only ranges are joined.
fn no_join<P: Platform>(_: *const Body, _: &Context<'_, P>, _: usize) {
    unreachable!("only ranges are opened")
}

/// The table of a closure that is called once and gives nothing; built at compile time.
pub(crate) struct Once<P, F>(PhantomData<(P, F)>);

impl<P: Platform, F: FnOnce(&Context<'_, P>)> Once<P, F> {
    pub(crate) const TABLE: BodyTable<P> = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds an `F`.
            let call = unsafe { Body::take::<F>(body) };
            call(context);
        },
        join: no_join::<P>,
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
    pub(crate) const TABLE: BodyTable<P> = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds an `F`; once it is taken out
            // the memory is free for the result.
            unsafe {
                let result = Body::take::<F>(body)(context);
                Body::put(body, result);
            }
        },
        join: no_join::<P>,
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
