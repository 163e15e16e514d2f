//! Groups: jobs that a wait may run although it does not need them.

use std::ffi::c_char;
use std::sync::Arc;

use paceline::Group;

use crate::described::{must_be, or_nothing, put};
use crate::names::name_of;
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{fresh_number, named, pl_system};

/// The number of a group of jobs. Nothing else of the process has it, ever, but jobs. Zero is none.
pub type pl_group = u64;

impl pl_system {
    /// The group with this number.
    pub(crate) fn group(&'static self, group: pl_group) -> Answer<Arc<Group>> {
        self.js()?;
        if group == 0 {
            return Err(Refusal::invalid(
                "0 is no group: make one with pl_group_create",
            ));
        }
        let known = self.lock(&self.groups)?.get(&group).cloned();
        known.ok_or_else(|| {
            Refusal::new(
                pl_status::PL_UNKNOWN,
                format!("{group} is not a group of this job system, or was destroyed"),
            )
        })
    }
}

/// Makes a group, for jobs that belong together (`group` in their descriptions). A wait of the group,
/// pl_group_wait, may run all of its jobs. It is for gangs: jobs that wait for each other by means of their
/// own, as the solvers of physics libraries do. Such a wait has to be able to run the rest of the gang, and
/// no stranger's job. Takes a lock and allocates. Destroy it with pl_group_destroy.
///
/// # Safety
/// `system` was made by pl_system_create. `name` is null or ends with a zero byte. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_group_create(
    system: *mut pl_system,
    name: *const c_char,
    out: *mut pl_group,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        // SAFETY: the caller's promise.
        let (system, name) = unsafe { (named(system)?, name_of(name, "group")?) };
        let made = Arc::new(system.js()?.try_group(name.as_str())?);
        let number = fresh_number();
        system.lock(&system.groups)?.insert(number, made);
        // SAFETY: the caller's promise.
        unsafe { put(out, number) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// Forgets a group. Its jobs run on, as jobs of none. PL_UNKNOWN if there is none.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_group_destroy(system: *mut pl_system, group: pl_group) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let known = system.group(group)?;
        let last = system.lock(&system.groups)?.remove(&group);
        drop((known, last));
        Ok(pl_status::PL_OK)
    })
}

/// Whether it pays at this moment to have workers run jobs of groups that wait for each other: 1 or 0 in
/// `*are_worth`. It does not while other programs take the workers' CPUs in the middle of such jobs, so that
/// the thread that waits would be done sooner if it had run them itself. If it is 0, do their work at once
/// instead of making them. Jobs that no thread waits for within some milliseconds are better shared all the
/// same: do not ask for those.
///
/// What workers have gained and lost in jobs of groups decides, in all groups together. After 0 they are
/// shared again to see whether it still holds: after a quarter of a second at first, and after 8 s at the
/// latest. Always 1 where the system does not count how long a thread was without a CPU. Costs a load; after
/// 0 a look at the clock, too.
///
/// # Safety
/// `system` was made by pl_system_create. `are_worth` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_groups_are_worth_sharing(
    system: *mut pl_system,
    are_worth: *mut i32,
) -> pl_status {
    call(|| {
        must_be(are_worth, "are_worth")?;
        // SAFETY: the caller's promise.
        let js = unsafe { named(system) }?.js()?;
        // SAFETY: the caller's promise.
        unsafe { put(are_worth, i32::from(js.groups_are_worth_sharing())) };
        Ok(pl_status::PL_OK)
    })
}
