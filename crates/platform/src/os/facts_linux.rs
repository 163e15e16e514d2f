//! What Linux says about the machine and about the calling thread.

use std::fs;
use std::io;
use std::mem;

use event::Nanos;

use crate::topology::detect::{self, Folder, Source};
use crate::{CpuSet, Limits, MaskError, RefusalKind, Topology, Usage};

/// Of the kernel's interface; the libc crate lacks it on Android.
const RUSAGE_THREAD: libc::c_int = 1;

/// This machine's files.
struct Live(Folder);

impl Live {
    fn new() -> Live {
        Live(Folder("/".into()))
    }
}

impl Source for Live {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.0.read(path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.0.names(folder)
    }

    /// That of the main thread: workers have masks of their own while they are steered.
    fn affinity(&self) -> Option<CpuSet> {
        mask(std::process::id()).or_else(|| mask(0))
    }
}

/// The machine, and the CPUs that both the process and the calling thread, whose mask its children inherit,
/// may use.
pub(super) fn topology() -> Topology {
    let machine = detect::detect(&Live::new());
    let mut limits = machine.limits().clone();
    let both = mask(0).map(|mask| limits.allowed.intersection(&mask));
    match both.filter(|both| !both.intersection(&limits.online).is_empty()) {
        Some(both) => limits.allowed = both,
        None => return machine,
    }
    machine.with_limits(limits)
}

pub(super) fn limits() -> Limits {
    detect::limits(&Live::new())
}

pub(super) fn parallelism() -> usize {
    limits().effective_parallelism()
}

/// A thread's affinity mask (zero is the caller), on machines of up to 64 Ki CPUs.
fn mask(thread: u32) -> Option<CpuSet> {
    let mut words = vec![0u64; 1 << 10];
    // SAFETY: the kernel writes at most the given number of bytes into the buffer.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            words.len() * 8,
            words.as_mut_ptr(),
        )
    };
    if bytes <= 0 {
        return None;
    }
    let bit = |cpu: &u32| words[*cpu as usize / 64] & (1 << (cpu % 64)) != 0;
    Some((0..bytes as u32 * 8).filter(bit).collect())
}

pub(super) fn allowed(threads: &[u64]) -> Option<CpuSet> {
    // Zero would mean the caller.
    let ids = threads
        .iter()
        .filter_map(|&thread| u32::try_from(thread).ok().filter(|&id| id > 0));
    let masks = ids.filter_map(mask);
    let all = masks.reduce(|all, mask| all.union(&mask))?;
    (!all.is_empty()).then_some(all)
}

pub(super) fn thread_id() -> u64 {
    // SAFETY: no arguments, no preconditions. (The id is positive; a long has 32 bits on some machines.)
    unsafe { libc::syscall(libc::SYS_gettid) as u64 }
}

/// The first thread has the name of the program for the kernel, and is called as std calls it here. Unlike
/// std this also works while the thread's own data is being destroyed.
pub(super) fn thread_name() -> Option<String> {
    // SAFETY: it has no preconditions.
    if thread_id() == u64::from(unsafe { libc::getpid() }.unsigned_abs()) {
        return Some("main".to_owned());
    }
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes 16 bytes, the last of which is 0.
    let asked = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let end = name.iter().position(|&byte| byte == 0)?;
    (asked == 0 && end > 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
}

pub(super) fn set_mask(thread: u64, cpus: &CpuSet) -> Result<(), MaskError> {
    // Zero would mean the caller.
    let thread = libc::pid_t::try_from(thread).ok().filter(|&id| id > 0);
    let Some(thread) = thread else {
        return Err(MaskError::new(
            RefusalKind::NoThread,
            "there is no such thread: name one that has not ended",
        ));
    };
    let words = cpus.iter().max().map_or(1, |cpu| cpu as usize / 64 + 1);
    let mut mask = vec![0u64; words];
    for cpu in cpus.iter() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads exactly the given number of bytes from the buffer.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            mask.len() * 8,
            mask.as_ptr(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(MaskError::from_system(&io::Error::last_os_error())),
    }
}

/// The kernel does not say so, but it counts how often a thread came to a CPU (the third number of schedstat)
/// and, elsewhere, how often it left one, of its own accord or not (see proc(5)). It has come once more
/// than it has left while it is there.
pub(super) fn is_on_cpu(thread: u64) -> Option<bool> {
    let read = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let status = read("status")?;
    let lines = status
        .lines()
        .filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    let left: u64 = lines
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum();
    let came: u64 = read("schedstat")?.split_whitespace().nth(2)?.parse().ok()?;
    Some(came > left)
}

pub(super) fn current_cpu() -> Option<u32> {
    // SAFETY: no arguments, no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

pub(super) fn usage() -> Usage {
    with_counts(thread_clock(), schedstat().map(|(_, runnable)| runnable))
}

/// The thread's clock is exact, for a price: to answer, the kernel charges the caller for what it has run
/// since it was looked at last, and if its slice is over by that takes the CPU away on the way back, as a
/// tick would. Beside busy threads a question then costs a tick or two. A file tells what was counted
/// anyway.
pub(super) fn usage_so_far() -> Usage {
    match schedstat() {
        Some((cpu, runnable)) => with_counts(Some(cpu), Some(runnable)),
        None => usage(),
    }
}

fn with_counts(cpu: Option<Nanos>, runnable: Option<Nanos>) -> Usage {
    let (involuntary, voluntary) = switches().unzip();
    Usage {
        cpu,
        runnable,
        involuntary,
        voluntary,
    }
}

/// Exactly how long the calling thread has run.
fn thread_clock() -> Option<Nanos> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the live struct passed to it and nothing else.
    let timed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    (timed == 0).then(|| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

pub(super) fn involuntary() -> Option<u64> {
    switches().map(|(involuntary, _)| involuntary)
}

/// Switches away from the calling thread: those it did not ask for, and those because it blocked.
fn switches() -> Option<(u64, u64)> {
    // SAFETY: an all-zero rusage is a valid value of that plain struct.
    let mut counts: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the call writes to the live struct passed to it and nothing else.
    let counted = unsafe { libc::getrusage(RUSAGE_THREAD, &mut counts) };
    (counted == 0).then_some((counts.ru_nivcsw as u64, counts.ru_nvcsw as u64))
}

/// The first two numbers of schedstat, where the kernel keeps it: time on a CPU, up to the last tick or
/// switch, and time spent waiting on a run queue.
fn schedstat() -> Option<(Nanos, Nanos)> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = stat.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok().map(Nanos);
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: masks reach the thread they are meant for. Method: a thread waits while another restricts
    /// it to the last CPU of its mask, and then asks for its own; the other's is as before. Names that
    /// are none are refused.
    #[test]
    fn masks_reach_other_threads() {
        let before = mask(0).expect("Linux tells");
        let last = before.iter().max().expect("a thread has a CPU");
        let (send_id, id) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send_id.send(thread_id()).expect("it is awaited");
            wait.recv().expect("it is sent");
            mask(0)
        });
        let id = id.recv().expect("it says so");
        assert_ne!(id, thread_id());
        set_mask(id, &[last].into_iter().collect()).expect("a part of what it had");
        go.send(()).expect("it listens");
        let theirs = thread
            .join()
            .expect("it does not panic")
            .expect("Linux tells");
        assert_eq!(theirs.iter().collect::<Vec<_>>(), [last]);
        let mine = mask(0).expect("as before");
        assert!(mine.iter().eq(before.iter()));
        for none in [0, u64::MAX, i32::MAX as u64] {
            let refused = set_mask(none, &before).expect_err("there is no such thread");
            assert_eq!(refused.kind(), RefusalKind::NoThread);
        }
    }

    /// Goal: a mask without a CPU that may be used is refused, and a program can tell why. Method: no CPU,
    /// and one that no machine has, for this thread, whose mask stays.
    #[test]
    fn masks_without_a_cpu_are_invalid() {
        let before = mask(0).expect("Linux tells");
        for cpus in [CpuSet::new(), CpuSet::from_iter([60_000])] {
            let refused = set_mask(thread_id(), &cpus).expect_err("it has no CPU");
            let told = (refused.kind(), refused.os_error());
            assert_eq!(told, (RefusalKind::Invalid, Some(libc::EINVAL)));
        }
        let after = mask(0).expect("as before");
        assert!(after.iter().eq(before.iter()));
    }

    /// Goal: a thread that runs is on a CPU, and one that sleeps is on none. Method: this thread looks at
    /// itself and at another one that waits for a word from it; kernels without the file cannot say.
    #[test]
    fn which_thread_is_on_a_cpu_is_known() {
        assert_ne!(is_on_cpu(thread_id()), Some(false));
        let (send_id, id) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send_id.send(thread_id()).expect("it is awaited");
            wait.recv().expect("it is sent");
        });
        let id = id.recv().expect("it says so");
        let can_say = is_on_cpu(id).is_some();
        // It has said so, and will soon sleep. On a busy machine it may lose its CPU before, and have it
        // again when it is asked once more: the first answer counts.
        let without = loop {
            match is_on_cpu(id) {
                Some(true) => std::thread::sleep(std::time::Duration::from_millis(1)),
                answer => break answer,
            }
        };
        assert_eq!(without, can_say.then_some(false));
        go.send(()).expect("it listens");
        thread.join().expect("it does not panic");
        assert_eq!(is_on_cpu(u64::MAX), None, "there is no such thread");
    }

    /// Goal: what was counted so far is never more than the exact time, whose question it is
    /// that makes the kernel count. Method: both, after some work.
    #[test]
    fn what_was_counted_so_far_is_behind_the_clock() {
        let begin = thread_clock().expect("Linux tells");
        while thread_clock().expect("as before") < begin + Nanos::from_millis(2) {}
        let (so_far, exact) = (usage_so_far(), usage());
        assert!(so_far.cpu <= exact.cpu, "{so_far:?} {exact:?}");
        assert!(so_far.runnable <= exact.runnable && so_far.voluntary <= exact.voluntary);
    }
}
