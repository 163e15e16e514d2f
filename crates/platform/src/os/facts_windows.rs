//! What Windows says about the machine and about threads. `topology/detect/windows.rs` says what follows.
//!
//! Where all CPUs are in one group, a mask is the thread's affinity, which binds. Several groups are named by
//! CPU sets instead, which the kernel keeps to while they have room. The kernel counts a thread's CPU time at
//! its ticks, every 1 to 16 ms. It does not say how long threads were ready and waited, how often they left a
//! CPU, or whether they have one.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::ptr;

use event::Nanos;
use windows_sys::Win32::Foundation::{CloseHandle, ERROR_INVALID_PARAMETER, FILETIME, HANDLE};
use windows_sys::Win32::System::JobObjects::{
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JobObjectCpuRateControlInformation,
    QueryInformationJobObject,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueA};
use windows_sys::Win32::System::SystemInformation::{GROUP_AFFINITY, GetSystemCpuSetInformation};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumberEx, GetCurrentThread, GetCurrentThreadId,
    GetProcessAffinityMask, GetProcessGroupAffinity, GetThreadGroupAffinity, GetThreadTimes,
    OpenThread, SetThreadGroupAffinity, SetThreadSelectedCpuSets, THREAD_ACCESS_RIGHTS,
    THREAD_QUERY_INFORMATION, THREAD_SET_INFORMATION,
};
use windows_sys::core::BOOL;

use super::facts_std;
use crate::topology::detect::windows::{self, Answers, GROUP, Rate};
use crate::{CpuSet, Limits, MaskError, RefusalKind, Topology, Usage};

pub(super) use super::facts_std::{involuntary, is_on_cpu, thread_name};

pub(super) fn topology() -> Topology {
    let answers = Answers {
        model: model(),
        ..ask()
    };
    windows::machine(&answers).unwrap_or_else(facts_std::topology)
}

pub(super) fn limits() -> Limits {
    windows::limits(&ask()).unwrap_or_else(facts_std::limits)
}

pub(super) fn parallelism() -> usize {
    limits().effective_parallelism()
}

/// What the registry calls the first processor.
fn model() -> Option<String> {
    let mut text = [0_u8; 256];
    let mut length = text.len() as u32;
    // SAFETY: the names end with a zero; at most `length` bytes are written, and their number.
    let error = unsafe {
        RegGetValueA(
            HKEY_LOCAL_MACHINE,
            c"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"
                .as_ptr()
                .cast(),
            c"ProcessorNameString".as_ptr().cast(),
            RRF_RT_REG_SZ,
            ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &mut length,
        )
    };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    let text = text.to_string_lossy().trim().to_owned();
    (error == 0 && !text.is_empty()).then_some(text)
}

/// Asks what can change, and the CPUs.
fn ask() -> Answers {
    Answers {
        cpu_sets: cpu_sets(),
        groups: groups(),
        mask: mask(),
        // SAFETY: it has no preconditions.
        default_sets: given_sets(c"GetProcessDefaultCpuSets", unsafe { GetCurrentProcess() }),
        rate: rate(),
        model: None,
    }
}

/// Calls something that fills a buffer or says how long it must be, until it is long enough. Empty if it
/// fails. `call`: takes the buffer and its length, and returns whether it has filled it, and the length.
fn filled<T: Clone + Default>(mut call: impl FnMut(*mut T, u32) -> (bool, u32)) -> Vec<T> {
    const TRIES: usize = 8;
    let mut buffer = Vec::new();
    for _ in 0..TRIES {
        let (is_filled, length) = call(buffer.as_mut_ptr(), buffer.len() as u32);
        if is_filled {
            buffer.truncate(length as usize);
            return buffer;
        }
        if length as usize <= buffer.len() {
            break; // It is not the length.
        }
        buffer.resize(length as usize, T::default());
    }
    Vec::new()
}

/// The CPU sets of the machine, as they are written.
fn cpu_sets() -> Vec<u8> {
    // As words, since the records want to be aligned.
    const WORD: u32 = 8;
    let words = filled(|buffer: *mut u64, words| {
        let mut bytes = 0;
        // SAFETY: the kernel writes at most the given number of bytes to the buffer, and a number.
        let done = unsafe {
            GetSystemCpuSetInformation(
                buffer.cast(),
                words * WORD,
                &mut bytes,
                GetCurrentProcess(),
                0,
            )
        };
        (done != 0, bytes.div_ceil(WORD))
    });
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The groups that the process has threads in.
fn groups() -> Vec<u16> {
    filled(|buffer: *mut u16, length| {
        let mut count = length as u16;
        // SAFETY: the kernel writes at most so many numbers to the buffer, and their number.
        let done = unsafe { GetProcessGroupAffinity(GetCurrentProcess(), &mut count, buffer) };
        (done != 0, count.into())
    })
}

/// The CPUs of a process in one group.
fn mask() -> u64 {
    let (mut process, mut system) = (0_usize, 0_usize);
    // SAFETY: the kernel writes two words.
    let done = unsafe { GetProcessAffinityMask(GetCurrentProcess(), &mut process, &mut system) };
    if done == 0 { 0 } else { process as u64 }
}

/// The CPU sets that a process or a thread was given, by a function of kernel32 that writes at most so many
/// of their ids, and their number. Windows has these functions since version 10, and Wine since 9; without
/// them nothing was given.
fn given_sets(function: &CStr, of: HANDLE) -> Vec<u32> {
    type Get = unsafe extern "system" fn(HANDLE, *mut u32, u32, *mut u32) -> BOOL;
    // SAFETY: the name ends with a zero; every process has this module.
    let module = unsafe { GetModuleHandleA(c"kernel32.dll".as_ptr().cast()) };
    // SAFETY: the module stays; the name ends with a zero.
    let found = unsafe { GetProcAddress(module, function.as_ptr().cast()) };
    let Some(found) = found else {
        return Vec::new();
    };
    // SAFETY: the two functions that are asked for have this signature.
    let get = unsafe { mem::transmute::<unsafe extern "system" fn() -> isize, Get>(found) };
    filled(|buffer, length| {
        let mut needed = 0;
        // SAFETY: the kernel writes at most so many numbers to the buffer, and their number.
        let done = unsafe { get(of, buffer, length, &mut needed) };
        (done != 0, needed)
    })
}

/// The rate of the job that the process is in.
fn rate() -> Option<Rate> {
    let mut rate = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default();
    // SAFETY: the kernel writes at most the given number of bytes to the struct.
    let done = unsafe {
        QueryInformationJobObject(
            ptr::null_mut(),
            JobObjectCpuRateControlInformation,
            (&raw mut rate).cast(),
            mem::size_of_val(&rate) as u32,
            ptr::null_mut(),
        )
    };
    (done != 0).then_some(Rate {
        flags: rate.ControlFlags,
        // SAFETY: all variants of the union are numbers of its size, and it began as zero.
        value: unsafe { rate.Anonymous.CpuRate },
    })
}

/// A thread of this or another process, while it is open.
pub(super) struct Opened(HANDLE);

impl Opened {
    pub(super) fn handle(&self) -> HANDLE {
        self.0
    }

    pub(super) fn new(thread: u64, rights: THREAD_ACCESS_RIGHTS) -> Result<Opened, MaskError> {
        let id = u32::try_from(thread).unwrap_or(0);
        // SAFETY: it has no preconditions.
        let handle = unsafe { OpenThread(rights, 0, id) };
        if !handle.is_null() {
            return Ok(Opened(handle));
        }
        let error = io::Error::last_os_error();
        Err(match error.raw_os_error() {
            Some(number) if number == ERROR_INVALID_PARAMETER as i32 => MaskError::new(
                RefusalKind::NoThread,
                "there is no such thread: name one that has not ended",
            ),
            _ => MaskError::from_system(&error),
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: `new` opened it, and nothing else has closed it.
        unsafe { CloseHandle(self.0) };
    }
}

pub(super) fn allowed(threads: &[u64]) -> Option<CpuSet> {
    let sets = windows::described(&cpu_sets());
    let of_thread = |&thread: &u64| {
        let opened = Opened::new(thread, THREAD_QUERY_INFORMATION).ok()?;
        let selected = given_sets(c"GetThreadSelectedCpuSets", opened.0);
        if !selected.is_empty() {
            let selected = sets.iter().filter(|set| selected.contains(&set.id));
            return Some(selected.map(|set| set.cpu).collect());
        }
        let mut affinity = GROUP_AFFINITY::default();
        // SAFETY: the kernel writes to the struct.
        let done = unsafe { GetThreadGroupAffinity(opened.0, &mut affinity) };
        (done != 0).then(|| windows::of_group(affinity.Group, affinity.Mask as u64))
    };
    let masks = threads.iter().filter_map(of_thread);
    let all = masks.reduce(|all: CpuSet, mask| all.union(&mask))?;
    (!all.is_empty()).then_some(all)
}

pub(super) fn set_mask(thread: u64, cpus: &CpuSet) -> Result<(), MaskError> {
    let rights = THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION;
    let opened = Opened::new(thread, rights)?;
    let sets = windows::described(&cpu_sets());
    let is_one_group = sets.iter().all(|set| set.cpu < GROUP);
    let done = match windows::by_group(cpus)[..] {
        [(group, mask)] if is_one_group => {
            let affinity = GROUP_AFFINITY {
                Mask: mask as usize,
                Group: group,
                Reserved: [0; 3],
            };
            // SAFETY: the kernel reads the struct.
            unsafe { SetThreadGroupAffinity(opened.0, &affinity, ptr::null_mut()) }
        }
        _ => {
            let named = sets.iter().filter(|set| cpus.contains(set.cpu));
            let ids: Vec<u32> = named.map(|set| set.id).collect();
            if ids.is_empty() {
                return Err(MaskError::new(
                    RefusalKind::Invalid,
                    "no CPU of the mask is there: name one that is",
                ));
            }
            // SAFETY: the kernel reads so many numbers from the buffer.
            unsafe { SetThreadSelectedCpuSets(opened.0, ids.as_ptr(), ids.len() as u32) }
        }
    };
    match done {
        0 => Err(MaskError::from_system(&io::Error::last_os_error())),
        _ => Ok(()),
    }
}

pub(super) fn thread_id() -> u64 {
    // SAFETY: it has no preconditions.
    u64::from(unsafe { GetCurrentThreadId() })
}

pub(super) fn current_cpu() -> Option<u32> {
    let mut place = Default::default();
    // SAFETY: it writes to the struct.
    unsafe { GetCurrentProcessorNumberEx(&mut place) };
    Some(u32::from(place.Group) * GROUP + u32::from(place.Number))
}

pub(super) fn usage() -> Usage {
    let [mut begun, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the kernel writes to the four structs.
    let done = unsafe {
        GetThreadTimes(
            GetCurrentThread(),
            &mut begun,
            &mut ended,
            &mut kernel,
            &mut user,
        )
    };
    // In hundreds of nanoseconds.
    let time = |time: FILETIME| {
        let count = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Nanos(count.saturating_mul(100))
    };
    Usage {
        cpu: (done != 0).then(|| time(kernel) + time(user)),
        ..facts_std::usage()
    }
}

pub(super) fn usage_so_far() -> Usage {
    usage()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Goal: Windows describes every CPU, and the one that the caller is on. Method: against what std counts,
    /// which knows no masks.
    #[test]
    fn cpus_are_described() {
        let machine = topology();
        assert!(!machine.model().is_empty());
        assert!(!windows::described(&cpu_sets()).is_empty());
        assert!(
            machine
                .present()
                .contains(current_cpu().expect("Windows tells"))
        );
        assert_eq!(machine.present().len(), facts_std::parallelism());
        let allowed = machine.allowed();
        assert_eq!(allowed.intersection(machine.present()), *allowed);
        assert_eq!(limits().allowed, machine.limits().allowed);
    }

    /// Goal: a mask restricts the thread that is named, and no other. Method: another thread is put on the
    /// last CPU, and both are asked; threads that are none.
    #[test]
    fn masks_are_a_threads_own() {
        let usable = limits().usable();
        let last = usable.iter().last().expect("there is one");
        let last = CpuSet::from_iter([last]);
        let (send_id, id) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            send_id.send(thread_id()).expect("it is awaited");
            wait.recv().expect("it is sent");
            current_cpu()
        });
        let id = id.recv().expect("it says so");
        let before = allowed(&[id]).expect("Windows tells");
        set_mask(id, &last).expect("it may");
        assert_eq!(allowed(&[id]).as_ref(), Some(&last));
        assert_eq!(allowed(&[thread_id()]).as_ref(), Some(&before));
        assert_eq!(allowed(&[thread_id(), id]).as_ref(), Some(&before));
        go.send(()).expect("it listens");
        let on = other.join().expect("it does not panic");
        assert_eq!(on, last.first());
        for none in [0, u64::MAX, 3] {
            let refused = set_mask(none, &before).expect_err("there is no such thread");
            assert_eq!(refused.kind(), RefusalKind::NoThread, "{none}");
        }
        assert_eq!(allowed(&[u64::MAX]), None);
    }

    /// Goal: a mask without a CPU that may be used is refused, and a program can tell why. Method: no CPU,
    /// and one that no machine has.
    #[test]
    fn masks_without_a_cpu_are_invalid() {
        for cpus in [CpuSet::new(), CpuSet::from_iter([60_000])] {
            let refused = set_mask(thread_id(), &cpus).expect_err("it has no CPU");
            assert_eq!(refused.kind(), RefusalKind::Invalid, "{refused}");
        }
    }

    /// Goal: a thread's CPU time grows while it computes. Method: until it does.
    #[test]
    fn time_is_counted() {
        let before = usage().cpu.expect("Windows tells");
        while usage().cpu.expect("as before") == before {
            std::hint::spin_loop();
        }
        assert_eq!(
            (usage().runnable, involuntary(), is_on_cpu(thread_id())),
            (None, None, None)
        );
    }
}
