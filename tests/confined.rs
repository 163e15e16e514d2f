//! Goal: the calls that are said to make no system call make none: the kernel itself refuses them all.
//!
//! Method: a thread readies itself, and then gives up every system call but `read`, `write` and its own exit
//! (seccomp's strict mode). From then on the kernel kills it if it makes another one. It does so in a process
//! of its own. As a control, the same thread with a call that wakes a worker is killed.

#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use paceline::{Builder, JobSystem};

use crate::process::child;

/// What the thread does when it is confined.
const CALLS: &str = "PACELINE_TEST_CALLS";

/// Rounds of calls, each with three jobs.
const ROUNDS: usize = 500;

/// The calls of the table of `warm_up` that neither wake nor lock.
fn calm_calls(js: &JobSystem) {
    let first = js.job("first").quiet().schedule(|_| ());
    let second = js.job("second").after(first).quiet().schedule(|_| ());
    let third = js.job("third").after_all([first, second]).quiet();
    let third = third.run(|_| 1);
    std::hint::black_box((js.is_done(second), third.is_done(), js.stats()));
}

fn confine() -> bool {
    // SAFETY: no pointers. The thread makes no other system call from now on, or is killed.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) == 0 }
}

/// The number of the confined thread, and whether it got to its end.
static THREAD: AtomicI64 = AtomicI64::new(0);
static IS_THROUGH: AtomicBool = AtomicBool::new(false);

fn confined(js: &JobSystem, is_calm: bool) {
    js.warm_up(4 * ROUNDS);
    calm_calls(js);
    js.flush();
    // The worker sleeps by then, or the control proves nothing.
    std::thread::sleep(Duration::from_millis(300));
    // SAFETY: no pointers.
    THREAD.store(unsafe { libc::gettid() }.into(), Ordering::SeqCst);
    if !confine() {
        println!("end: refused");
        std::process::exit(0);
    }
    if is_calm {
        for _ in 0..ROUNDS {
            calm_calls(js);
        }
    } else {
        js.schedule(|_| ());
    }
    IS_THROUGH.store(true, Ordering::SeqCst);
    // SAFETY: this thread ends here, with nothing that others need.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// The process of the tests below.
#[test]
#[ignore = "part of another test"]
fn confined_child() {
    let Some(calls) = std::env::var_os(CALLS) else {
        return;
    };
    let js: &'static JobSystem = Box::leak(Box::new(Builder::new().workers(1).build().unwrap()));
    let is_calm = calls == "calm";
    std::thread::spawn(move || confined(js, is_calm));
    let end = loop {
        std::thread::sleep(Duration::from_millis(1));
        let thread = THREAD.load(Ordering::SeqCst);
        if IS_THROUGH.load(Ordering::SeqCst) {
            break "through";
        }
        if thread != 0 && !std::path::Path::new(&format!("/proc/self/task/{thread}")).exists() {
            break if IS_THROUGH.load(Ordering::SeqCst) {
                "through"
            } else {
                "killed"
            };
        }
    };
    println!("end: {end}");
    // Not by way of the job system's end: a thread may have been killed in the middle of a call.
    std::process::exit(0);
}

fn end_of(calls: &str) -> Option<String> {
    let said = child("confined::confined_child", &[(CALLS, OsStr::new(calls))]);
    let end = said.line("end: ");
    assert!(end.is_some(), "{said}");
    end.filter(|end| end != "refused")
}

#[test]
fn quiet_calls_make_no_system_call() {
    let Some(end) = end_of("calm") else {
        return; // This system confines no threads.
    };
    assert_eq!(end, "through");
    let control = end_of("loud");
    assert_eq!(
        control.as_deref(),
        Some("killed"),
        "a wake-up is a system call"
    );
}
