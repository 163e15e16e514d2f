//! The child of a fork may call everything: it gets an error or a harmless answer, and waits for nothing
//! that a thread of its parent held at that moment.
//!
//! Once some calls took locks there, which nothing gave back.

use super::*;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context as Task, Poll, Waker};

use paceline::{Event, Job, Latch, Role, WhenDone};

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

/// Handles of the parent's that the child uses up.
struct Inherited {
    polled: Job<()>,
    end: WhenDone,
    event: Event<Vec<u8>>,
    handle: Job<Vec<u8>>,
    input: Job<()>,
    latch: Latch,
    waker: Waker,
}

impl Inherited {
    fn new(js: &JobSystem, gate: &Event) -> Inherited {
        let held = || js.job("held").after(gate).run(|_| ());
        let mut polled = held();
        poll(&mut polled);
        let mut end = js.when_done(gate);
        let mut task = Task::from_waker(Waker::noop());
        assert!(Pin::new(&mut end).poll(&mut task).is_pending());
        let (event, handle) = js.event_with("event");
        let waker = Arc::new(Mutex::new(None));
        let found = waker.clone();
        let future = poll_fn(move |task| {
            *found.lock().expect("nothing panics inside") = Some(task.waker().clone());
            Poll::<()>::Pending
        });
        drop(js.spawn_future("pending", future));
        js.flush();
        until(|| waker.lock().expect("nothing panics inside").is_some());
        let waker = waker.lock().expect("nothing panics inside").take();
        Inherited {
            polled,
            end,
            event,
            handle,
            input: held(),
            latch: js.latch("latch", 2),
            waker: waker.expect("it was polled"),
        }
    }

    /// The answers are not looked at.
    fn use_up(self, js: &JobSystem) {
        let mut end = self.end;
        _ = Pin::new(&mut end).poll(&mut Task::from_waker(&self.waker));
        drop(end);
        drop(self.polled);
        self.waker.wake();
        self.event.complete_with(vec![1; 3]);
        _ = self.handle.try_wait();
        drop(self.input.try_then(|()| ()));
        self.latch.complete_one();
        self.latch.complete_one();
        drop(self.latch);
        _ = js.job("future").try_run_future(async {});
        _ = Pin::new(&mut js.when_done(js.id_from_bits(1 << 24 | 1).expect("it was one")))
            .poll(&mut Task::from_waker(Waker::noop()));
    }
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
    let (done, of_child) = (Flag::default(), Inherited::new(&js, &gate));
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
            how = fork_once(&js, &of_child);
            if how.is_some() {
                break;
            }
        }
        done.raise();
    });
    gate.complete();
    of_child.polled.wait();
    match how {
        None => println!("forks: well"),
        Some(signal) => println!("forks: a child ended by signal {signal}"),
    }
}

/// The signal that ended the child, if one did.
fn fork_once(js: &JobSystem, inherited: &Inherited) -> Option<i32> {
    // SAFETY: the child calls what this test is about, and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        // SAFETY: the default action ends the process, as it should if it hangs.
        unsafe { libc::alarm(5) };
        in_the_child(js, inherited);
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
fn in_the_child(js: &JobSystem, inherited: &Inherited) {
    _ = js.labels();
    _ = js.limits();
    _ = js.explain();
    _ = js.os_help();
    _ = js.resize(2);
    drop(js.adopt(Role::Main));
    // SAFETY: the place is never looked at again: the process ends before it is.
    unsafe { std::ptr::read(inherited) }.use_up(js);
}
