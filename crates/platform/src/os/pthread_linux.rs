//! Mutexes whose protocol can be chosen, which std's cannot: with `PTHREAD_PRIO_INHERIT` (a PI futex) the
//! kernel lends the holder the priority of the threads that wait. For experiments and tests. The job system
//! has no use for one.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// A mutex of the C library, at an address that does not change.
#[derive(Debug)]
pub struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made for being used by several threads; it is reached only by the functions of
// the C library.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

fn done(code: libc::c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

impl Mutex {
    /// A free mutex; its holder inherits priorities, or not.
    ///
    /// ```
    /// use paceline_platform::os::pthread::Mutex;
    /// # if cfg!(target_os = "linux") {
    /// let mutex = Mutex::new(true)?;
    /// assert_eq!(mutex.with(|| 7), 7);
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the C library refuses: no memory, or no such protocol.
    pub fn new(inherits: bool) -> io::Result<Mutex> {
        let protocol = if inherits {
            libc::PTHREAD_PRIO_INHERIT
        } else {
            libc::PTHREAD_PRIO_NONE
        };
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the first call writes to the live value passed to it and nothing else.
        done(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: the attributes were initialized above and are destroyed by the last call; the mutex is
        // writable, initialized by the second call before any other use, and never moves.
        let made = unsafe {
            let set = libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol);
            let made = done(set).and_then(|()| {
                let made = libc::pthread_mutex_init(mutex.get(), attributes.as_ptr());
                done(made)
            });
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            made
        };
        made.map(|()| Mutex(mutex))
    }

    /// Takes it, waiting for it while another thread holds it. A thread that holds it and takes it again
    /// waits for ever.
    ///
    /// # Panics
    /// If the kernel refuses, as it does where priorities are lent in a circle.
    pub fn lock(&self) {
        // SAFETY: `new` initialized it, and only `drop` destroys it.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The calling thread holds it, by [`lock`](Mutex::lock).
    pub unsafe fn unlock(&self) {
        // SAFETY: `new` initialized it; that the caller holds it is the contract of this function.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }

    /// Calls `held` while the caller holds it.
    ///
    /// # Panics
    /// As [`lock`](Mutex::lock), and if `held` does; the mutex is free again then.
    pub fn with<R>(&self, held: impl FnOnce() -> R) -> R {
        struct Held<'a>(&'a Mutex);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                // SAFETY: `with` has taken it on this thread, which cannot give it back in between without
                // saying that it holds it.
                unsafe { self.0.unlock() };
            }
        }
        self.lock();
        let _until_the_end = Held(self);
        held()
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: `new` initialized it; no other thread has it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Goal: both kinds exclude each other's holders. Method: two threads add with a load and a store that
    /// would lose additions otherwise.
    #[test]
    fn both_kinds_exclude() {
        let each = if cfg!(miri) { 200 } else { 20_000 };
        for inherits in [false, true] {
            let (mutex, sum) = (Mutex::new(inherits).unwrap(), AtomicU64::new(0));
            let add = || {
                for _ in 0..each {
                    // Relaxed: the mutex orders them.
                    mutex.with(|| sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(add);
                scope.spawn(add);
            });
            assert_eq!(sum.into_inner(), 2 * each);
        }
    }
}
