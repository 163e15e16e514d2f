//! The stacks that simulated threads run on.
//!
//! A fiber is a coroutine. It either runs to its end, which gives its stack back to a pool, or it is
//! abandoned: dropping a suspended coroutine would unwind it, that is, run destructors of a program that was
//! stopped in the middle of an operation. Abandoned stacks are leaked with everything on them (a few pages
//! and the heap memory of a failed run).
//!
//! A stack that overflows hits its guard page and the process dies by a signal.

use std::cell::RefCell;
use std::hint::black_box;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Enough for deep test programs in debug builds, panics and their formatting included.
pub(crate) const STACK_BYTES: usize = 512 * 1024;
/// The number of unused stacks that an OS thread keeps.
const POOLED_MAX: usize = 256;

/// The number of different depths at which fibers begin. Stacks lie at multiples of a page, so the most used
/// part of all stacks would fall into a few sets of the CPU's cache, which has room there for eight lines.
/// More fibers than that in turn, as on a machine of 32 CPUs, would find nothing in it.
const DEPTHS: usize = 8;
/// The difference between two depths: a page divided by their number.
const DEPTH: usize = 4096 / DEPTHS;

/// Calls `f` deeper on the stack, by `BYTES`.
#[inline(never)]
fn deeper<const BYTES: usize>(f: impl FnOnce()) {
    let room = MaybeUninit::<[u8; BYTES]>::uninit();
    black_box(&room);
    f();
    // Still used, so that the call above leaves it where it is.
    black_box(&room);
}

/// Calls `f` at one of several depths of the stack.
fn at_depth(which: usize, f: impl FnOnce()) {
    match which % DEPTHS {
        0 => f(),
        1 => deeper::<DEPTH>(f),
        2 => deeper::<{ 2 * DEPTH }>(f),
        3 => deeper::<{ 3 * DEPTH }>(f),
        4 => deeper::<{ 4 * DEPTH }>(f),
        5 => deeper::<{ 5 * DEPTH }>(f),
        6 => deeper::<{ 6 * DEPTH }>(f),
        _ => deeper::<{ 7 * DEPTH }>(f),
    }
}

/// The handle that a fiber calls to let the machine choose another.
pub(crate) type Suspender = Yielder<(), ()>;

/// A simulated thread's flow of control.
pub(crate) struct Fiber {
    coroutine: ManuallyDrop<Coroutine<(), (), (), DefaultStack>>,
    pooled: bool,
}

thread_local! {
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

impl Fiber {
    /// A fiber that will call `entry` when it is first resumed. Fibers with consecutive values of `number`
    /// begin at different depths.
    ///
    /// # Errors
    /// If there is no memory for the stack.
    ///
    /// # Safety
    /// `entry` must not unwind. If it borrows something, then that outlives the last resume.
    pub(crate) unsafe fn new(
        number: usize,
        stack_bytes: usize,
        entry: impl FnOnce(&Suspender),
    ) -> io::Result<Fiber> {
        let pooled = stack_bytes <= STACK_BYTES;
        let from_pool = if pooled {
            POOL.with_borrow_mut(Vec::pop)
        } else {
            None
        };
        let stack = match from_pool {
            Some(stack) => stack,
            None => DefaultStack::new(stack_bytes.max(STACK_BYTES))?,
        };
        // SAFETY: lifetimes are the caller's promise. A fiber is resumed only by the machine that
        // made it, on the OS thread it was made on: a coroutine is not `Send`.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, move |suspender, ()| {
                at_depth(number, || entry(suspender));
            })
        };
        Ok(Fiber {
            coroutine: ManuallyDrop::new(coroutine),
            pooled,
        })
    }

    /// Runs the fiber until it suspends or ends.
    #[inline]
    pub(crate) fn resume(&mut self) -> FiberState {
        match self.coroutine.resume(()) {
            CoroutineResult::Yield(()) => FiberState::Suspended,
            CoroutineResult::Return(()) => FiberState::Ended,
        }
    }

    /// Gives the stack of a fiber that has ended back to the pool.
    pub(crate) fn give_back(self) {
        let stack = ManuallyDrop::into_inner(self.coroutine).into_stack();
        POOL.with_borrow_mut(|pool| {
            if self.pooled && pool.len() < POOLED_MAX {
                pool.push(stack);
            }
        });
    }
}

/// The state of a fiber after it was resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FiberState {
    /// It left its stack, and continues there when it is resumed.
    Suspended,
    /// It has ended and may not be resumed again.
    Ended,
}
