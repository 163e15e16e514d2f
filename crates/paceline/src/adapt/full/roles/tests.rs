//! Roles and help on this machine.

use platform::{Class, Os};

use super::*;
use crate::{Adopted, Builder, JobSystem, Lane, Role};

/// The class of the calling thread; none if the system cannot say.
fn class() -> Option<Class> {
    let now = Os.set_sched_params(Os.thread_id(), &SchedParams::default());
    now.ok()?.class
}

/// The classes of all workers, asked by a job on each.
fn classes(js: &JobSystem<Os>) -> Vec<Option<Class>> {
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(js.workers()));
    let (send, receive) = std::sync::mpsc::channel();
    for _ in 0..js.workers() {
        let (send, barrier) = (send.clone(), barrier.clone());
        js.schedule(move |_| {
            barrier.wait();
            let _ = send.send(class());
        });
    }
    drop(send);
    js.flush();
    receive.iter().collect()
}

fn build(requests: &[SchedParams]) -> JobSystem<Os> {
    let mut builder = Builder::small().workers(2);
    for request in requests {
        builder = builder.os_help(request.clone());
    }
    builder.build().unwrap()
}

/// Goal: help is for threads with a role and workers together, or for no thread. Threads without a role are
/// left alone. All is as before at the end. Method: classes of this thread, another one and all workers,
/// before, with and after one role and two, with a request that may be refused.
#[test]
fn help_is_for_all_or_none_and_ends() {
    let js = build(&[SchedParams::nice(-5)]);
    let before = class();
    assert!(
        js.os_help()
            .iter()
            .all(|help| !help.granted && help.why == NO_ROLE_ADOPTED)
    );
    assert_eq!(classes(&js), [before; 2]);
    let main = js.adopt(Role::Main);
    let help = js.os_help().remove(0);
    assert_eq!(help.granted, help.why.is_empty(), "{help:?}");
    let wanted = if help.granted {
        help.asked.class
    } else {
        before
    };
    assert_eq!(class(), wanted);
    assert_eq!(classes(&js), [wanted; 2]);
    let other = std::thread::scope(|scope| scope.spawn(class).join().unwrap());
    // It was started by a thread that is helped, and begins as threads usually do.
    let usual = Some(Class::Fair { nice: 0 });
    assert!(other == before || other == usual, "{other:?} has no role");
    let audio = js.adopt(Role::Audio);
    assert_eq!((main.role(), audio.role()), (Role::Main, Role::Audio));
    js.resize(3).unwrap();
    assert_eq!(
        classes(&js),
        [wanted; 3],
        "a worker that comes later gets it, too"
    );
    drop(audio);
    assert_eq!((class(), classes(&js)), (wanted, vec![wanted; 3]));
    drop(main);
    assert_eq!((class(), classes(&js)), (before, vec![before; 3]));
    assert!(!js.os_help()[0].granted);
}

/// Goal: a thread without a role that runs a raised job in its wait is left as it is; with a role it has the
/// help. Method: no workers, so that the waiting thread runs the job; a thread with a role waits for it in
/// the frame lane, and the job asks for its thread's class and mask when it was raised.
#[test]
fn a_raised_job_helps_no_thread_without_a_role() {
    let js = Builder::small().workers(0);
    let js = js.os_help(SchedParams::nice(-5)).build().unwrap();
    let now = || (class(), Os.machine().allowed(&[Os.thread_id()]));
    let run = |has_role: bool| {
        let (tell_id, told_id) = std::sync::mpsc::channel();
        let (begin, begins) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let js = &js;
            let waiter = scope.spawn(move || {
                let before = now();
                let role = has_role.then(|| js.adopt(Role::Render));
                let job = js.job("wanted").background().run(move |cx| {
                    let _ = begin.send(());
                    while cx.report().jobs.iter().all(|job| job.lane != Lane::Frame) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    now()
                });
                let _ = tell_id.send(job.id());
                let meanwhile = job.wait();
                drop(role);
                (before, meanwhile)
            });
            let main = js.adopt(Role::Main);
            let granted = js.os_help()[0].granted;
            let job = told_id.recv().unwrap();
            begins.recv().unwrap();
            js.in_lane(Lane::Frame, || js.wait(job));
            drop(main);
            let (before, meanwhile) = waiter.join().unwrap();
            (before, meanwhile, granted)
        })
    };
    let (before, meanwhile, _) = run(false);
    assert_eq!(before, meanwhile);
    let (before, meanwhile, granted) = run(true);
    let helped = Some(Class::Fair { nice: -5 });
    assert_eq!(meanwhile.0, if granted { helped } else { before.0 });
}

/// Goal: a request that makes no sense is refused with a reason, and does not touch the other one. Method:
/// a real-time priority that does not exist, and a slice.
#[test]
fn one_refusal_does_not_refuse_the_others() {
    let slice = SchedParams::slice(event::Nanos::from_micros(300));
    let js = build(&[SchedParams::round_robin(200), slice]);
    let before = class();
    let _main = js.adopt(Role::Main);
    let [bad, _] = &js.os_help()[..] else {
        panic!("two requests");
    };
    assert!(!bad.granted && !bad.why.is_empty(), "{bad:?}");
    assert_eq!((class(), classes(&js)), (before, vec![before; 2]));
}

/// Goal: without a request nothing is asked of the system, and a role costs nothing. Method: a role without
/// requests.
#[test]
fn a_role_without_requests_changes_nothing() {
    let js = build(&[]);
    let before = class();
    let main = js.adopt(Role::Render);
    assert_eq!((class(), js.os_help()), (before, Vec::new()));
    drop(main);
}

/// Goal: a worker that comes while there is help goes back to the class that the other workers had, also
/// where that is not the class of most threads. Method: a thread of nice 5, whose workers have that from
/// it where threads pass it on. One more worker comes while the thread has a role. (Where help is not
/// permitted, no thread has a class to go back from.)
#[test]
fn a_newcomer_goes_back_to_the_class_of_the_others() {
    let thread = std::thread::spawn(|| {
        let can_say = Os
            .set_sched_params(Os.thread_id(), &SchedParams::nice(5))
            .is_ok();
        let before = class();
        assert_eq!(before == Some(Class::Fair { nice: 5 }), can_say);
        let js = build(&[SchedParams::nice(-5)]);
        let theirs = classes(&js)[0];
        assert_eq!(classes(&js), [theirs; 2]);
        assert!(cfg!(not(target_os = "linux")) || theirs == before);
        let main = js.adopt(Role::Main);
        js.resize(3).unwrap();
        assert_eq!(classes(&js), [class(); 3]);
        drop(main);
        assert_eq!((class(), classes(&js)), (before, vec![theirs; 3]));
    });
    thread.join().unwrap();
}

/// Goal: a thread that ends without having given its role back is on no list any more, so that the next
/// thread with its id is left alone. The workers are as they were before it came. Method: guards forgotten,
/// one and two, on a thread with a thread slot and on one without; another thread with a role stays. (Where
/// threads have no ids, nothing is done to one.)
#[test]
fn a_forgotten_role_ends_with_its_thread() {
    if Os.thread_id() == 0 {
        return;
    }
    let js = build(&[SchedParams::nice(-5)]);
    let before = classes(&js);
    let threads = || {
        js.shared()
            .adapt
            .helping
            .state
            .with(|state| state.threads.len())
    };
    let helped = || {
        let state = &js.shared().adapt.helping.state;
        state.with(|state| {
            state
                .requests
                .iter()
                .map(HelpRequest::helped)
                .sum::<usize>()
        })
    };
    for (roles, has_slot) in [(1, false), (2, false), (1, true)] {
        std::thread::scope(|scope| {
            let forgetful = scope.spawn(|| {
                if has_slot {
                    js.schedule(|_| {});
                }
                (0..roles).for_each(|_| std::mem::forget(js.adopt(Role::Audio)));
                threads()
            });
            // It is joined, and not only left by the scope: its thread-locals are gone by then.
            assert_eq!(forgetful.join().unwrap(), 1);
        });
        assert_eq!((threads(), helped()), (0, 0));
        assert!(!js.os_help()[0].granted);
        assert_eq!(classes(&js), before);
    }
    let main = js.adopt(Role::Main);
    let with_main = helped();
    std::thread::scope(|scope| {
        let forgetful = scope.spawn(|| std::mem::forget(js.adopt(Role::Audio)));
        forgetful.join().unwrap();
    });
    assert_eq!((threads(), helped()), (1, with_main));
    drop(main);
    assert_eq!((threads(), helped(), classes(&js)), (0, 0, before));
}

/// Goal: a guard that is dropped after its thread was taken off the list does no harm. Method: a guard in a
/// thread-local that was made before the thread's record, and one that was made after it, so that each of
/// the two is destroyed first once. (The job system then has to live for ever.)
#[test]
fn a_guard_may_outlive_its_thread_in_a_thread_local() {
    use std::cell::RefCell;
    if Os.thread_id() == 0 {
        return;
    }
    thread_local! {
        static GUARD: RefCell<Option<Adopted<'static, Os>>> = const { RefCell::new(None) };
    }
    let js: &'static JobSystem<Os> = Box::leak(Box::new(build(&[])));
    for made_earlier in [false, true] {
        let thread = std::thread::spawn(move || {
            if made_earlier {
                GUARD.with(|_| {});
            }
            let guard = js.adopt(Role::Render);
            GUARD.with(|place| *place.borrow_mut() = Some(guard));
        });
        thread.join().unwrap();
        let threads = js
            .shared()
            .adapt
            .helping
            .state
            .with(|state| state.threads.len());
        assert_eq!(threads, 0);
    }
}
