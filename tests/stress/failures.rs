//! A failure is reported once, to its waiter or to the hook.

use std::sync::OnceLock;
use std::task::{Wake, Waker};

use super::*;

#[test]
fn an_event_dropped_is_an_error_for_who_waits() {
    with_all("abandoned", |js| {
        for _ in 0..50 {
            let event = js.event("promise");
            let id = event.id();
            let ran = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&ran);
            let job = js
                .job("hopeful")
                .after(id)
                .schedule(move |_| seen.store(true, Ordering::Relaxed));
            thread::scope(|threads| {
                let waiter = threads.spawn(move || js.try_wait(id));
                threads.spawn(move || drop(event));
                let error = waiter.join().unwrap().expect_err("it was dropped");
                assert!(
                    matches!(&error, WaitError::Abandoned { label } if label.name == "promise"),
                    "{error}"
                );
            });
            let error = js.try_wait(job).expect_err("it depends on the event");
            assert!(
                matches!(&error, WaitError::Cancelled { label, cause, .. }
                    if label.name == "hopeful" && cause.name == "promise"),
                "{error}"
            );
            assert!(js.is_done(job) && js.is_done(id));
            assert!(!ran.load(Ordering::Relaxed));
            // Also for a later wait.
            let late = js.job("late").after(id).run(|_| ());
            assert!(matches!(late.try_wait(), Err(WaitError::Cancelled { .. })));
        }
    });
}

#[test]
fn panics_are_raised_once_where_they_are_awaited() {
    with_all("panics", |js| {
        for _ in 0..20 {
            let ran = Arc::new(AtomicUsize::new(0));
            let bad = js.job("bad").schedule(|_| fail("boom"));
            let count = |ran: &Arc<AtomicUsize>| {
                let ran = Arc::clone(ran);
                move |_: &Context<'_, Os>| _ = ran.fetch_add(1, Ordering::Relaxed)
            };
            let child = js.job("child").after(bad).schedule(count(&ran));
            let grandchild = js.job("grandchild").after(child).schedule(count(&ran));
            let bystander = js.job("bystander").schedule(count(&ran));
            let combined = js.combine([bad, bystander]);
            let error = js.try_wait(grandchild).expect_err("its ancestor failed");
            assert!(
                matches!(&error, WaitError::Cancelled { label, cause, .. }
                    if label.name == "grandchild" && cause.name == "bad"),
                "{error}"
            );
            assert!(matches!(
                js.try_wait(combined),
                Err(WaitError::Cancelled { .. })
            ));
            js.wait(bystander);
            // The payload goes to the first wait, the message to all of them.
            assert_eq!(panic_of(|| js.wait(bad)), "boom");
            match js.try_wait(bad) {
                Err(WaitError::Panicked {
                    payload: None,
                    message,
                    label,
                }) => {
                    assert_eq!((&*message, label.name), ("boom", "bad"));
                }
                other => panic!("{other:?}"),
            }
            let again = panic_of(|| js.wait(bad));
            assert!(again.contains("boom") && again.contains("bad"), "{again}");
            assert_eq!(ran.load(Ordering::Relaxed), 1, "only the bystander ran");
        }
        let stats = js.stats();
        assert_eq!(stats.panicked, 20);
    });
}

#[test]
fn scopes_joins_and_loops_raise_panics_when_all_is_through() {
    with_all("panics inside", |js| {
        for _ in 0..20 {
            scopes_raise_panics(js);
            joins_raise_panics(js);
            loops_raise_panics(js);
        }
        let values: Vec<u64> = (0..1000).collect();
        assert_eq!(js.enter(|cx| sum(cx, &values)), 499_500, "it still works");
    });
}

fn scopes_raise_panics(js: &JobSystem) {
    let ran = AtomicUsize::new(0);
    let message = panic_of(|| {
        js.scope(|scope| {
            for number in 0..20 {
                let ran = &ran;
                scope.spawn(move |_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    if number == 7 {
                        fail("in a scope");
                    }
                });
            }
        });
    });
    assert_eq!((message.as_str(), ran.into_inner()), ("in a scope", 20));

    let ran = AtomicUsize::new(0);
    let message = panic_of(|| {
        js.scope(|scope| {
            scope.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed));
            fail("the closure")
        })
    });
    assert_eq!((message.as_str(), ran.into_inner()), ("the closure", 1));
}

fn joins_raise_panics(js: &JobSystem) {
    let ledger = &Arc::new(Ledger::default());
    let (a, b) = (ledger.token(), ledger.token());
    let message = panic_of(|| {
        js.join(
            move |_| {
                let _a = a;
                fail("the first half")
            },
            move |_| drop(b),
        );
    });
    assert_eq!(message, "the first half");
    let (a, b) = (ledger.token(), ledger.token());
    let message = panic_of(|| {
        js.join(
            move |_| drop(a),
            move |_| {
                let _b = b;
                fail("the second half")
            },
        );
    });
    assert_eq!(message, "the second half");
    ledger.check_each_dropped_once(4);
}

fn loops_raise_panics(js: &JobSystem) {
    let message = panic_of(|| {
        js.parallel_for(0..10_000, Grain::Items(10), |part, _| {
            if part.contains(&5_000) {
                fail("in a loop");
            }
        });
    });
    assert_eq!(message, "in a loop");

    // Deep down: out through a join, a loop and a scope.
    let message = panic_of(|| {
        js.scope(|scope| {
            scope.spawn(|cx| {
                cx.parallel_for(0..8, Grain::Items(1), |part, cx| {
                    cx.join(
                        |_| (),
                        |_| {
                            if part.contains(&3) {
                                fail("deep")
                            }
                        },
                    );
                });
            });
        });
    });
    assert_eq!(message, "deep");
}

#[test]
fn the_hook_hears_of_panics_nobody_waits_for() {
    for workers in WORKERS {
        watched(&format!("hook, {workers} workers"), || {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let hook = Arc::clone(&heard);
            let js = Builder::new()
                .workers(workers)
                .on_unwaited_panic(move |panic| {
                    hook.lock()
                        .unwrap()
                        .push((panic.label.name, panic.message.to_string()));
                })
                .build()
                .unwrap();
            for _ in 0..10 {
                js.job("lost").schedule(|_| fail("unheard"));
            }
            drop(js);
            let heard = heard.lock().unwrap();
            assert_eq!(*heard, vec![("lost", "unheard".to_owned()); 10]);
        });
    }
}

/// The end of the job system waits for a job that runs. That is no waiter, and would not hear of its panic.
#[test]
fn the_hook_hears_of_panics_during_shutdown() {
    for workers in [1, 2, 8] {
        watched(&format!("hook at the end, {workers} workers"), || {
            let heard = Arc::new(AtomicUsize::new(0));
            let hook = Arc::clone(&heard);
            let js = Builder::new()
                .workers(workers)
                .on_unwaited_panic(move |_| _ = hook.fetch_add(1, Ordering::Relaxed))
                .build()
                .unwrap();
            let (says, started) = mpsc::channel();
            js.job("lost").schedule(move |_| {
                says.send(()).unwrap();
                // Most likely the job system is being dropped by then; it is heard either way.
                thread::sleep(Duration::from_millis(20));
                fail("unheard");
            });
            started.recv().unwrap();
            drop(js);
            assert_eq!(heard.load(Ordering::Relaxed), 1);
        });
    }
}

/// A job system whose hook counts its calls.
fn counting(workers: usize) -> (JobSystem, Arc<AtomicUsize>) {
    let heard = Arc::new(AtomicUsize::new(0));
    let hook = Arc::clone(&heard);
    let js = Builder::new()
        .workers(workers)
        .max_jobs(64)
        .on_unwaited_panic(move |panic| {
            assert_eq!(&*panic.message, "unheard");
            hook.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    (js, heard)
}

/// A waiter that gave up does not hear of a panic that comes later.
#[test]
fn the_hook_hears_of_panics_after_waits_that_gave_up() {
    for workers in WORKERS {
        watched(&format!("hook after timeouts, {workers} workers"), || {
            let (js, heard) = counting(workers);
            let gate = js.event("gate");
            let job = js
                .job("lost")
                .after(gate.id())
                .schedule(|_| fail("unheard"));
            for _ in 0..100 {
                assert!(!js.wait_timeout(job, Duration::from_micros(1)).unwrap());
            }
            gate.complete();
            drop(js);
            assert_eq!(heard.load(Ordering::Relaxed), 1);
        });
    }
}

/// Goal: a wait that gives up takes back its own ear and not that of the wait underneath it on the
/// same thread. Method: main waits for `last` and meanwhile runs `nested`, which waits for `last`,
/// too, gives up, and only then lets the one worker go on, which runs `last`. Its panic is heard by
/// the outer wait, so the hook must be silent.
#[test]
fn the_hook_is_silent_after_an_inner_wait_that_gave_up() {
    watched("hook and nested waits", || {
        for _ in 0..50 {
            let (js, heard) = counting(1);
            let js = Arc::new(js);
            let opener = js.event("opener");
            let (is_held, held) = mpsc::channel();
            let (go_on, may_go_on) = mpsc::channel();
            let opens = opener.id();
            js.job("busy").schedule(move |_| {
                is_held.send(()).unwrap();
                may_go_on.recv().unwrap();
                opener.complete();
            });
            held.recv().unwrap();
            let last = Arc::new(OnceLock::new());
            let (theirs, target) = (Arc::clone(&js), Arc::clone(&last));
            let nested = js.job("nested").schedule(move |_| {
                let target = *target.get().expect("set before anybody can run this");
                let gone = theirs.wait_timeout(target, Duration::from_micros(50));
                assert!(!gone.expect("it has not failed yet"));
                drop(theirs);
                go_on.send(()).unwrap();
            });
            let id = js
                .job("last")
                .after_all([nested, opens])
                .schedule(|_| fail("unheard"));
            last.set(id).expect("set once");
            let error = js.try_wait(id).expect_err("it panics");
            assert!(matches!(error, WaitError::Panicked { .. }), "{error}");
            drop(Arc::into_inner(js).expect("nested is over"));
            assert_eq!(heard.load(Ordering::Relaxed), 0);
        }
    });
}

/// A panic cancels the jobs after it. If a thread waits for one of them, the wait names the panic; if none
/// does, the hook is called, once however many ends there are.
#[test]
fn the_hook_hears_of_panics_whose_consequences_nobody_waits_for() {
    for workers in WORKERS {
        watched(&format!("hook of a chain, {workers} workers"), || {
            for is_awaited in [true, false] {
                let (js, heard) = counting(workers);
                let gate = js.event("gate");
                let first = js
                    .job("first")
                    .after(gate.id())
                    .schedule(|_| fail("unheard"));
                let second = js.job("second").after(first).schedule(|_| ());
                if is_awaited {
                    let third = js.job("third").after(second).run(|_| ());
                    gate.complete();
                    let error = third.try_wait().expect_err("it was cancelled");
                    assert!(
                        matches!(&error, WaitError::Cancelled { label, cause, message, .. }
                            if label.name == "third" && cause.name == "first"
                                && message.as_deref() == Some("unheard")),
                        "{error}"
                    );
                } else {
                    for _ in 0..5 {
                        js.job("third").after(second).schedule(|_| ());
                    }
                    gate.complete();
                }
                drop(js);
                let calls = usize::from(!is_awaited);
                assert_eq!(heard.load(Ordering::Relaxed), calls, "{is_awaited}");
            }
        });
    }
}

/// A future that is polled again and again keeps one waker, the last; once dropped it hears nothing.
#[test]
fn futures_polled_often_are_woken_once() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for workers in WORKERS {
        watched(&format!("polls, {workers} workers"), || {
            let (js, _) = counting(workers);
            let gate = js.event("gate");
            let mut kept = js.job("kept").after(gate.id()).run(|_| 7);
            let mut dropped = js.job("dropped").after(gate.id()).run(|_| 8);
            let counts = [(); 3].map(|()| Arc::new(Count(AtomicUsize::new(0))));
            let [early, late, none] = counts.clone().map(Waker::from);
            let poll = |job: &mut Job<i32>, waker: &Waker| {
                let mut task = std::task::Context::from_waker(waker);
                std::pin::Pin::new(job).poll(&mut task).is_pending()
            };
            // Far more often than there is room for listeners.
            for _ in 0..10_000 {
                assert!(poll(&mut kept, &early));
            }
            assert!(poll(&mut kept, &late) && poll(&mut dropped, &none));
            drop(dropped);
            gate.complete();
            assert_eq!(kept.wait(), 7);
            drop(js);
            let calls = counts.map(|count| count.0.load(Ordering::Relaxed));
            assert_eq!(calls, [0, 1, 0]);
        });
    }
}

/// A waiter that runs the job inside its own wait for it hears of its panic although it never had to listen.
#[test]
fn the_hook_is_silent_where_a_wait_hears() {
    for workers in WORKERS {
        watched(&format!("heard panics, {workers} workers"), || {
            let (js, heard) = counting(workers);
            if workers == 0 {
                let alone = js.schedule(|_| fail("unheard"));
                assert!(js.try_wait(alone).is_err());
                let first = js.schedule(|_| fail("unheard"));
                let second = js.job("second").after(first).schedule(|_| ());
                assert!(js.try_wait(second).is_err());
            }
            // Heard by its handle; that a job after it is not waited for changes nothing.
            let first = js.job("first").run(|_| fail("unheard"));
            js.job("second").after(first.id()).schedule(|_| ());
            assert!(first.try_wait().is_err());
            drop(js);
            assert_eq!(heard.load(Ordering::Relaxed), 0);
        });
    }
}

/// A job that a panic has cancelled but that is held back by something else as well never ends by
/// itself: the end of the job system reports it.
#[test]
fn the_hook_hears_of_panics_whose_consequences_never_end() {
    for workers in WORKERS {
        watched(&format!("held back, {workers} workers"), || {
            let (js, heard) = counting(workers);
            let never = js.event("never");
            let first = js.job("first").schedule(|_| fail("unheard"));
            js.job("second")
                .after_all([first, never.id()])
                .schedule(|_| ());
            drop(js);
            assert_eq!(heard.load(Ordering::Relaxed), 1);
            drop(never);
        });
    }
}
