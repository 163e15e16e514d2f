//! The checks as a module without imports: what a host calls, and how it learns what went wrong.

use std::sync::Mutex;

use crate::{run, run_without_threads};

/// What the checks had to say. A panic ends the module's call; its message stays here.
static SAID: Mutex<String> = Mutex::new(String::new());

fn say(text: String) {
    if let Ok(mut said) = SAID.lock() {
        *said = text;
    }
}

/// Runs all checks. A check that fails ends the call with a trap.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn check() {
    std::panic::set_hook(Box::new(|panic| say(panic.to_string())));
    run_without_threads();
    say(run());
}

/// Where the text is that the checks left.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn said() -> *const u8 {
    SAID.lock().map_or(std::ptr::null(), |said| said.as_ptr())
}

/// The number of its bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn said_bytes() -> usize {
    SAID.lock().map_or(0, |said| said.len())
}
