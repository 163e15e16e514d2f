//! Frames, spans of time with a deadline.

use std::ffi::c_char;

use paceline::Frame;

use crate::described::{must_be, or_nothing, put};
use crate::names::name_of;
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{fresh_number, named, pl_system, time};

/// The number of an open frame. Nothing else of the process has it, ever, but jobs. Zero is none.
pub type pl_frame = u64;

/// Begins a frame that is to be over in so many nanoseconds. It is counted as missed if it is not, and a
/// trace shows it. The job system looks at the machine at this moment, now and then.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_frame_begin(
    system: *mut pl_system,
    name: *const c_char,
    budget_nanoseconds: u64,
    out: *mut pl_frame,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, name_of(name, "frame")?) };
        let frame = system.js()?.frame(name.as_str(), time(budget_nanoseconds));
        let number = fresh_number();
        system.lock(&system.frames)?.insert(number, frame);
        // SAFETY: the caller's promise.
        unsafe { put(out, number) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Ends a frame. It waits for nothing: wait for the frame's jobs before.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_frame_end(system: *mut pl_system, frame: pl_frame) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        let open = system.lock(&system.frames)?.remove(&frame);
        drop(open.ok_or_else(|| unknown(frame))?);
        Ok(pl_status::PL_OK)
    })
}

/// How many nanoseconds a frame has left before its deadline; 0 if it is over.
///
/// # Safety
/// `system` was made by pl_system_create. `nanoseconds` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_frame_remaining(
    system: *mut pl_system,
    frame: pl_frame,
    nanoseconds: *mut u64,
) -> pl_status {
    call(|| {
        must_be(nanoseconds, "nanoseconds")?;
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        let remaining = in_frame(system, frame, |frame| frame.remaining())?;
        let remaining = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the caller's promise.
        unsafe { put(nanoseconds, remaining) };
        Ok(pl_status::PL_OK)
    })
}

/// Calls `f` with an open frame.
pub(crate) fn in_frame<R>(
    system: &pl_system,
    frame: pl_frame,
    f: impl FnOnce(&Frame<'static>) -> R,
) -> Answer<R> {
    let frames = system.lock(&system.frames)?;
    let open = frames.get(&frame).ok_or_else(|| unknown(frame))?;
    Ok(f(open))
}

fn unknown(frame: pl_frame) -> Refusal {
    Refusal::new(
        pl_status::PL_UNKNOWN,
        format!("{frame} is not the number of an open frame of this job system"),
    )
}
