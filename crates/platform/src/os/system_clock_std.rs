//! The system's monotonic clock, as std offers it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[cfg(target_os = "wasi")]
use event::Nanos;

pub(super) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The system has a clock: another one is not taken.
pub(super) fn set(_clock: fn() -> Duration) -> bool {
    false
}

/// Does nothing until `deadline`.
#[cfg(target_os = "wasi")]
pub(super) fn sleep_until(deadline: Nanos) {
    std::thread::sleep(Duration::from(deadline - Nanos(now())));
}
