//! What Linux is asked to do for a thread: sched_setattr(2).

use std::{io, mem};

use event::Nanos;

use crate::{Class, RefusalKind, SchedParams, SchedParamsError, Uclamp};

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
/// Threads that this one starts are scheduled by shares, and get no more than others.
const RESET_ON_FORK: u64 = 0x01;
const CLAMPS: u64 = 0x20 | 0x40;
/// In place of a thread.
const CALLER: libc::pid_t = 0;

/// The kernel's `struct sched_attr` in its second version; the libc crate lacks it on Android.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice, for threads of the fair class.
    runtime: u64,
    deadline: u64,
    period: u64,
    clamp_min: u32,
    clamp_max: u32,
}

impl SchedAttr {
    /// Without and with the clamps, which old kernels do not know.
    const SIZES: (u32, u32) = (48, mem::size_of::<SchedAttr>() as u32);

    fn read(thread: libc::pid_t) -> io::Result<SchedAttr> {
        let mut attr = SchedAttr::default();
        // SAFETY: the kernel writes at most the given number of bytes to the struct.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                thread,
                &raw mut attr,
                SchedAttr::SIZES.1,
                0,
            )
        };
        match done {
            0 => Ok(attr),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn write(&self, thread: libc::pid_t) -> io::Result<()> {
        // SAFETY: the kernel reads `size` bytes from the struct.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const *self, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn class(&self) -> Option<Class> {
        match self.policy {
            SCHED_OTHER => Some(Class::Fair {
                nice: self.nice as i8,
            }),
            SCHED_RR => Some(Class::RoundRobin {
                priority: self.priority as u8,
            }),
            SCHED_FIFO => Some(Class::Fifo {
                priority: self.priority as u8,
            }),
            _ => None,
        }
    }
}

/// Sets the slice of the calling thread if it belongs to the fair class, and leaves everything else
/// about it as it was. Kernels before 6.12 take no notice.
pub(super) fn ask_for_slice(slice: Nanos) {
    if let Ok(attr) = SchedAttr::read(CALLER)
        && attr.policy == SCHED_OTHER
    {
        // Refused: the thread is scheduled like any other.
        let _ = SchedAttr {
            size: SchedAttr::SIZES.0,
            runtime: slice.0,
            ..attr
        }
        .write(CALLER);
    }
}

/// As [`Machine::set_sched_params`](crate::Machine::set_sched_params).
pub(super) fn set(thread: u64, how: &SchedParams) -> Result<SchedParams, SchedParamsError> {
    // Zero would mean the caller.
    let thread = libc::pid_t::try_from(thread).ok().filter(|&id| id > 0);
    let thread = thread.ok_or_else(|| {
        let text = "there is no such thread: name one that has not ended";
        SchedParamsError::new(how, RefusalKind::NoThread, text)
    })?;
    let refused = |error: io::Error| SchedParamsError::from_system(how, &error);
    let before = SchedAttr::read(thread).map_err(refused)?;
    let class = before.class().ok_or_else(|| {
        let text = format!(
            "the class of the thread is none of those known here ({})",
            before.policy
        );
        SchedParamsError::new(how, RefusalKind::Unsupported, text)
    })?;
    let undo = SchedParams {
        class: how.class.map(|_| class),
        // Another class forgets it.
        slice: (before.policy == SCHED_OTHER && (how.slice.is_some() || how.class.is_some()))
            .then_some(Nanos(before.runtime)),
        uclamp: how.uclamp.map(|_| Uclamp {
            min: before.clamp_min as u16,
            max: before.clamp_max as u16,
        }),
        resets_on_fork: Some(before.flags & RESET_ON_FORK != 0),
    };
    if *how == SchedParams::default() {
        return Ok(SchedParams {
            class: Some(class),
            ..undo
        });
    }
    let wanted = changed(before, how);
    let kept_flag = SchedAttr {
        flags: wanted.flags | RESET_ON_FORK,
        ..wanted
    };
    wanted
        .write(thread)
        // Without a privilege the flag stays once it is set; the rest can be undone.
        .or_else(|error| match wanted.flags & RESET_ON_FORK {
            0 => kept_flag.write(thread),
            _ => Err(error),
        })
        .map_err(refused)?;
    Ok(undo)
}

fn changed(before: SchedAttr, how: &SchedParams) -> SchedAttr {
    let mut attr = SchedAttr {
        size: SchedAttr::SIZES.0,
        flags: before.flags & RESET_ON_FORK,
        clamp_min: 0,
        clamp_max: 0,
        ..before
    };
    match how.class {
        None => {}
        Some(Class::Fair { nice }) => {
            (attr.policy, attr.nice, attr.priority) = (SCHED_OTHER, nice.into(), 0);
            // Of another class it is no slice.
            attr.runtime = if before.policy == SCHED_OTHER {
                before.runtime
            } else {
                0
            };
        }
        Some(Class::RoundRobin { priority }) => {
            (attr.policy, attr.nice, attr.priority) = (SCHED_RR, 0, priority.into());
            attr.runtime = 0;
        }
        Some(Class::Fifo { priority }) => {
            (attr.policy, attr.nice, attr.priority) = (SCHED_FIFO, 0, priority.into());
            attr.runtime = 0;
        }
    }
    if let Some(slice) = how.slice {
        attr.runtime = slice.0;
    }
    if let Some(clamp) = how.uclamp {
        attr.size = SchedAttr::SIZES.1;
        attr.flags |= CLAMPS;
        (attr.clamp_min, attr.clamp_max) = (clamp.min.into(), clamp.max.into());
    }
    // What it starts did not ask for anything.
    let resets = how
        .resets_on_fork
        .unwrap_or(how.class.is_some() || attr.flags & RESET_ON_FORK != 0);
    attr.flags = attr.flags & !RESET_ON_FORK | u64::from(resets);
    attr
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Os, Platform};

    /// Goal: a slice is taken by kernels that know slices, and nothing else about the thread changes.
    /// Method: on a thread of its own, read before and after. A kernel that knows slices tells its
    /// default; others tell none and must go on doing so.
    #[test]
    fn a_slice_changes_nothing_else() {
        let thread = std::thread::spawn(|| {
            let before = SchedAttr::read(CALLER).expect("every Linux since 3.14 tells");
            ask_for_slice(Nanos::from_micros(250));
            (before, SchedAttr::read(CALLER).expect("as before"))
        });
        let (before, after) = thread.join().expect("it does not panic");
        let knows_slices = before.policy == SCHED_OTHER && before.runtime > 0;
        let wanted = if knows_slices {
            250_000
        } else {
            before.runtime
        };
        assert_eq!(after.runtime, wanted);
        assert_eq!(
            (after.policy, after.nice, after.priority, after.flags),
            (before.policy, before.nice, before.priority, before.flags)
        );
    }

    /// Goal: what is asked for is done or refused in words, what is refused changes nothing, and undoing
    /// gives back what was. Method: each wish on a thread of its own, whose state is read before, between
    /// and after.
    #[test]
    fn wishes_are_done_or_refused_and_can_be_undone() {
        let wishes = [
            SchedParams::nice(5),
            SchedParams::nice(-5),
            SchedParams::round_robin(1),
            SchedParams::fifo(1),
            SchedParams::slice(Nanos::from_micros(300)),
            SchedParams::uclamp(100, 900),
        ];
        for wish in wishes {
            let on_its_own = || {
                let me = Os.thread_id();
                let state = || {
                    let attr = SchedAttr::read(me as libc::pid_t).expect("every Linux tells");
                    (attr.policy, attr.nice, attr.priority, attr.runtime)
                };
                let before = state();
                match Os.set_sched_params(me, &wish) {
                    Ok(undo) => {
                        let now = Os
                            .set_sched_params(me, &SchedParams::default())
                            .expect("it is told");
                        assert!(wish.class.is_none() || now.class == wish.class, "{now:?}");
                        // Nice 5 needs a privilege to be undone.
                        if Os.set_sched_params(me, &undo).is_ok() {
                            assert_eq!(state(), before, "{wish}");
                        } else {
                            assert_eq!(wish, SchedParams::nice(5));
                        }
                        true
                    }
                    Err(error) => {
                        assert_eq!(state(), before, "{wish}");
                        assert!(!error.to_string().is_empty());
                        false
                    }
                }
            };
            let done = std::thread::scope(|scope| scope.spawn(on_its_own).join());
            let done = done.expect("it does not panic");
            assert!(
                done || wish != SchedParams::nice(5),
                "every thread may be nice"
            );
        }
    }

    /// Goal: nonsense is refused, and a program can tell what was wrong. Method: threads that are none, the
    /// last of them one that only the kernel knows about, and numbers out of range. (A kernel may not know
    /// clamps.)
    #[test]
    fn nonsense_is_refused() {
        let refused = |thread, how| {
            Os.set_sched_params(thread, &how)
                .expect_err("it is nonsense")
        };
        for thread in [0, u64::MAX, i32::MAX as u64] {
            let kind = refused(thread, SchedParams::nice(5)).kind();
            assert_eq!(kind, RefusalKind::NoThread);
        }
        let me = Os.thread_id();
        let error = refused(me, SchedParams::round_robin(200));
        assert_eq!(error.kind(), RefusalKind::Invalid);
        assert_eq!(error.os_error(), Some(libc::EINVAL));
        let error = refused(me, SchedParams::uclamp(2_000, 1));
        let kinds = [RefusalKind::Invalid, RefusalKind::Unsupported];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}
