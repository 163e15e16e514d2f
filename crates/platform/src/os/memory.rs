//! std's atomics behind the facade. Each method is one instruction wide and inlined: the generic
//! deque compiles to the code one would write by hand.

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::Nanos;

use super::{Os, clock};
use crate::memory::{Atomic, Lock, Memory, SharedCell};

macro_rules! std_atomic {
    ($name:ident, $std:ty, $int:ty) => {
        /// std's atomic of this width.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($std);

        impl Atomic<$int> for $name {
            #[inline(always)]
            fn new(value: $int) -> Self {
                Self(<$std>::new(value))
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $int {
                self.0.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $int, order: Ordering) {
                self.0.store(value, order)
            }
            #[inline(always)]
            fn swap(&self, value: $int, order: Ordering) -> $int {
                self.0.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_sub(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_and(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_or(value, order)
            }
            #[inline(always)]
            fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.0.fetch_max(value, order)
            }
        }
    };
}

std_atomic!(StdAtomicU32, AtomicU32, u32);
std_atomic!(StdAtomicU64, AtomicU64, u64);

/// A cell that is nothing but its memory.
#[derive(Debug)]
#[repr(transparent)]
pub struct StdCell<T>(UnsafeCell<T>);

impl<T> SharedCell<T> for StdCell<T> {
    #[inline(always)]
    fn new(value: T) -> Self {
        StdCell(UnsafeCell::new(value))
    }
    #[inline(always)]
    unsafe fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    #[inline(always)]
    unsafe fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// std's mutex beside the value, so that to lock and to unlock is the same code for values of all types. It
/// is called, not inlined: no hot path takes a lock.
#[derive(Debug)]
pub struct OsLock<T> {
    mutex: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached in `with` alone, by one thread at a time.
unsafe impl<T: Send> Sync for OsLock<T> {}

impl<T: Send> Lock<T> for OsLock<T> {
    fn new(value: T) -> Self {
        OsLock {
            mutex: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _held = HeldLock::new(&self.mutex);
        // SAFETY: the mutex is held until after the last use of this reference, and nothing else makes one.
        f(unsafe { &mut *self.value.get() })
    }
}

struct HeldLock<'a>(ManuallyDrop<MutexGuard<'a, ()>>);

impl<'a> HeldLock<'a> {
    #[inline(never)]
    fn new(mutex: &'a Mutex<()>) -> HeldLock<'a> {
        // A panic inside leaves the value as it was between two statements; every user of the lock
        // makes changes that are complete at each step.
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        HeldLock(ManuallyDrop::new(guard))
    }
}

impl Drop for HeldLock<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// Pauses between two looks at the clock while spinning: at the longest known pause (about 45 ns)
/// the deadline is overrun by less than half a microsecond.
const PAUSES_PER_LOOK: u32 = 8;

// SAFETY: std's atomics and mutexes implement the C11 model; `fence` is at least a SeqCst fence
// wherever one is asked for (see `full_fence`).
unsafe impl Memory for Os {
    type AtomicU32 = StdAtomicU32;
    type AtomicU64 = StdAtomicU64;
    type Cell<T> = StdCell<T>;
    type Lock<T: Send> = OsLock<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        match order {
            Ordering::SeqCst => full_fence(),
            weaker => core::sync::atomic::fence(weaker),
        }
    }

    #[inline(always)]
    fn prefetch<T>(value: &T) {
        const LINE: usize = 64;
        let first = core::ptr::from_ref(value).cast::<u8>();
        prefetch_for_write(first);
        if size_of::<T>() > LINE {
            prefetch_for_write(first.wrapping_add(LINE));
        }
    }

    /// Its loads are Acquire, as the trait promises. Their partner is the store that is waited for.
    fn spin_until(word: &StdAtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        loop {
            for _ in 0..PAUSES_PER_LOOK {
                let value = word.load(Ordering::Acquire);
                if wanted(value) {
                    return value;
                }
                core::hint::spin_loop();
            }
            if clock::now() >= deadline {
                return word.load(Ordering::Acquire);
            }
        }
    }
}

/// On x86 the write form takes the line away from its last owner at once, which saves the second
/// transfer that a read followed by an atomic operation would need.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_for_write(line: *const u8) {
    // SAFETY: a prefetch never faults, whatever the address, and CPUs without it ignore it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
    };
}

/// As above; the hint of the architecture.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
fn prefetch_for_write(line: *const u8) {
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
    };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline(always)]
fn prefetch_for_write(_line: *const u8) {}

/// Orders all earlier accesses before all later ones.
///
/// On x86 a locked instruction on the stack is a full barrier and takes about half the time of the
/// `mfence` that a SeqCst fence compiles to; hot paths execute one fence per published job.
#[cfg(all(target_arch = "x86_64", not(miri), not(paceline_tsan)))]
#[inline(always)]
fn full_fence() {
    // SAFETY: or-ing zero into the word at the stack pointer changes nothing; memory is clobbered
    // by default, so the compiler does not move accesses across it.
    unsafe { core::arch::asm!("lock or dword ptr [rsp], 0") };
}

/// As above where the compiler's own fence is the best there is. SeqCst, partner: every other one.
#[cfg(all(not(paceline_tsan), any(not(target_arch = "x86_64"), miri)))]
#[inline(always)]
fn full_fence() {
    core::sync::atomic::fence(Ordering::SeqCst);
}

/// ThreadSanitizer does not understand fences; it does understand a read-modify-write of a common
/// word, which orders the same accesses. SeqCst, partner: every other one, by way of that word.
#[cfg(paceline_tsan)]
fn full_fence() {
    static DUMMY: AtomicU32 = AtomicU32::new(0);
    DUMMY.fetch_add(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one thread at a time is inside of a lock, and a panic inside leaves it to the others. Method:
    /// threads count in two steps, and each panics once inside.
    #[test]
    fn a_lock_lets_one_in_at_a_time_and_outlives_panics() {
        const THREADS: u32 = 4;
        const COUNTS: u32 = if cfg!(miri) { 20 } else { 2_000 };
        let lock = OsLock::new((0, 0));
        let count = || {
            lock.with(|(first, second)| {
                assert_eq!(first, second, "another thread is inside");
                *first += 1;
                *second += 1;
            });
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for step in 0..COUNTS {
                        count();
                        if step == COUNTS / 2 {
                            let inside = || lock.with(|_| std::panic::resume_unwind(Box::new(())));
                            let raised: Result<(), _> =
                                std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside));
                            assert!(raised.is_err());
                        }
                    }
                });
            }
        });
        let all = THREADS * COUNTS;
        assert_eq!(lock.with(|counts| *counts), (all, all));
    }
}
