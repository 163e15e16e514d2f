//! Numbers for job systems that are never handed out twice in one process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number no other job system of this process has had or will have, whatever platform it runs on.
///
/// It is what makes a handle of one job system a reported error, and not a wild access, in another.
///
/// # Panics
/// After four thousand million calls.
pub fn fresh_pool_id() -> NonZeroU32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: only the uniqueness of the value matters.
    let id = NEXT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1))
        .expect("fewer than 2^32 job systems in one process");
    NonZeroU32::new(id).expect("counting starts at 1")
}
