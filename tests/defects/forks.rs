//! The child of a fork may call everything: it gets an error or a harmless answer, and waits for nothing
//! that a thread of its parent held at that moment.
//!
//! Once some calls took locks there, which nothing gave back.

use super::*;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Waker};

use paceline::{Job, Role};

use crate::process::{child, is_child};

/// Goal: as above. Method: threads of the parent do nothing but make calls that take locks, so that they hold
/// them nearly always; the parent forks again and again. An alarm ends a child that hangs.
#[test]
fn the_child_of_a_fork_takes_no_locks() {
    let said = child("defects::forks::forks_again_and_again", &[]);
    assert!(said.is_success(), "{said}");
    assert_eq!(said.line("forks: ").as_deref(), Some("well"), "{said}");
}

fn poll(future: &mut Job<()>) {
    let mut task = Task::from_waker(Waker::noop());
    assert!(Pin::new(future).poll(&mut task).is_pending());
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn forks_again_and_again() {
    const FORKS: usize = 40;
    if !is_child() {
        return;
    }
    let js = system(1);
    // Many names: a list of them takes its time.
    for number in 0..2_000 {
        let name: &'static str = Box::leak(format!("name {number}").into_boxed_str());
        js.wait(js.job(name).schedule(|_| ()));
    }
    let gate = js.event("gate");
    let future = || js.job("held").after(gate.id()).run(|_| ());
    let (done, mut of_child) = (Flag::default(), future());
    poll(&mut of_child);
    let mut how = None;
    let repeat = |call: &dyn Fn()| {
        while !done.is_up() {
            call();
        }
    };
    thread::scope(|threads| {
        threads.spawn(|| repeat(&|| _ = js.labels()));
        threads.spawn(|| repeat(&|| _ = js.limits()));
        threads.spawn(|| repeat(&|| _ = js.explain()));
        threads.spawn(|| repeat(&|| _ = js.os_help()));
        threads.spawn(|| {
            let mut polled = future();
            while !done.is_up() {
                poll(&mut polled);
            }
        });
        for fork in 0..FORKS {
            // The number of workers changes in between: that takes locks, too.
            js.resize(1 + fork % 2).expect("a few");
            how = fork_once(&js, &mut of_child);
            if how.is_some() {
                break;
            }
        }
        done.raise();
    });
    gate.complete();
    of_child.wait();
    match how {
        None => println!("forks: well"),
        Some(signal) => println!("forks: a child ended by signal {signal}"),
    }
}

/// The signal that ended the child, if one did.
fn fork_once(js: &JobSystem, polled: &mut Job<()>) -> Option<i32> {
    // SAFETY: the child calls what this test is about, and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        // SAFETY: the default action ends the process, as it should if it hangs.
        unsafe { libc::alarm(5) };
        in_the_child(js, polled);
        // SAFETY: ends this process and runs nothing else.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is writable, `pid` our child, which ends by itself or by its alarm.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(ended, pid);
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// The answers are not looked at.
fn in_the_child(js: &JobSystem, polled: &mut Job<()>) {
    _ = js.labels();
    _ = js.limits();
    _ = js.explain();
    _ = js.os_help();
    _ = js.resize(2);
    drop(js.adopt(Role::Main));
    // SAFETY: the place is never looked at again: the process ends before it is.
    drop(unsafe { std::ptr::read(polled) });
}
