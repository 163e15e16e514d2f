//! Parking on a Linux futex.
//!
//! One word: EMPTY, TOKEN (an unpark that no park has consumed) or PARKED. The word lives in the parker,
//! never in a job or on a stack, so a late wake-up touches valid memory.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use event::Nanos;

use crate::Parker;

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = u32::MAX;

/// A futex and its token.
#[derive(Debug)]
pub struct OsParker {
    state: AtomicU32,
}

impl OsParker {
    pub(super) fn new() -> OsParker {
        OsParker {
            state: AtomicU32::new(EMPTY),
        }
    }
}

impl Parker for OsParker {
    fn park(&self, deadline: Nanos) {
        // TOKEN → EMPTY or EMPTY → PARKED. Acquire, partner: the Release swap in `unpark`. What the
        // waker wrote before is visible after.
        if self.state.fetch_sub(1, Ordering::Acquire) == TOKEN {
            return;
        }
        futex_wait(&self.state, PARKED, deadline);
        // Whatever the reason for waking up, the next park starts from EMPTY. Acquire as above.
        self.state.swap(EMPTY, Ordering::Acquire);
    }

    fn unpark(&self) -> bool {
        // Release, partner: the Acquire in `park`.
        let parked = self.state.swap(TOKEN, Ordering::Release) == PARKED;
        if parked {
            futex_wake(&self.state);
        }
        parked
    }
}

/// Waits while `word` holds `expected`, until `deadline` at the latest. May return early.
fn futex_wait(word: &AtomicU32, expected: u32, deadline: Nanos) {
    let time = libc::timespec {
        tv_sec: (deadline.0 / 1_000_000_000) as _,
        tv_nsec: (deadline.0 % 1_000_000_000) as _,
    };
    let timeout = if deadline == Nanos::MAX {
        ptr::null()
    } else {
        &raw const time
    };
    // SAFETY: the word outlives the call because the caller borrows the parker; the timeout is null
    // or points to a live timespec. FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            ptr::from_ref(word),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout,
            ptr::null::<u32>(),
            !0u32,
        )
    };
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE does not read the word; the address is that of a live parker.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            ptr::from_ref(word),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}
