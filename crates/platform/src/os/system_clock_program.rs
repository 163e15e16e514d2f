//! A system without a clock, where std's panics: WebAssembly that no WASI is below. The program may have one.

use std::time::Duration;

use event::Nanos;

use super::program_clock::ProgramClock;

static CLOCK: ProgramClock = ProgramClock::new();

pub(super) fn now() -> u64 {
    CLOCK.now()
}

pub(super) fn set(clock: fn() -> Duration) -> bool {
    CLOCK.set(clock)
}

/// Does nothing until `deadline`.
pub(super) fn sleep_until(deadline: Nanos) {
    CLOCK.pass_until(deadline.0);
}
