//! What macOS is asked to do for a thread: its QoS class, which decides on which CPUs and how fast it runs. A
//! thread gives it to itself.

use std::io;

use event::Nanos;

use super::facts;
use crate::{Class, RefusalKind, SchedParams, SchedParamsError};

/// The least niceness of each class, the one it is told as, and the class: of <sys/qos.h>, from background,
/// which stays on the slow CPUs, to what a person waits for.
const BY_NICENESS: [(i8, i8, u32); 5] = [
    (15, 15, 0x09),
    (5, 5, 0x11),
    (-4, 0, 0x15),
    (-14, -5, 0x19),
    (-20, -15, 0x21),
];

// Of <pthread/qos.h>; the libc crate lacks them.
unsafe extern "C" {
    fn pthread_set_qos_class_self_np(class: u32, relative: libc::c_int) -> libc::c_int;
    fn pthread_get_qos_class_np(
        thread: libc::pthread_t,
        class: *mut u32,
        relative: *mut libc::c_int,
    ) -> libc::c_int;
}

/// As [`Machine::set_sched_params`](crate::Machine::set_sched_params). A slice beside a class is not taken
/// notice of, as by a Linux that does not know slices.
pub(super) fn set(thread: u64, how: &SchedParams) -> Result<SchedParams, SchedParamsError> {
    let refused = |kind, text| Err(SchedParamsError::new(how, kind, text));
    let failed = |number| SchedParamsError::from_system(how, &io::Error::from_raw_os_error(number));
    if thread != facts::thread_id() {
        let text = "on macOS a thread changes itself alone: ask on that thread";
        return refused(RefusalKind::Unsupported, text);
    }
    let (mut class, mut relative) = (0, 0);
    // SAFETY: the thread is the caller; the call writes two numbers.
    let error =
        unsafe { pthread_get_qos_class_np(libc::pthread_self(), &mut class, &mut relative) };
    if error != 0 {
        return Err(failed(error));
    }
    let mut known = BY_NICENESS.into_iter();
    // A thread without a class counts as usual.
    let nice = known.find_map(|(_, nice, known)| (known == class).then_some(nice));
    let undo = SchedParams {
        class: Some(Class::Fair {
            nice: nice.unwrap_or(0),
        }),
        ..SchedParams::default()
    };
    let wanted = match how.class {
        Some(Class::Fair { nice }) if how.uclamp.is_none() => nice,
        None if how.slice.is_none() && how.uclamp.is_none() => return Ok(undo),
        _ => {
            let text = "macOS has QoS classes alone: ask for a niceness";
            return refused(RefusalKind::Unsupported, text);
        }
    };
    let Some((_, _, class)) = BY_NICENESS.into_iter().find(|&(least, ..)| wanted >= least) else {
        return refused(RefusalKind::Invalid, "a niceness is from -20 to 19");
    };
    // SAFETY: it takes two numbers.
    match unsafe { pthread_set_qos_class_self_np(class, 0) } {
        0 => Ok(undo),
        error => Err(failed(error)),
    }
}

/// macOS has none.
pub(super) fn ask_for_slice(_slice: Nanos) {}
