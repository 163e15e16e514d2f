//! What a job does, erased: the bytes of a closure and a table of functions that know its type.
//!
//! Closures of up to [`BODY_BYTES`] bytes (and alignment) lie in the job's slot; larger ones are
//! boxed. Invariant: a body is put in once, and after that either called once or dropped once.

use std::mem::MaybeUninit;

use platform::Platform;

use crate::Context;

/// Bytes of a slot that hold a closure, or the result of a typed job.
pub(crate) const BODY_BYTES: usize = 64;

/// Memory for a closure.
#[repr(C, align(64))]
pub(crate) struct Body(MaybeUninit<[u8; BODY_BYTES]>);

/// The functions of a body's type.
pub(crate) struct BodyTable<P: Platform> {
    /// Calls the closure and leaves the memory empty (or holding the result of a typed job).
    ///
    /// # Safety
    /// The pointer is to a [`Body`] filled by the constructor of this table and not yet emptied.
    pub(crate) run: unsafe fn(*mut Body, &Context<'_, P>),
    /// Does a share of a range as member number `_2`; the closure stays where it is.
    ///
    /// # Safety
    /// The pointer is to the body of an open range whose crew the caller belongs to.
    pub(crate) join: unsafe fn(*const Body, &Context<'_, P>, usize),
    /// Drops the closure uncalled.
    ///
    /// # Safety
    /// As for `run`.
    pub(crate) discard: unsafe fn(*mut Body),
    /// Drops the result that `run` of a typed job has left.
    ///
    /// # Safety
    /// `run` has returned, and the result was not taken.
    pub(crate) drop_result: unsafe fn(*mut Body),
}

impl<P: Platform> BodyTable<P> {
    /// For bodies that are no ranges: their jobs are never open.
    pub(crate) const NO_JOIN: unsafe fn(*const Body, &Context<'_, P>, usize) =
        |_, _, _| unreachable!("only ranges are opened");
    /// For bodies that leave nothing.
    pub(crate) const NO_RESULT: unsafe fn(*mut Body) = |_| {};
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

/// The table of a closure that is called once and gives nothing; built at compile time.
pub(crate) struct Once<P, F>(std::marker::PhantomData<(P, F)>);

impl<P: Platform, F: FnOnce(&Context<'_, P>)> Once<P, F> {
    pub(crate) const TABLE: BodyTable<P> = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a body that holds an `F`.
            let call = unsafe { Body::take::<F>(body) };
            call(context);
        },
        join: BodyTable::<P>::NO_JOIN,
        discard: |body| {
            // SAFETY: as above.
            drop(unsafe { Body::take::<F>(body) });
        },
        drop_result: BodyTable::<P>::NO_RESULT,
    };
}
