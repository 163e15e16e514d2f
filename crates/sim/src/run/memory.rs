//! Simulated memory. Atomics are sequentially consistent: all simulated threads share one OS
//! thread, every access sees the last write, and preemption happens only at facade calls. Weak
//! memory is not explored here; a missing fence or a `Relaxed` that should be `Acquire` is found by
//! the model checker or not at all.
//!
//! Outside a simulated thread (before and after a run) everything works as on the OS, without a
//! step: the words are std's and take the orderings they are given.
//!
//! Invariant: the operation follows its step with no suspension in between, so it happens at the
//! moment the kernel chose; a write wakes the spinners before the writer can be switched out.

use std::cell::UnsafeCell;
use std::sync::atomic::{self, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::panicking;

use event::Nanos;
use platform::{Atomic, Lock, Memory, Poll, SharedCell};

use super::ambient;
use super::engine::{Engine, Op, die};
use super::tag::Tag;
use crate::Sim;
use crate::lines::Access;
use crate::report::On;

/// How long a loop spins before its next look is simulated by itself, if the word is not written. Assumed:
/// short against a tick and a wake-up.
const SPIN: Nanos = Nanos::from_micros(1);
/// How long a pause instruction takes: 140 cycles on Intel's CPUs since Skylake.
const PAUSE: Nanos = Nanos(45);

macro_rules! sim_atomic {
    ($name:ident, $std:ty, $int:ty) => {
        /// A word; each access is a step of the simulated thread.
        #[derive(Debug)]
        pub struct $name {
            tag: Tag,
            value: $std,
        }

        impl $name {
            #[inline]
            fn rmw(&self, change: impl FnOnce(&$std) -> $int) -> $int {
                access(Op::Rmw, &self.tag, Access::Modify);
                let before = change(&self.value);
                wake_spinners(&self.tag);
                before
            }
        }

        impl Atomic<$int> for $name {
            #[track_caller]
            fn new(value: $int) -> Self {
                Self {
                    tag: placed(size_of::<$int>() as u32),
                    value: <$std>::new(value),
                }
            }
            #[inline]
            fn load(&self, order: Ordering) -> $int {
                access(Op::Load, &self.tag, Access::Read);
                self.value.load(order)
            }
            #[inline]
            fn store(&self, value: $int, order: Ordering) {
                access(Op::Store, &self.tag, Access::Write);
                self.value.store(value, order);
                wake_spinners(&self.tag);
            }
            #[inline]
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.swap(value, order))
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                access(Op::Rmw, &self.tag, Access::Modify);
                let exchanged = self.value.compare_exchange(current, new, success, failure);
                if exchanged.is_ok() {
                    wake_spinners(&self.tag);
                }
                exchanged
            }
            #[inline]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.fetch_add(value, order))
            }
            #[inline]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.fetch_sub(value, order))
            }
            #[inline]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.fetch_and(value, order))
            }
            #[inline]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.fetch_or(value, order))
            }
            #[inline]
            fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.rmw(|word| word.fetch_max(value, order))
            }
        }
    };
}

sim_atomic!(SimAtomicU32, atomic::AtomicU32, u32);
sim_atomic!(SimAtomicU64, atomic::AtomicU64, u64);

/// The name of a word of this many bytes. Inside of [`platform::Memory::on_own_lines`] it is that of the line
/// the word lies on; elsewhere the word gets a line of its own when it is first used.
#[track_caller]
#[inline]
fn placed(bytes: u32) -> Tag {
    let tag = Tag::new();
    if let Some((run, line)) = ambient::with(|engine| engine.place(bytes)).flatten() {
        tag.set_name(run, line);
    }
    tag
}

#[inline]
fn access(op: Op, tag: &Tag, access: Access) {
    ambient::with(|engine| engine.access(op, tag, access));
}

#[inline]
fn wake_spinners(tag: &Tag) {
    if tag.has_waiters() {
        ambient::with(|engine| engine.wake_waiters(tag));
    }
}

impl SimAtomicU64 {
    fn spin_inside(&self, engine: &Engine, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        let mut has_spun = false;
        loop {
            engine.access(Op::Spin, &self.tag, Access::Read);
            // Acquire, here and below, as the trait promises; the partner is the store of the value that is
            // waited for.
            let value = self.value.load(Ordering::Acquire);
            if wanted(value) || panicking() {
                return value;
            }
            if engine.now() >= deadline {
                if !has_spun {
                    engine.waited_in_vain();
                }
                return value;
            }
            if engine.returns_spuriously() {
                engine.access(Op::Wake, &self.tag, Access::Read);
                return self.value.load(Ordering::Acquire);
            }
            let on = On::Word {
                id: engine.id(&self.tag),
                made_at: self.tag.made_at(),
            };
            engine.spin(on, &self.tag, deadline);
            has_spun = true;
        }
    }

    /// One turn of a naive loop that looks at this word: until the line is written, or for a while. No other
    /// program runs between a look and the turn that follows it at once, so such a loop misses no write,
    /// however long the while is. A loop that looks at other words too looks at them once in a while.
    pub(crate) fn poll_inside(&self, engine: &Engine, kind: Poll) {
        if panicking() {
            return;
        }
        let now = engine.now();
        let until = match kind {
            // Operations cost no time there, so the turn has to last until something can be different.
            _ if engine.explores() => engine.with_kernel(|kernel| kernel.next_moment()),
            Poll::Yield => return engine.yields(),
            Poll::Spin => now + SPIN,
            Poll::Pause => now + PAUSE,
        };
        let on = On::Word {
            id: engine.id(&self.tag),
            made_at: self.tag.made_at(),
        };
        engine.spin(on, &self.tag, until);
    }
}

/// Plain memory; an access is not a step.
#[derive(Debug)]
#[repr(transparent)]
pub struct SimCell<T>(UnsafeCell<T>);

impl<T> SharedCell<T> for SimCell<T> {
    #[inline]
    fn new(value: T) -> Self {
        SimCell(UnsafeCell::new(value))
    }
    #[inline]
    unsafe fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    #[inline]
    unsafe fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A lock that blocks simulated threads. Its holder can be switched out inside, so contention and
/// deadlocks happen.
#[derive(Debug)]
pub struct SimLock<T> {
    tag: Tag,
    /// Run (upper half) and thread + 1 of the holder; 0 if the lock is free. A stamp of a run that is over:
    /// the holder was left behind and will never give it back.
    holder: AtomicU64,
    value: Mutex<T>,
}

impl<T> SimLock<T> {
    fn acquire(&self, engine: &Engine) {
        engine.access(Op::Lock, &self.tag, Access::Modify);
        let me = u64::from(engine.run) << 32 | u64::from(engine.me().0 + 1);
        loop {
            // Relaxed: the threads of a run share an OS thread.
            let holder = self.holder.load(Ordering::Relaxed);
            if holder == 0 {
                break;
            }
            let held_by = (holder as u32 - 1) as usize;
            assert!((holder >> 32) as u32 == engine.run, "{LEFT_BEHIND}");
            assert!(
                holder != me,
                "thread {held_by} takes a lock that it holds already"
            );
            if panicking() {
                die("a panicking thread takes a lock whose holder can then never run");
            }
            let (id, made_at) = (engine.id(&self.tag), self.tag.made_at());
            engine.block(
                On::Lock {
                    id,
                    made_at,
                    held_by,
                },
                Some(&self.tag),
                Nanos::MAX,
            );
        }
        self.holder.store(me, Ordering::Relaxed);
    }
}

const LEFT_BEHIND: &str = "the lock is held by a thread of a run that was stopped";

/// Gives the lock back, even if the caller's function panics.
struct Release<'a, T>(&'a SimLock<T>);

impl<T> Drop for Release<'_, T> {
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Relaxed);
        wake_spinners(&self.0.tag);
    }
}

impl<T: Send> Lock<T> for SimLock<T> {
    #[track_caller]
    fn new(value: T) -> Self {
        SimLock {
            tag: Tag::new(),
            holder: AtomicU64::new(0),
            value: Mutex::new(value),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let release = ambient::with(|engine| {
            self.acquire(engine);
            Release(self)
        });
        if release.is_none() {
            assert!(self.holder.load(Ordering::Relaxed) == 0, "{LEFT_BEHIND}");
        }
        // Among the threads of a run the mutex is free now; on the way out it is given back before
        // `release` is dropped. A panic inside leaves the value as it was between two statements.
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut value)
    }
}

// SAFETY: every operation is done by std's atomic with the ordering it was asked for, and all
// threads of a run share an OS thread, which makes each access see the last write; the mutex inside
// a lock excludes. The keepers are std and `ambient`, which binds a engine to its OS thread.
unsafe impl Memory for Sim {
    type AtomicU32 = SimAtomicU32;
    type AtomicU64 = SimAtomicU64;
    type Cell<T> = SimCell<T>;
    type Lock<T: Send> = SimLock<T>;

    fn fence(order: Ordering) {
        ambient::with(|engine| engine.step(Op::Fence, None, |kernel| kernel.spend(Nanos::ZERO)));
        atomic::fence(order);
    }

    fn on_own_lines<R>(make: impl FnOnce() -> R) -> R {
        let outer = ambient::with(Engine::open_lines);
        let made = make();
        if let Some(outer) = outer {
            ambient::with(|engine| engine.close_lines(outer));
        }
        made
    }

    fn spin_until(word: &SimAtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        let spun = ambient::with(|engine| word.spin_inside(engine, wanted, deadline));
        // Outside a simulated thread there is no other thread to wait for; returning early is allowed.
        spun.unwrap_or_else(|| word.value.load(Ordering::Acquire))
    }
}
