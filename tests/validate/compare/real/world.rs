//! The machine at hand, as a program sees it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use event::Nanos;
use measure::thread_cpu;
use platform::os::pthread;
use platform::{Os, Parker, Platform};
use workload::busy::Busy;

use crate::compare::world::{Mutex, World};

/// A thread that sees no time pass for this long did not run: longer than an interrupt usually takes, and
/// shorter than any stint.
const GAP: Nanos = Nanos::from_micros(30);

/// Work from this length on is counted, with a look at the clock every so often.
const COUNTED: Nanos = Nanos::from_millis(1);
const LOOK: Nanos = Nanos::from_micros(50);

/// One thread's view of the machine.
#[derive(Debug)]
pub(super) struct OsWorld {
    /// When the program began.
    pub(super) origin: Arc<AtomicU64>,
    busy: Busy,
    /// When this thread ran, as far as it computed.
    pub(super) stretches: RefCell<Vec<Stretch>>,
}

/// A time during which a thread ran without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
}

impl OsWorld {
    pub(super) fn new(busy: Busy) -> OsWorld {
        OsWorld {
            origin: Arc::new(AtomicU64::new(0)),
            busy,
            stretches: RefCell::default(),
        }
    }
}

impl Clone for OsWorld {
    /// Another thread's view: it has run for no time yet.
    fn clone(&self) -> OsWorld {
        OsWorld {
            origin: self.origin.clone(),
            busy: self.busy,
            stretches: RefCell::default(),
        }
    }
}

impl World for OsWorld {
    type Platform = Os;

    fn platform(&self) -> &Os {
        &Os
    }

    fn now(&self) -> Nanos {
        // Relaxed: it was written before the gate opened.
        Os.now() - Nanos(self.origin.load(Ordering::Relaxed))
    }

    /// Long work is CPU time, by the kernel's own count: how fast the processor happens to be does not
    /// matter. Short work is the number of steps that usually take as long.
    fn work(&self, length: Nanos) {
        let begin = if length < COUNTED { None } else { thread_cpu() };
        let mut left = length;
        while let Some(begin) = begin
            && left > LOOK
        {
            self.busy.spin_for(LOOK, left.0);
            left = length - (thread_cpu().unwrap_or(Nanos::MAX) - begin);
        }
        self.busy.spin_for(left, length.0);
    }

    fn compute_until(&self, end: Nanos) {
        let mut begin = self.now();
        let mut last = begin;
        while last < end {
            let now = self.now();
            if now - last > GAP {
                let stretch = Stretch { begin, end: last };
                self.stretches.borrow_mut().push(stretch);
                begin = now;
            }
            last = now;
        }
        self.stretches
            .borrow_mut()
            .push(Stretch { begin, end: last });
    }

    fn sleep_until(&self, time: Nanos) {
        let parker = Os.parker();
        let deadline = time + Nanos(self.origin.load(Ordering::Relaxed));
        while self.now() < time {
            parker.park(deadline);
        }
    }

    fn call(&self) {
        let word = AtomicU32::new(0);
        // SAFETY: the kernel takes the word's address for a key, and wakes one of the threads that wait at
        // it; it neither reads nor writes there. No thread waits: none but this one knows the word.
        let woken = unsafe {
            let private_wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, word.as_ptr(), private_wake, 1)
        };
        assert_eq!(woken, 0, "a futex without a waiter");
    }

    fn yields(&self) {
        std::thread::yield_now();
    }

    fn mutex(&self, inherits: bool) -> Arc<dyn Mutex> {
        Arc::new(pthread::Mutex::new(inherits).expect("Linux has both protocols"))
    }
}

impl Mutex for pthread::Mutex {
    fn lock(&self) {
        pthread::Mutex::lock(self);
    }

    fn unlock(&self) {
        // SAFETY: that the caller holds it is the contract of this trait, whose users are the programs of
        // this folder.
        unsafe { pthread::Mutex::unlock(self) };
    }
}
