//! Counting passes through the child side of `fork`.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

static WATCH: Once = Once::new();

/// Starts counting at the first call. Relaxed: the only writer is the child's single thread, before
/// anything else runs there.
#[inline]
pub(super) fn epoch() -> u32 {
    if !WATCH.is_completed() {
        watch();
    }
    EPOCH.load(Ordering::Relaxed)
}

#[cold]
fn watch() {
    // SAFETY: the handler does one atomic addition, which is async-signal-safe. Failure (out of
    // memory) leaves fork undetected, as it would be without the handler.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}
