//! How jobs, handles, events and the job system end, also all at the same time.

use super::*;

#[test]
fn bodies_and_results_are_dropped_once() {
    with_all("drops", |js| {
        let ledger = &Arc::new(Ledger::default());
        for round in 0..100 {
            let make = || {
                let (body, result) = (ledger.token(), ledger.token());
                js.job("small").run(move |_| {
                    drop(body);
                    result
                })
            };
            let large = || {
                let (body, result) = (Large::new(ledger, 1), Large::new(ledger, 2));
                js.job("large").run(move |_| {
                    let body = body;
                    assert_eq!(body.numbers[round % 100], 1);
                    result
                })
            };
            drop(make());
            drop(large());
            drop(make().wait());
            assert_eq!(large().wait().numbers[99], 2);
            drop(make().try_wait().unwrap());
            let late = make();
            js.wait(late.id());
            assert!(late.is_done());
            drop(late);
            let elsewhere = large();
            thread::scope(|threads| _ = threads.spawn(move || drop(elsewhere.wait())));
            assert!(matches!(make().wait_timeout(AGES), Ok(Ok(_))));
            drop(block_on(js, make()));
            assert_eq!(block_on(js, large()).numbers[0], 2);
            // Held back: given back by a wait that is too short, then dropped while it is not over.
            let gate = js.event("gate");
            let token = ledger.token();
            let held = js.job("held").after(gate.id()).run(move |_| token);
            let held = match held.wait_timeout(Duration::ZERO) {
                Ok(Err(held)) => held,
                _ => panic!("it cannot be over"),
            };
            drop(held);
            // And one that is woken through a waker.
            let token = ledger.token();
            let woken = js.job("woken").after(gate.id()).run(move |_| token);
            thread::scope(|threads| {
                threads.spawn(|| gate.complete());
                drop(block_on(js, woken));
            });
            // Bodies that panic, bodies that never run, their handles dropped early and late.
            let (a, b, c) = (ledger.token(), Large::new(ledger, 0), ledger.token());
            let bad = js.job("bad").run(move |_| -> Token {
                let _a = &a;
                fail("bad")
            });
            let worse = js.job("worse").after(bad.id()).run(move |_| b);
            drop(js.job("worst").after(worse.id()).run(move |_| c));
            assert!(matches!(worse.try_wait(), Err(WaitError::Cancelled { .. })));
            assert!(matches!(bad.try_wait(), Err(WaitError::Panicked { .. })));
        }
        while js.workers() == 0 && js.poll() {}
        let all = js.job("all").run(|_| ());
        all.wait();
        // Detached jobs may still run.
        while Arc::strong_count(ledger) > 1 {
            thread::yield_now();
        }
        ledger.check_each_dropped_once(100 * 20);
    });
}

/// Handles dropped by other threads at the very moment their jobs end.
#[test]
fn handles_dropped_while_jobs_end() {
    with_all("detaching", |js| {
        let ledger = &Arc::new(Ledger::default());
        let (handles, dropped) = mpsc::channel::<Job<Token>>();
        thread::scope(|threads| {
            threads.spawn(move || dropped.into_iter().for_each(drop));
            for _ in 0..2_000 {
                let (body, result) = (ledger.token(), ledger.token());
                let job = js.job("short").run(move |_| {
                    drop(body);
                    result
                });
                handles.send(job).unwrap();
            }
            drop(handles);
        });
        while js.workers() == 0 && js.poll() {}
        while Arc::strong_count(ledger) > 1 {
            thread::yield_now();
        }
        ledger.check_each_dropped_once(4_000);
    });
}

#[test]
fn events_are_completed_by_other_threads() {
    with_all("events", |js| {
        let (events, completed) = mpsc::channel::<Event>();
        thread::scope(|threads| {
            threads.spawn(move || completed.into_iter().for_each(Event::complete));
            for round in 0..500_u64 {
                let pair = [js.event("one"), js.event("two")];
                let ids = pair.each_ref().map(Event::id);
                let job = js.job("both").after_all(ids).run(move |_| round);
                for event in pair {
                    events.send(event).unwrap();
                }
                match round % 3 {
                    0 => assert_eq!(job.wait(), round),
                    1 => assert_eq!(block_on(js, job), round),
                    _ => ids.iter().for_each(|&id| js.wait(id)),
                }
            }
            drop(events);
        });
    });
}

/// The job system is dropped with work in flight and with jobs an event still holds: jobs that can run do so,
/// the rest is dropped once, and handles say so.
#[test]
fn shutdown_with_work_in_flight() {
    for workers in WORKERS {
        watched(&format!("shutdown, {workers} workers"), || {
            for _ in 0..10 {
                let ledger = &Arc::new(Ledger::default());
                let ran = &Arc::new(AtomicUsize::new(0));
                let js = system(workers);
                let gate = js.event("never");
                for _ in 0..500 {
                    let (token, ran) = (ledger.token(), Arc::clone(ran));
                    js.schedule(move |cx| {
                        let _token = token;
                        ran.fetch_add(1, Ordering::Relaxed);
                        // Work that makes work is done, too.
                        cx.schedule(move |_| _ = ran.fetch_add(1, Ordering::Relaxed));
                    });
                }
                let held: Vec<_> = (0..50)
                    .map(|_| {
                        let (token, next) = (ledger.token(), Large::new(ledger, 0));
                        let first = js.job("held").after(gate.id()).run(move |_| token);
                        let second = js.job("held too").after(first.id()).run(move |_| next);
                        (first, second)
                    })
                    .collect();
                let detached = ledger.token();
                js.job("detached")
                    .after(gate.id())
                    .schedule(move |_| drop(detached));
                let result = js.job("result").run({
                    let token = ledger.token();
                    move |_| token
                });
                // One waits from outside while the job system goes.
                let waits = {
                    let token = ledger.token();
                    js.job("awaited").after(gate.id()).run(move |_| token)
                };
                let waiter = thread::spawn(move || waits.try_wait().map(drop));
                drop(js);
                assert_eq!(ran.load(Ordering::Relaxed), 1000, "what can run runs");
                let told = waiter.join().unwrap();
                assert!(matches!(told, Err(WaitError::ShutDown)), "{told:?}");
                for (at, (first, second)) in held.into_iter().enumerate() {
                    assert!(first.is_done() && second.is_done());
                    if at % 2 == 0 {
                        let told = first.try_wait().map(drop);
                        assert!(matches!(told, Err(WaitError::ShutDown)), "{told:?}");
                        let told = second.wait_timeout(MOMENT).map(drop);
                        assert!(matches!(told, Err(WaitError::ShutDown)), "{told:?}");
                    }
                }
                drop(result.wait());
                // No waiter is left to be told.
                gate.complete();
                ledger.check_each_dropped_once(500 + 101 + 2);
            }
        });
    }
}

/// Completing an event races with the end of the job system: its job runs or is dropped, once.
#[test]
fn shutdown_against_an_event() {
    for workers in [0, 1, 2, 8] {
        watched(
            &format!("shutdown against an event, {workers} workers"),
            || {
                for _ in 0..100 {
                    let ledger = &Arc::new(Ledger::default());
                    let js = system(workers);
                    let gate = js.event("late");
                    let token = ledger.token();
                    let job = js.job("held").after(gate.id()).run(move |_| token);
                    let completer = thread::spawn(move || gate.complete());
                    drop(js);
                    completer.join().unwrap();
                    match job.try_wait() {
                        Ok(token) => drop(token),
                        Err(error) => assert!(matches!(error, WaitError::ShutDown), "{error}"),
                    }
                    ledger.check_each_dropped_once(1);
                }
            },
        );
    }
}
