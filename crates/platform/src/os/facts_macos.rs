//! What macOS says about the machine and about the calling thread. `topology/detect/macos.rs` says what
//! follows.
//!
//! There are no masks, and the kernel does not say which CPU a thread is on, how long it was ready and
//! waited, or how often it left a CPU.

use std::ffi::CString;
use std::ptr;

use event::Nanos;

use super::facts_std;
use crate::topology::detect::macos::{self, Sysctl};
use crate::{CpuSet, Limits, MaskError, RefusalKind, Topology, Usage};

pub(super) use super::facts_std::{allowed, current_cpu, involuntary, is_on_cpu, thread_name};

/// sysctl(3).
struct Live;

impl Live {
    /// The bytes behind a name, at most so many.
    fn bytes<const MOST: usize>(name: &str) -> Option<([u8; MOST], usize)> {
        let name = CString::new(name).ok()?;
        let (mut bytes, mut length) = ([0_u8; MOST], MOST);
        // SAFETY: the name ends with a zero; the kernel writes at most `length` bytes, and their number.
        let failed = unsafe {
            libc::sysctlbyname(
                name.as_ptr(),
                bytes.as_mut_ptr().cast(),
                &mut length,
                ptr::null_mut(),
                0,
            )
        };
        (failed == 0).then_some((bytes, length.min(MOST)))
    }
}

impl Sysctl for Live {
    /// Numbers have four or eight bytes.
    fn number(&self, name: &str) -> Option<u64> {
        match Live::bytes::<8>(name)? {
            (bytes, 8) => Some(u64::from_ne_bytes(bytes)),
            ([a, b, c, d, ..], 4) => Some(u32::from_ne_bytes([a, b, c, d]).into()),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let (bytes, length) = Live::bytes::<256>(name)?;
        let text = bytes[..length].split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

pub(super) fn topology() -> Topology {
    macos::machine(&Live).unwrap_or_else(facts_std::topology)
}

pub(super) fn limits() -> Limits {
    macos::limits(&Live).unwrap_or_else(facts_std::limits)
}

pub(super) fn parallelism() -> usize {
    limits().effective_parallelism()
}

pub(super) fn set_mask(_thread: u64, _cpus: &CpuSet) -> Result<(), MaskError> {
    Err(MaskError::new(
        RefusalKind::Unsupported,
        "macOS has no CPU masks: leave its threads where they are, or give them a QoS class",
    ))
}

pub(super) fn thread_id() -> u64 {
    let mut id = 0;
    // SAFETY: thread 0 is the caller; the call writes a number.
    let failed = unsafe { libc::pthread_threadid_np(0, &mut id) };
    if failed == 0 { id } else { 0 }
}

pub(super) fn usage() -> Usage {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the live struct passed to it and nothing else.
    let timed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Usage {
        cpu: (timed == 0).then(|| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)),
        ..facts_std::usage()
    }
}

pub(super) fn usage_so_far() -> Usage {
    usage()
}
