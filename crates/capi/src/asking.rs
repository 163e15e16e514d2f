//! What a job system says about itself and the machine.

use std::ffi::{CStr, c_char};

use paceline::platform::{Machine, Os, Platform};

use crate::described::{must_be, put, put_text, text};
use crate::names::name_of;
use crate::status::{Answer, Refusal, call, pl_status, told};
use crate::system::{named, pl_system};

/// The version of this library, such as "0.1.0". Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn pl_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// How many workers there are now.
///
/// # Safety
/// `system` was made by pl_system_create. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_workers(system: *mut pl_system, out: *mut usize) -> pl_status {
    call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        unsafe { put(out, named(system)?.js()?.workers()) };
        Ok(pl_status::PL_OK)
    })
}

/// One more than the largest number that pl_context_worker can ever return for this job system.
///
/// # Safety
/// `system` was made by pl_system_create. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_thread_slots(system: *mut pl_system, out: *mut usize) -> pl_status {
    call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        unsafe { put(out, named(system)?.js()?.thread_slots()) };
        Ok(pl_status::PL_OK)
    })
}

/// How many threads can compute at the same time, as far as this process may use the machine: CPUs, masks and
/// quotas. Of a job system it is what its last look at the machine found. With a null `system` it is a look
/// now, with some file accesses. Allocates.
///
/// # Safety
/// `system` is null or was made by pl_system_create. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_parallelism(system: *mut pl_system, out: *mut usize) -> pl_status {
    call(|| {
        must_be(out, "out")?;
        let parallelism = if system.is_null() {
            Os.machine().parallelism()
        } else {
            // SAFETY: the caller's promise.
            let system = unsafe { named(system) }?;
            system.js()?.limits().effective_parallelism()
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, parallelism) };
        Ok(pl_status::PL_OK)
    })
}

/// Changes the number of workers while everything runs. Workers that are too many leave when they have
/// nothing to do.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_resize(system: *mut pl_system, workers: usize) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { named(system) }?.js()?.resize(workers)?;
        Ok(pl_status::PL_OK)
    })
}

/// Why there are as many workers as there are, and what the job system has noticed about the machine: a line
/// each. `*needed` is the size of the whole with its zero byte; a smaller buffer gets the beginning.
///
/// # Safety
/// `system` was made by pl_system_create. `buffer` is null or has `size` bytes. `needed` is null or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_explain(
    system: *mut pl_system,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let lines = unsafe { named(system) }?.js()?.explain();
        // SAFETY: the caller's promise.
        unsafe { put_text(&lines.join("\n"), buffer, size, needed) };
        Ok(pl_status::PL_OK)
    })
}

/// What the job system is doing at this moment: live jobs, what each waits for, who waits how long for what,
/// and what holds the program up. It reads a running system without stopping it. As pl_explain.
///
/// # Safety
/// As pl_explain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_report(
    system: *mut pl_system,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let report = unsafe { named(system) }?.js()?.report();
        // SAFETY: the caller's promise.
        unsafe { put_text(&told(&report), buffer, size, needed) };
        Ok(pl_status::PL_OK)
    })
}

/// The counter of this name since the job system was made, such as "jobs", "steals" or "wakes". Times are in
/// nanoseconds. PL_UNKNOWN if there is none of that name.
///
/// # Safety
/// `system` was made by pl_system_create. `name` ends with a zero byte. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_stat(
    system: *mut pl_system,
    name: *const c_char,
    out: *mut u64,
) -> pl_status {
    call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, text(name, "the name")?) };
        let name = name.ok_or_else(|| Refusal::invalid("the name is a null pointer"))?;
        let counters = system.js()?.stats().named();
        let found: Answer<_> = counters
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| no_counter(name, &counters));
        // SAFETY: the caller's promise.
        unsafe { put(out, found?.1) };
        Ok(pl_status::PL_OK)
    })
}

fn no_counter(name: &str, counters: &[(&str, u64)]) -> Refusal {
    let names: Vec<&str> = counters.iter().map(|(name, _)| *name).collect();
    Refusal::new(
        pl_status::PL_UNKNOWN,
        format!("there is no counter {name}; there are {}", names.join(", ")),
    )
}

/// All counters, a line "name value" each. As pl_explain.
///
/// # Safety
/// As pl_explain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_stats_text(
    system: *mut pl_system,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let counters = unsafe { named(system) }?.js()?.stats().named();
        let lines: Vec<String> = counters
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        // SAFETY: the caller's promise.
        unsafe { put_text(&lines.join("\n"), buffer, size, needed) };
        Ok(pl_status::PL_OK)
    })
}

/// Records a value of the program's, such as the number of enemies, as a track of the trace. Costs a load if
/// nothing is being recorded.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_counter(
    system: *mut pl_system,
    name: *const c_char,
    value: i64,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, name_of(name, "counter")?) };
        system.js()?.counter(name.as_str(), value);
        Ok(pl_status::PL_OK)
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;
    use crate::system::{pl_system_create, pl_system_destroy};

    /// Goal: a program can ask how many threads are worth having before it makes a job system. Method: the
    /// answer without one and that of one; no place for it.
    #[test]
    fn parallelism_needs_no_job_system() {
        let (mut before, mut of, mut system) = (0, 0, null_mut());
        // SAFETY: places on this stack, and a job system that was just made.
        unsafe {
            assert_eq!(pl_parallelism(null_mut(), &mut before), pl_status::PL_OK);
            assert_eq!(pl_system_create(null(), &mut system), pl_status::PL_OK);
            assert_eq!(pl_parallelism(system, &mut of), pl_status::PL_OK);
            assert_eq!(pl_system_destroy(system), pl_status::PL_OK);
            let nowhere = pl_parallelism(null_mut(), null_mut());
            assert_eq!(nowhere, pl_status::PL_INVALID);
        }
        assert!(before > 0);
        assert_eq!(before, of);
    }
}
