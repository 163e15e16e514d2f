//! A thread's requests to Linux's scheduler: CPUs, discipline, slice; and the answers.

use std::io::Error;
use std::mem::{self, MaybeUninit};

use event::Nanos;
use policy::{Attr, Discipline};

/// The kernel's `struct sched_attr`, first version (Linux 3.14).
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The calling thread runs on these CPUs only, as its attributes say. Its id.
///
/// # Errors
/// The refused request, and why.
pub(super) fn prepare(cpus: &[u32], attr: &Attr) -> Result<i32, String> {
    pin(cpus)?;
    set_attr(attr).map_err(|error| format!("{}: {error}", name(attr.discipline)))?;
    // Timers of fair threads may be late by 50 µs, to ring together; here they are measured.
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    // SAFETY: takes nothing.
    Ok(unsafe { libc::gettid() })
}

/// The calling thread runs on these CPUs only.
///
/// # Errors
/// If the system refuses.
pub(crate) fn pin(cpus: &[u32]) -> Result<(), String> {
    // SAFETY: a set of CPUs may be all zeros; the macro-like functions write inside it only, which they
    // check; the call reads it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, mem::size_of_val(&set), &set)
    };
    match done {
        0 => Ok(()),
        _ => Err(format!("CPUs {cpus:?}: {}", Error::last_os_error())),
    }
}

fn set_attr(attr: &Attr) -> Result<(), Error> {
    let policy = match attr.discipline {
        Discipline::Fair => libc::SCHED_OTHER,
        Discipline::Batch => libc::SCHED_BATCH,
        Discipline::Idle => libc::SCHED_IDLE,
        Discipline::Fifo => libc::SCHED_FIFO,
        Discipline::RoundRobin => libc::SCHED_RR,
    };
    let realtime = attr.discipline.is_realtime();
    let wanted = SchedAttr {
        size: mem::size_of::<SchedAttr>() as u32,
        policy: policy as u32,
        flags: 0,
        nice: if realtime { 0 } else { i32::from(attr.nice) },
        priority: if realtime {
            u32::from(attr.priority)
        } else {
            0
        },
        runtime: if realtime {
            0
        } else {
            attr.slice.map_or(0, |slice| slice.0)
        },
        deadline: 0,
        period: 0,
    };
    // SAFETY: the call reads a live struct of the size it says.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    match done {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn name(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::Fair => "a fair thread of this niceness",
        Discipline::Batch => "SCHED_BATCH",
        Discipline::Idle => "SCHED_IDLE",
        Discipline::Fifo => "SCHED_FIFO",
        Discipline::RoundRobin => "SCHED_RR",
    }
}

/// Whether threads of this process may have a real-time discipline; tried on a thread that ends at once.
pub(crate) fn may_run_realtime() -> bool {
    let tried = std::thread::spawn(|| set_attr(&Attr::fifo(1)).is_ok());
    tried.join().unwrap_or(false)
}

/// How often the calling thread was switched away from.
pub(super) fn switches_of_this_thread() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable, and all zeros are a valid `rusage`.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// The time between two of the kernel's ticks: its coarse clock goes on with each.
pub(crate) fn tick() -> Option<Nanos> {
    let mut resolution = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes to the live struct, for which all zeros are valid too.
    let (done, resolution) = unsafe {
        let done = libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, resolution.as_mut_ptr());
        (done, resolution.assume_init())
    };
    let nanos = resolution.tv_nsec as u64;
    (done == 0 && nanos > 0).then_some(Nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thread gets what it asks for, and is told when it does not. Method: niceness, which is never
    /// refused; a CPU that is not there.
    #[test]
    fn threads_get_what_they_ask_for() {
        let asked = std::thread::spawn(|| {
            let cpu = (0..1024)
                .find(|&cpu| pin(&[cpu]).is_ok())
                .expect("some CPU");
            let tid = prepare(&[cpu], &Attr::nice(7)).unwrap();
            assert!(tid > 0);
            // SAFETY: takes numbers only.
            assert_eq!(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }, 7);
            assert!(
                prepare(&[1023], &Attr::nice(7))
                    .unwrap_err()
                    .contains("1023")
            );
        });
        asked.join().unwrap();
    }

    /// Goal: switches are counted. Method: a thread that sleeps.
    #[test]
    fn a_sleep_is_a_switch() {
        let before = switches_of_this_thread();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(switches_of_this_thread() > before);
    }
}
