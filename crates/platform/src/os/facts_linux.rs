//! What Linux says about the machine and about the calling thread.

use std::fs;
use std::io;
use std::mem;

use event::Nanos;

use crate::{CpuPlace, CpuSet, MaskError, Topology, Usage};

/// Of the kernel's interface; the libc crate lacks it on Android.
const RUSAGE_THREAD: libc::c_int = 1;

const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs the process may use and what they share.
///
/// `effective_parallelism` is what std computes from the affinity mask and the cgroup quota at the
/// time of the first call.
pub(super) fn topology() -> Topology {
    let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
    let allowed = mask().unwrap_or_else(|| (0..parallelism as u32).collect());
    let places = allowed.iter().map(place).collect();
    Topology::new(places, parallelism, model())
}

fn place(cpu: u32) -> CpuPlace {
    let first_of = |path: String| {
        let list = fs::read_to_string(format!("{CPUS}/cpu{cpu}/{path}")).unwrap_or_default();
        CpuSet::parse(&list).iter().next()
    };
    // Caches are listed from small to large: the last index that can be read is the last level.
    let cache = (0..8)
        .filter_map(|index| first_of(format!("cache/index{index}/shared_cpu_list")))
        .next_back();
    CpuPlace {
        cpu,
        core: first_of("topology/thread_siblings_list".into()).unwrap_or(cpu),
        cache: cache.unwrap_or(0),
        node: node_of(cpu),
    }
}

fn node_of(cpu: u32) -> u32 {
    let Ok(entries) = fs::read_dir(format!("{CPUS}/cpu{cpu}")) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .next()
        .unwrap_or(0)
}

fn model() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(
            || std::env::consts::ARCH.to_string(),
            |(_, name)| name.trim().to_string(),
        )
}

/// The calling thread's affinity mask, on machines of up to 64 Ki CPUs.
fn mask() -> Option<CpuSet> {
    let mut words = vec![0u64; 1 << 10];
    // SAFETY: the kernel writes at most the given number of bytes into the buffer.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
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

pub(super) fn set_mask(cpus: &CpuSet) -> Result<(), MaskError> {
    let words = cpus.iter().max().map_or(1, |cpu| cpu as usize / 64 + 1);
    let mut mask = vec![0u64; words];
    for cpu in cpus.iter() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads exactly the given number of bytes from the buffer.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            mask.len() * 8,
            mask.as_ptr(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(MaskError(io::Error::last_os_error().to_string())),
    }
}

pub(super) fn current_cpu() -> Option<u32> {
    // SAFETY: no arguments, no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

pub(super) fn usage() -> Usage {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: an all-zero rusage is a valid value of that plain struct.
    let mut counts: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: both calls write to the live structs passed to them and nothing else.
    let (timed, counted) = unsafe {
        (
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time),
            libc::getrusage(RUSAGE_THREAD, &mut counts),
        )
    };
    let cpu = Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
    Usage {
        cpu: (timed == 0).then_some(cpu),
        runnable: runnable(),
        involuntary: (counted == 0).then_some(counts.ru_nivcsw as u64),
    }
}

/// The second number of schedstat: time spent waiting on a run queue, where the kernel keeps it.
fn runnable() -> Option<Nanos> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().nth(1)?.parse().ok().map(Nanos)
}
