//! Mutexes whose protocol can be chosen, which std's cannot: `PTHREAD_PRIO_INHERIT` is a PI futex.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::compare::world::Mutex;

/// A mutex of the C library, at an address that does not change.
pub(super) struct PthreadMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made for being used by several threads; it is reached only by the functions of
// the C library.
unsafe impl Send for PthreadMutex {}
// SAFETY: as above.
unsafe impl Sync for PthreadMutex {}

impl PthreadMutex {
    /// A free mutex; its holder inherits priorities, or not.
    ///
    /// # Panics
    /// If the C library refuses: no memory, or no such protocol.
    pub(super) fn new(inherits: bool) -> PthreadMutex {
        let protocol = match inherits {
            true => libc::PTHREAD_PRIO_INHERIT,
            false => libc::PTHREAD_PRIO_NONE,
        };
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialized by the first call and destroyed by the last; the mutex is
        // writable, initialized by the third call before anybody uses it, and never moves.
        unsafe {
            assert_eq!(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), 0);
            let set = libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol);
            assert_eq!(set, 0, "no such protocol of mutexes");
            assert_eq!(
                libc::pthread_mutex_init(mutex.get(), attributes.as_ptr()),
                0
            );
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        }
        PthreadMutex(mutex)
    }
}

impl Mutex for PthreadMutex {
    fn lock(&self) {
        // SAFETY: `new` initialized it, and only `drop` destroys it.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }

    fn unlock(&self) {
        // SAFETY: as above; that the caller holds it is the contract of `unlock`, and the C library
        // refuses where the kernel knows better.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }
}

impl Drop for PthreadMutex {
    fn drop(&mut self) {
        // SAFETY: `new` initialized it; nobody else has it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Goal: both kinds exclude each other's holders. Method: two threads add with a load and a store that
    /// would lose additions otherwise.
    #[test]
    fn both_kinds_exclude() {
        for inherits in [false, true] {
            let (mutex, sum) = (PthreadMutex::new(inherits), AtomicU64::new(0));
            let add = || {
                for _ in 0..20_000 {
                    mutex.lock();
                    sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    mutex.unlock();
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(add);
                scope.spawn(add);
            });
            assert_eq!(sum.into_inner(), 40_000);
        }
    }
}
