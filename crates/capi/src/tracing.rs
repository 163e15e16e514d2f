//! Traces for Perfetto.

use std::ffi::c_char;

use crate::described::{put, text};
use crate::status::{Refusal, call, pl_status, told};
use crate::system::{named, pl_system};

/// Begins to record jobs, waits and frames into a file that ui.perfetto.dev and `paceline diagnose` open.
/// Starts a thread. One trace at a time.
///
/// # Safety
/// `system` was made by pl_system_create. `path` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_trace_start(system: *mut pl_system, path: *const c_char) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let (system, path) = unsafe { (named(system)?, text(path, "the path")?) };
        let path = path.ok_or_else(|| Refusal::invalid("the path is a null pointer"))?;
        let trace = system.js()?.start_trace(path)?;
        *system.lock(&system.trace)? = Some(trace);
        Ok(pl_status::PL_OK)
    })
}

/// Ends the recording and writes the file. `*lost` is how many events had no room, which the file says, too.
/// PL_TOO_LATE if nothing is being recorded. Blocks while it writes.
///
/// # Safety
/// `system` was made by pl_system_create. `events` and `lost` are null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_trace_finish(
    system: *mut pl_system,
    events: *mut u64,
    lost: *mut u64,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        let trace = system.lock(&system.trace)?.take().ok_or_else(|| {
            Refusal::new(
                pl_status::PL_TOO_LATE,
                told(&"no trace is being recorded: pl_trace_start begins one"),
            )
        })?;
        let traced = trace.finish()?;
        // SAFETY: the caller's promise.
        unsafe {
            put(events, traced.events);
            put(lost, traced.lost);
        }
        Ok(pl_status::PL_OK)
    })
}
