//! What Windows is asked to do for a thread: its priority, of which there are seven within those of the
//! process. Five are shares here, by niceness; the highest goes before all of them, in turns.

use std::io;

use event::Nanos;
use windows_sys::Win32::System::Threading::{
    GetThreadPriority, SetThreadPriority, THREAD_PRIORITY, THREAD_PRIORITY_ABOVE_NORMAL,
    THREAD_PRIORITY_BELOW_NORMAL, THREAD_PRIORITY_HIGHEST, THREAD_PRIORITY_IDLE,
    THREAD_PRIORITY_LOWEST, THREAD_PRIORITY_NORMAL, THREAD_PRIORITY_TIME_CRITICAL,
    THREAD_QUERY_INFORMATION, THREAD_SET_INFORMATION,
};

use super::facts::Opened;
use crate::{Class, RefusalKind, SchedParams, SchedParamsError};

/// The least niceness of each priority, and the priority.
const BY_NICENESS: [(i8, THREAD_PRIORITY); 5] = [
    (15, THREAD_PRIORITY_LOWEST),
    (5, THREAD_PRIORITY_BELOW_NORMAL),
    (-4, THREAD_PRIORITY_NORMAL),
    (-14, THREAD_PRIORITY_ABOVE_NORMAL),
    (-20, THREAD_PRIORITY_HIGHEST),
];

fn priority(class: Class) -> Option<THREAD_PRIORITY> {
    match class {
        Class::Fair { nice } => {
            let found = BY_NICENESS.into_iter().find(|&(least, _)| nice >= least);
            found.map(|(_, priority)| priority)
        }
        Class::RoundRobin { priority: 1..=99 } => Some(THREAD_PRIORITY_TIME_CRITICAL),
        Class::RoundRobin { .. } | Class::Fifo { .. } => None,
    }
}

/// The class that a priority is told as.
fn class(priority: THREAD_PRIORITY) -> Class {
    match priority {
        THREAD_PRIORITY_TIME_CRITICAL => Class::RoundRobin { priority: 1 },
        THREAD_PRIORITY_HIGHEST => Class::Fair { nice: -15 },
        THREAD_PRIORITY_ABOVE_NORMAL => Class::Fair { nice: -5 },
        THREAD_PRIORITY_BELOW_NORMAL => Class::Fair { nice: 5 },
        THREAD_PRIORITY_LOWEST | THREAD_PRIORITY_IDLE => Class::Fair { nice: 15 },
        _ => Class::Fair { nice: 0 },
    }
}

/// As [`Machine::set_sched_params`](crate::Machine::set_sched_params). A slice beside a class is not taken
/// notice of, as by a Linux that does not know slices.
pub(super) fn set(thread: u64, how: &SchedParams) -> Result<SchedParams, SchedParamsError> {
    let refused = |kind, text| SchedParamsError::new(how, kind, text);
    let failed = || SchedParamsError::from_system(how, &io::Error::last_os_error());
    let is_slice_alone = how.slice.is_some() && how.class.is_none();
    if is_slice_alone || how.uclamp.is_some() {
        let text = "Windows has no slices and no clamps of threads: ask for a niceness";
        return Err(refused(RefusalKind::Unsupported, text));
    }
    let rights = THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION;
    let opened = Opened::new(thread, rights).map_err(|error| {
        let text = "there is no such thread, or it may not be changed: name one of this program's \
                    that has not ended";
        refused(error.kind(), text)
    })?;
    /// What is returned for a thread that cannot be asked.
    const NONE: i32 = i32::MAX;
    // SAFETY: the thread is open.
    let before = match unsafe { GetThreadPriority(opened.handle()) } {
        NONE => return Err(failed()),
        before => class(before),
    };
    let undo = SchedParams {
        class: Some(before),
        ..SchedParams::default()
    };
    let Some(wanted) = how.class else {
        return Ok(undo);
    };
    let Some(priority) = priority(wanted) else {
        let (kind, text) = match wanted {
            Class::Fair { .. } => (RefusalKind::Invalid, "a niceness is from -20 to 19"),
            Class::RoundRobin { .. } => (RefusalKind::Invalid, "a priority is from 1 to 99"),
            Class::Fifo { .. } => (
                RefusalKind::Unsupported,
                "on Windows threads of a priority always take turns: ask for round robin",
            ),
        };
        return Err(refused(kind, text));
    };
    // SAFETY: the thread is open.
    match unsafe { SetThreadPriority(opened.handle(), priority) } {
        0 => Err(failed()),
        _ => Ok(undo),
    }
}

/// Windows has none.
pub(super) fn ask_for_slice(_slice: Nanos) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Os, Platform};

    /// Goal: what is asked for is done, can be read, and can be undone; the rest is refused in words. Method:
    /// the calling thread, which ends as it began.
    #[test]
    fn priorities_are_set_and_undone() {
        let me = Os.thread_id();
        let read = || Os.set_sched_params(me, &SchedParams::default());
        let before = read().expect("Windows tells");
        for (asked, found) in [
            (SchedParams::nice(-20), SchedParams::nice(-15)),
            (SchedParams::nice(-7), SchedParams::nice(-5)),
            (SchedParams::nice(12), SchedParams::nice(5)),
            (SchedParams::round_robin(50), SchedParams::round_robin(1)),
        ] {
            let undo = Os.set_sched_params(me, &asked).expect("it may");
            assert_eq!(read().expect("as before"), found, "{asked}");
            Os.set_sched_params(me, &undo).expect("it may");
            assert_eq!(read().expect("as before"), before);
        }
        for (asked, kind) in [
            (SchedParams::fifo(1), RefusalKind::Unsupported),
            (SchedParams::slice(Nanos(1_000)), RefusalKind::Unsupported),
            (SchedParams::uclamp(1, 2), RefusalKind::Unsupported),
            (SchedParams::nice(-21), RefusalKind::Invalid),
            (SchedParams::round_robin(100), RefusalKind::Invalid),
        ] {
            let refused = Os.set_sched_params(me, &asked).expect_err("it cannot");
            assert_eq!(refused.kind(), kind, "{refused}");
        }
        let refused = Os.set_sched_params(u64::MAX, &SchedParams::nice(1));
        assert_eq!(
            refused.expect_err("it is none").kind(),
            RefusalKind::NoThread
        );
    }
}
