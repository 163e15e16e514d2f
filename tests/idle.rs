//! Goal: a job system with nothing to do costs nothing, neither when it is new nor after a burst.
//!
//! Method: a process of its own, so that no other test's computing is counted. It does nothing for two
//! seconds; the CPU time of the whole process, the wake-ups sent and the parks are read before and after.
//! This is the one place where time is asserted: CPU time that must not be used. The same pauses before there
//! is a job system are the control, because a hypervisor that takes the CPU away while a thread wakes up has
//! the kernel charge that to the thread.

use std::mem::MaybeUninit;
use std::thread::sleep;
use std::time::Duration;

use paceline::{Builder, Grain, JobSystem, Stats};

use crate::process::{child, is_child};

const NOTHING: Duration = Duration::from_secs(2);
/// Pauses of a kind. Threads that do not rest show in each.
const PAUSES: usize = 3;
const ALLOWED: Duration = Duration::from_millis(1);

/// User and system time of this process so far.
fn cpu_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and all-zero is a valid `rusage`.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        })
        .sum()
}

/// Until the workers are asleep. A loaded machine may take longer than the first 100 ms to let them get
/// there; the rounds are few, so the checks below find workers that never rest.
fn settle(js: &JobSystem) {
    let mut before = js.stats();
    for _ in 0..10 {
        sleep(Duration::from_millis(100));
        let now = js.stats();
        if now == before {
            return;
        }
        before = now;
    }
}

/// The CPU time of this process while it does nothing.
fn pause() -> Duration {
    let before = cpu_time();
    sleep(NOTHING);
    cpu_time() - before
}

/// `bare`: the CPU time of a pause without a job system.
fn assert_idle(js: &JobSystem, when: &str, bare: Duration) {
    settle(js);
    let mut least = Duration::MAX;
    for _ in 0..PAUSES {
        let before = js.stats();
        let used = pause();
        let happened = js.stats().since(&before);
        println!("{when}: {used:?} of CPU in {NOTHING:?}, without a job system {bare:?}");
        assert_eq!(happened, Stats::default(), "{when}");
        least = least.min(used);
        if least <= bare + ALLOWED {
            return;
        }
    }
    panic!("{when}: {least:?}, without a job system {bare:?}");
}

#[test]
fn an_idle_job_system_uses_no_cpu() {
    let output = child("idle::in_child", &[]);
    assert!(output.is_success(), "{output}");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn in_child() {
    if !is_child() {
        return;
    }
    let bare = (0..PAUSES).map(|_| pause()).max().unwrap_or_default();
    let js = Builder::new().workers(2).build().expect("it can be built");
    assert_idle(&js, "new", bare);
    let jobs = (0..10_000).map(|_| js.schedule(|_| ())).collect::<Vec<_>>();
    for &job in &jobs {
        js.wait(job);
    }
    js.parallel_for(0..1 << 20, Grain::Auto, |part, _| {
        std::hint::black_box(part);
    });
    js.scope(|s| (0..1_000).for_each(|_| s.spawn(|_| ())));
    assert!(js.stats().jobs >= 11_000);
    assert_idle(&js, "after a burst", bare);
}
