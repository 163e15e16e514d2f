//! The work of a job, erased: the bytes of a closure, and a table of functions that know its type.
//!
//! The functions are given the context of the thread that runs the body. The type of the context is erased,
//! too ([`Erased`]): the store knows nothing about threads.
//!
//! Closures of up to [`BODY_BYTES`] bytes (and of that alignment at most) lie in the job's slot. Larger ones
//! are boxed. Invariant: a body is put in once, and after that it is either called once or dropped once.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::border::{Payload, caught};

/// Bytes of a slot that hold a closure, or the result of a typed job.
pub(crate) const BODY_BYTES: usize = 64;

/// Memory for a closure.
#[repr(C, align(64))]
pub(crate) struct Body(MaybeUninit<[u8; BODY_BYTES]>);

/// A reference to the context of the thread that runs a body, without its type.
#[derive(Clone, Copy)]
pub(crate) struct Erased<'c>(*const (), PhantomData<&'c ()>);

impl<'c> Erased<'c> {
    #[inline(always)]
    pub(crate) fn new<T>(context: &'c T) -> Erased<'c> {
        Erased(std::ptr::from_ref(context).cast(), PhantomData)
    }

    /// The context.
    ///
    /// # Safety
    /// It was made of a `T`, or of a type that differs from `T` only in lifetimes, which are longer.
    #[inline(always)]
    pub(crate) unsafe fn get<T>(self) -> &'c T {
        // SAFETY: the caller vouches for the type; the reference it was made of lives for `'c`.
        unsafe { &*self.0.cast::<T>() }
    }
}

/// The functions for the type of a body. They are called by the methods of the same names, which catch
/// panics.
pub(crate) struct BodyTable {
    pub(crate) run: unsafe fn(*mut Body, Erased<'_>),
    /// Does a share of a range. Only ranges can be joined.
    pub(crate) join: unsafe fn(*const Body, Erased<'_>, usize),
    pub(crate) discard: unsafe fn(*mut Body),
    pub(crate) drop_result: unsafe fn(*mut Body),
}

impl BodyTable {
    /// Calls the closure and leaves the memory empty (or holding the result of a typed job).
    ///
    /// # Safety
    /// The pointer is to a [`Body`] filled by the constructor of this table and not yet emptied, and the
    /// context is of the type that this table's functions expect.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, body: *mut Body, context: Erased<'_>) -> Result<(), Payload> {
        // SAFETY: the caller's promise.
        caught(|| unsafe { (self.run)(body, context) })
    }

    /// Does a share of a range as participant number `participant`; the closure stays where it is.
    ///
    /// # Safety
    /// The pointer is to the body of an open range in which the caller is a participant. The context: as for
    /// [`run`](BodyTable::run).
    pub(crate) unsafe fn join(&self, body: *const Body, context: Erased<'_>, participant: usize) {
        // SAFETY: the caller's promise. A range catches in its own share.
        unsafe { (self.join)(body, context, participant) };
    }

    /// The same for the thread that opens the range.
    ///
    /// # Safety
    /// As for [`run`](BodyTable::run), of a range.
    pub(crate) unsafe fn open(&self, body: *mut Body, context: Erased<'_>) {
        // SAFETY: the caller's promise. A range catches in its own share.
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

    /// The place of the value, for one that must not move.
    ///
    /// # Safety
    /// `this` holds a `T` put in by [`Body::put`].
    pub(crate) unsafe fn place<T>(this: *mut Body) -> *mut T {
        if Body::holds::<T>() {
            this.cast::<T>()
        } else {
            // SAFETY: the caller vouches that a `T` is there, and large values were boxed by `put`.
            unsafe { &raw mut **this.cast::<Box<T>>() }
        }
    }

    /// Drops the value where it is.
    ///
    /// # Safety
    /// `this` holds a `T` put in by [`Body::put`]; it is empty afterwards, also if the drop panics.
    pub(crate) unsafe fn drop_in_place<T>(this: *mut Body) {
        if Body::holds::<T>() {
            // SAFETY: the caller vouches that a `T` is there.
            unsafe { this.cast::<T>().drop_in_place() };
        } else {
            // SAFETY: as above; large values were boxed by `put`.
            unsafe { this.cast::<Box<T>>().drop_in_place() };
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
