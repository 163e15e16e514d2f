//! Events: jobs that the program completes by itself.

use std::ffi::c_char;

use crate::described::{must_be, or_nothing, put};
use crate::jobs::pl_job;
use crate::names::name_of;
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{OpenEvent, named, pl_system};

/// Makes an event: a job without a body that ends when pl_event_complete was called for it `count` times, by
/// any threads. 0 counts as 1. Jobs wait for it as for any job. An event that is never completed keeps them
/// waiting; pl_event_abandon gives it up. Takes a lock and allocates.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_event_create(
    system: *mut pl_system,
    name: *const c_char,
    count: usize,
    out: *mut pl_job,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, name_of(name, "event")?) };
        let js = system.js()?;
        let left = count.max(1);
        let latch = js.job(name.as_str()).try_latch(left)?;
        let event = system.number(js, latch.id());
        system
            .lock(&system.events)?
            .insert(event, OpenEvent { latch, left });
        // SAFETY: the caller's promise.
        unsafe { put(out, event) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Completes an event, or counts it down by one. What the thread has done before is visible to the jobs that
/// wait for it. PL_TOO_LATE if it is complete already. Takes a lock; wakes a worker if a job becomes ready.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_event_complete(system: *mut pl_system, event: pl_job) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        // What waits for it is released outside of the lock: it may run here and complete other events.
        let latch = {
            let mut events = system.lock(&system.events)?;
            let open = events.get_mut(&event).ok_or_else(|| over(system, event))?;
            open.left -= 1;
            if open.left > 0 {
                open.latch.clone()
            } else {
                let last = events.remove(&event);
                last.ok_or_else(|| over(system, event))?.latch
            }
        };
        latch.complete_one();
        Ok(pl_status::PL_OK)
    })
}

/// Gives up an event that will not be completed: waits for it say PL_ABANDONED, and the jobs that wait for it
/// are cancelled. PL_TOO_LATE if it is complete.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_event_abandon(system: *mut pl_system, event: pl_job) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        let open = system.lock(&system.events)?.remove(&event);
        drop(open.ok_or_else(|| over(system, event))?);
        Ok(pl_status::PL_OK)
    })
}

/// Says that `job` is going to complete `event`, itself or by what it makes. Waits for the event then run
/// that job, if it is ready, and make it as urgent as the waiter; a wait that can never end because of it
/// is PL_DEADLOCK. It changes nothing about when the event is complete. PL_INVALID if `event` has a body.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_add_completer(
    system: *mut pl_system,
    event: pl_job,
    job: pl_job,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let js = system.js()?;
        js.add_completer(system.id(event)?, system.id(job)?)?;
        Ok(pl_status::PL_OK)
    })
}

/// Why there is no such open event.
fn over(system: &'static pl_system, event: pl_job) -> Refusal {
    let known: Answer<_> = system.id(event);
    known.err().unwrap_or_else(|| {
        Refusal::new(
            pl_status::PL_TOO_LATE,
            format!("{event:#x} is not an open event: it is complete, was given up, or is a job with a body"),
        )
    })
}
