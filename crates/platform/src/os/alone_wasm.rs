//! Rests of the only thread there can ever be, at which std's condition variables panic. In WebAssembly a
//! thread is the only one, unless the module's memory can be shared or WASI starts threads. The compiler does
//! not tell such a WASI from others, so a thread is tried.

use std::io::ErrorKind;
use std::sync::OnceLock;

use event::Nanos;

use super::system_clock;

/// Rests until `deadline` if no other thread can ever wake this one; false if that is not certain.
///
/// # Panics
/// If there is no deadline: such a rest would never end.
pub(super) fn rest(deadline: Nanos) -> bool {
    if !is_certain() {
        return false;
    }
    assert!(
        deadline != Nanos::MAX,
        "this wait can never end: it is up to another thread, and this system has none; complete the event \
         before, or wait with a timeout"
    );
    system_clock::sleep_until(deadline);
    true
}

/// Whether the calling thread is the only one there can ever be.
pub(super) fn is_certain() -> bool {
    static CERTAIN: OnceLock<bool> = OnceLock::new();
    let is_shared = cfg!(target_feature = "atomics");
    !is_shared
        && *CERTAIN.get_or_init(|| {
            let tried = std::thread::Builder::new().spawn(|| ());
            // Other errors are limits, which other threads may have reached.
            tried.is_err_and(|error| error.kind() == ErrorKind::Unsupported)
        })
}
