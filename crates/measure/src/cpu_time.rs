//! How long the process, its children or the calling thread have been on a CPU.
//!
//! `Machine::usage` gives it for a thread, with several other things, and reads a file for one of them;
//! these functions are called once a frame and once a background slice.

use event::Nanos;

/// CPU time of all threads of this process, those that have ended included.
pub fn process_cpu() -> Option<Nanos> {
    clock::process()
}

/// CPU time of the processes that this one has started, those of them that have ended and were waited
/// for.
pub fn children_cpu() -> Option<Nanos> {
    clock::children()
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Option<Nanos> {
    clock::thread()
}

#[cfg(unix)]
mod clock {
    use super::Nanos;

    pub(super) fn process() -> Option<Nanos> {
        read(libc::CLOCK_PROCESS_CPUTIME_ID)
    }

    pub(super) fn thread() -> Option<Nanos> {
        read(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    pub(super) fn children() -> Option<Nanos> {
        // SAFETY: an all-zero rusage is a valid value of that plain struct.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes to the live struct passed to it and nothing else.
        let done = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) };
        let nanos = |time: libc::timeval| {
            Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
        };
        (done == 0).then(|| nanos(used.ru_utime) + nanos(used.ru_stime))
    }

    fn read(clock: libc::clockid_t) -> Option<Nanos> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call writes to the live struct passed to it and nothing else.
        let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
        let nanos = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        (done == 0).then_some(Nanos(nanos))
    }
}

#[cfg(not(unix))]
mod clock {
    use super::Nanos;

    pub(super) fn process() -> Option<Nanos> {
        None
    }

    pub(super) fn thread() -> Option<Nanos> {
        None
    }

    pub(super) fn children() -> Option<Nanos> {
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Goal: the clocks count computing, and the process's counts other threads as well. Method:
    /// compute here, then on another thread.
    #[test]
    fn computing_is_counted() {
        let compute = || (0..2_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        let (process, thread) = (process_cpu().unwrap(), thread_cpu().unwrap());
        compute();
        let here = thread_cpu().unwrap() - thread;
        assert!(here > Nanos::ZERO);
        std::thread::spawn(compute).join().unwrap();
        assert!(process_cpu().unwrap() - process > here);
    }

    /// Goal: a child's CPU time is counted when the child has been waited for, and not before. Method: a
    /// shell that counts, before and after.
    #[test]
    fn children_count_when_they_have_ended() {
        let before = children_cpu().unwrap();
        let count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh")
            .args(["-c", count])
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success());
        assert!(children_cpu().unwrap() > before);
    }
}
