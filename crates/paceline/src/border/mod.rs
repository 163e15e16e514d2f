//! The border to the program's code.
//!
//! A job system runs code that it does not know: bodies of jobs, hooks, sinks, wakers, and the drops of all
//! values that these capture, return or panic with. Any of this code may panic, and may call the job system.
//! All of it is called in this module, and nowhere else:
//!
//! - [`caught`] calls a closure and returns the payload if the closure panicked.
//! - [`UserValue`] holds a value of the program's that is not a job's. It is reached through
//!   [`call`](UserValue::call), and its drop cannot unwind.
//! - [`Body`](crate::store::Body) is a job's closure or result, erased: calling and dropping it catch panics.
//! - [`Hooks`](crate::hooks::Hooks) are the program's closures for certain moments.
//! - [`UnwindGuard`] is for the places where an unwind would leave borrowed data behind. With the border in
//!   place only a bug of the job system itself gets there, and the guard then ends the process.
//!
//! A panic of a body makes the job fail, and is reported to the threads that wait for the job. A panic
//! anywhere else is counted (`Stats::drop_panics`, `Stats::hook_panics`), and the job system goes on as if
//! there had been none: a job ends as it would have, and a thread works on.
//!
//! Exceptions are closures that run on the stack of their caller, on behalf of that caller (the first half of
//! a join, a scope's closure, the part of a loop that is not shared). Their panics reach the caller, once
//! everything that borrows has ended.
//!
//! Invariants
//! - Code of the program is called while no lock of the job system is held and no
//!   [`Own`](crate::work::thread_slot::Own) is borrowed.
//! - While code of the program runs on a thread inside the job system, that thread has a
//!   [`Running`](crate::work::thread_slot::Running). So the job system knows of calls that come back, and of
//!   its own end on its own stack (see `shutdown`).

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use platform::{Atomic, Memory, Ordering};

use crate::stats::Stats;

/// The payload with which code of the program panicked.
pub(crate) type Payload = UserValue<Box<dyn Any + Send>>;

/// Calls code of the program.
#[inline(always)]
pub(crate) fn caught<R>(call: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(call)).map_err(UserValue::new)
}

/// A value of the program's.
pub(crate) struct UserValue<T>(ManuallyDrop<T>);

impl<T> UserValue<T> {
    pub(crate) fn new(value: T) -> UserValue<T> {
        UserValue(ManuallyDrop::new(value))
    }

    /// Calls the value, or a method of it.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&T) -> R) -> Result<R, Payload> {
        caught(|| call(&self.0))
    }

    /// Hands the value to the program.
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Drops the value. Returns how many drops panicked.
    #[inline(never)]
    pub(crate) fn discard(self) -> u64 {
        match caught(|| drop(self.into_inner())) {
            Ok(()) => 0,
            Err(payload) => discard_payloads(payload),
        }
    }
}

/// Drops the payload of a drop that has panicked. Returns how many drops panicked.
#[cold]
fn discard_payloads(first: Payload) -> u64 {
    /// The drop of a payload may panic with another payload of that kind, and so on.
    const DROPS_MAX: u64 = 8;
    let mut panics = 0;
    let mut next = Some(first);
    while let Some(payload) = next {
        panics += 1;
        let payload = payload.into_inner();
        if panics == DROPS_MAX {
            std::mem::forget(payload);
            break;
        }
        next = caught(|| drop(payload)).err();
    }
    panics
}

impl<T> Drop for UserValue<T> {
    /// For values that are dropped where no panic can be counted: with the job system itself.
    fn drop(&mut self) {
        // SAFETY: the value is not used again: this is its owner's drop.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        UserValue::new(value).discard();
    }
}

impl<T: Clone> Clone for UserValue<T> {
    fn clone(&self) -> Self {
        UserValue(self.0.clone())
    }
}

impl Payload {
    /// The message of the panic.
    pub(crate) fn message(&self) -> Arc<str> {
        let payload = &**self.0;
        let text = payload.downcast_ref::<&str>().copied();
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(a panic without a message)")
            .into()
    }

    /// Resumes the unwinding with this payload, on behalf of the program's code that waits here.
    pub(crate) fn resume(self) -> ! {
        std::panic::resume_unwind(self.into_inner())
    }
}

/// Counts of the panics that no wait and no hook reports.
pub(crate) struct Panics<M: Memory> {
    drops: M::AtomicU64,
    hooks: M::AtomicU64,
}

impl<M: Memory> Panics<M> {
    pub(crate) fn new() -> Panics<M> {
        Panics {
            drops: M::AtomicU64::new(0),
            hooks: M::AtomicU64::new(0),
        }
    }

    // Relaxed, here and below: statistics publish nothing.
    pub(crate) fn add_drops(&self, panics: u64) {
        if panics > 0 {
            self.drops.fetch_add(panics, Ordering::Relaxed);
        }
    }

    /// Drops a value of the program's, outside of any lock.
    pub(crate) fn discard<T>(&self, value: UserValue<T>) {
        self.add_drops(value.discard());
    }

    /// Counts the panic, if there was one, of the drop of a job's closure or result.
    pub(crate) fn count_drop(&self, dropped: Result<(), Payload>) {
        if let Err(payload) = dropped {
            self.add_drops(1 + payload.discard());
        }
    }

    /// Calls a hook, a sink or the like. `None`: it panicked.
    pub(crate) fn call_hook<R>(&self, call: impl FnOnce() -> Result<R, Payload>) -> Option<R> {
        match call() {
            Ok(result) => Some(result),
            Err(payload) => {
                self.hooks.fetch_add(1, Ordering::Relaxed);
                self.add_drops(payload.discard());
                None
            }
        }
    }

    pub(crate) fn add_to(&self, total: &mut Stats) {
        total.drop_panics += self.drops.load(Ordering::Relaxed);
        total.hook_panics += self.hooks.load(Ordering::Relaxed);
    }
}

/// Ends the process if an unwind passes it: values that jobs still borrow would be gone, or a worker would
/// end in the middle of something.
pub(crate) struct UnwindGuard<M: Memory> {
    /// The place, for the message.
    what: &'static str,
    _memory: std::marker::PhantomData<fn() -> M>,
}

impl<M: Memory> UnwindGuard<M> {
    #[inline(always)]
    pub(crate) fn new(what: &'static str) -> UnwindGuard<M> {
        UnwindGuard {
            what,
            _memory: std::marker::PhantomData,
        }
    }

    /// Nothing unwound past the guard.
    #[inline(always)]
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<M: Memory> Drop for UnwindGuard<M> {
    fn drop(&mut self) {
        if !M::UNWINDS {
            eprintln!(
                "paceline: a bug of the job system unwinds through {}; the process ends, because what jobs \
                 borrow would be gone",
                self.what
            );
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::resume_unwind;

    use super::*;

    /// Panics in its drop with another of its kind, this many times.
    struct Bomb<'a>(&'a Cell<u32>, u32);

    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if self.1 > 0 {
                resume_unwind(Box::new(Fuse(self.1 - 1)));
            }
        }
    }

    struct Fuse(u32);

    impl Drop for Fuse {
        fn drop(&mut self) {
            if self.0 > 0 {
                resume_unwind(Box::new(Fuse(self.0 - 1)));
            }
        }
    }

    /// Goal: no drop of a value of the program's unwinds, however many panics follow from it, and each panic
    /// is counted, up to a bound. Method: values that panic with values that panic.
    #[test]
    fn drops_do_not_unwind() {
        // Miri would report a leak: the last of very many values is forgotten.
        let many = if cfg!(miri) { (7, 7) } else { (1000, 8) };
        for (depth, counted) in [(0, 0), (1, 1), (3, 3), many] {
            let drops = Cell::new(0);
            let value = UserValue::new(Bomb(&drops, depth));
            assert_eq!(value.discard(), counted);
            drop(UserValue::new(Bomb(&drops, depth)));
            assert_eq!(drops.get(), 2);
        }
    }

    /// Goal: a value that is handed to the program is not dropped here. Method: a count of drops.
    #[test]
    fn what_is_handed_back_is_not_dropped() {
        let drops = Cell::new(0);
        let back = UserValue::new(Bomb(&drops, 0)).into_inner();
        assert_eq!(drops.get(), 0);
        drop(back);
        assert_eq!(drops.get(), 1);
    }
}
