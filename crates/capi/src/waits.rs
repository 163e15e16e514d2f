//! Waits, and what a thread does for the job system without waiting.

use paceline::JobSystem;

use crate::described::{must_be, put};
use crate::groups::pl_group;
use crate::jobs::pl_job;
use crate::status::{Answer, call, pl_status};
use crate::system::{named, pl_system, time};

/// Waits until a job has ended. Meanwhile the thread runs it and the jobs that it waits for, and nothing
/// else; where there are no workers it runs others, too, when none of these is ready. Makes all jobs of this
/// thread known to the workers before. PL_FAILED or another status says why the job did not end well. In a
/// job it may be called, too; PL_DEADLOCK if the job waits for the one that calls.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_wait(system: *mut pl_system, job: pl_job) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?.try_wait(system.id(job)?)?;
        Ok(pl_status::PL_OK)
    })
}

/// As pl_wait, for so many nanoseconds at most: PL_TIMEOUT if the job has not ended then. A body that the
/// thread has begun to run is not broken off; there are such bodies in a job, and where there are no workers.
/// 0 does not wait, but then it may run something, too: pl_is_done only looks.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_wait_timeout(
    system: *mut pl_system,
    job: pl_job,
    nanoseconds: u64,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let has_ended = system
            .js()?
            .wait_timeout(system.id(job)?, time(nanoseconds))?;
        Ok(if has_ended {
            pl_status::PL_OK
        } else {
            pl_status::PL_TIMEOUT
        })
    })
}

/// As pl_wait, for a job of this group or another one. Meanwhile the thread may run the jobs of the group,
/// besides those that the job waits for. Takes a short lock.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_group_wait(
    system: *mut pl_system,
    group: pl_group,
    job: pl_job,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.group(group)?.try_wait(system.id(job)?)?;
        Ok(pl_status::PL_OK)
    })
}

/// As pl_group_wait, for so many nanoseconds at most: PL_TIMEOUT if the job has not ended then. As in
/// pl_wait_timeout, a thread of the program runs nothing meanwhile, unless there are no workers.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_group_wait_timeout(
    system: *mut pl_system,
    group: pl_group,
    job: pl_job,
    nanoseconds: u64,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let group = system.group(group)?;
        let has_ended = group.wait_timeout(system.id(job)?, time(nanoseconds))?;
        Ok(if has_ended {
            pl_status::PL_OK
        } else {
            pl_status::PL_TIMEOUT
        })
    })
}

/// Whether a job has ended, well or not: `*done` is 1, else 0. Costs some nanoseconds.
///
/// # Safety
/// `system` was made by pl_system_create. `done` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_is_done(
    system: *mut pl_system,
    job: pl_job,
    done: *mut i32,
) -> pl_status {
    call(|| {
        must_be(done, "done")?;
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let is_done = system.js()?.is_done(system.id(job)?);
        // SAFETY: the caller's promise.
        unsafe { put(done, i32::from(is_done)) };
        Ok(pl_status::PL_OK)
    })
}

/// Makes all jobs of this thread known to the workers, also those scheduled with `quiet`. Each wait does it.
/// Where there are no workers it runs all jobs that are ready.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_flush(system: *mut pl_system) -> pl_status {
    // SAFETY: the caller's promise.
    call(|| unsafe { with(system, |js| js.flush()) })
}

/// Runs one job that is ready, if there is one: `*ran` is 1, else 0. For a thread that has nothing else to
/// do.
///
/// # Safety
/// `system` was made by pl_system_create. `ran` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_poll(system: *mut pl_system, ran: *mut i32) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let has_run = unsafe { named(system) }?.entered()?.poll();
        // SAFETY: the caller's promise.
        unsafe { put(ran, i32::from(has_run)) };
        Ok(pl_status::PL_OK)
    })
}

/// Runs jobs that are ready until there are none, or until so many nanoseconds are over; `*ran` is how many.
///
/// # Safety
/// `system` was made by pl_system_create. `ran` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_pump(
    system: *mut pl_system,
    nanoseconds: u64,
    ran: *mut usize,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let count = unsafe { named(system) }?.entered()?.pump(time(nanoseconds));
        // SAFETY: the caller's promise.
        unsafe { put(ran, count) };
        Ok(pl_status::PL_OK)
    })
}

/// Prepares for so many live jobs, so that the first call of this thread costs no more than its thousandth:
/// nothing is allocated later for jobs whose data fit into them. For audio threads, before they begin.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_warm_up(system: *mut pl_system, jobs: usize) -> pl_status {
    // SAFETY: the caller's promise.
    call(|| unsafe { with(system, |js| js.warm_up(jobs)) })
}

/// # Safety
/// `system` was made by pl_system_create.
unsafe fn with(system: *mut pl_system, what: impl FnOnce(&JobSystem)) -> Answer<pl_status> {
    // SAFETY: the caller's promise.
    what(unsafe { named(system) }?.entered()?);
    Ok(pl_status::PL_OK)
}
