//! Many threads at work, and workers that come and go.

use super::*;

/// Threads that come, schedule, wait for each other's jobs, and go.
#[test]
fn short_lived_threads_schedule_and_wait_at_the_same_time() {
    const THREADS: u64 = 200;
    const JOBS: u64 = 20;
    with_all("threads", |js| {
        let sum = Arc::new(AtomicU64::new(0));
        let last = Mutex::new(Vec::<JobId>::new());
        thread::scope(|threads| {
            for number in 0..THREADS {
                let (sum, last) = (&sum, &last);
                threads.spawn(move || {
                    let mut random = Random::new(number);
                    let mut mine = Vec::new();
                    for job in 0..JOBS {
                        let known = last.lock().unwrap().clone();
                        let some = random.below(4).min(known.len());
                        let after: Vec<_> = (0..some).map(|_| *random.pick(&known)).collect();
                        let sum = Arc::clone(sum);
                        let id = js.job("add").after_all(&after).schedule(move |_| {
                            sum.fetch_add(number * JOBS + job, Ordering::Relaxed);
                        });
                        mine.push(id);
                        last.lock().unwrap().push(id);
                        if random.chance(10) {
                            js.try_wait(
                                *random
                                    .pick(&known.iter().copied().chain([id]).collect::<Vec<_>>()),
                            )
                            .unwrap();
                        }
                    }
                    // Half of them leave without looking back.
                    if number % 2 == 0 {
                        for &id in &mine {
                            js.wait(id);
                        }
                    }
                });
            }
        });
        let ids = last.into_inner().unwrap();
        assert_eq!(ids.len() as u64, THREADS * JOBS);
        for &id in &ids {
            js.wait(id);
        }
        assert_eq!(
            sum.load(Ordering::Relaxed),
            (0..THREADS * JOBS).sum::<u64>()
        );
    });
}

/// One thread more than there are thread slots is told so; when the others have ended it is let in.
#[test]
fn a_thread_too_many_is_refused_until_another_has_ended() {
    const AT_LEAST: usize = 2;
    watched("slots", || {
        let js = Builder::new()
            .workers(1)
            .max_threads(AT_LEAST)
            .build()
            .unwrap();
        let js = Arc::new(js);
        let (said, told) = mpsc::channel();
        let mut inside = Vec::new();
        // Each stays inside until it is told to leave.
        loop {
            let (leave, left) = mpsc::channel::<()>();
            let (inner, said) = (Arc::clone(&js), said.clone());
            let thread = thread::spawn(move || {
                let tried = inner.job("first").try_schedule(|_| ());
                said.send(tried).unwrap();
                _ = left.recv();
            });
            inside.push((leave, thread));
            match told.recv().unwrap() {
                Ok(_) => assert!(inside.len() < js.thread_slots(), "more threads than slots"),
                Err(error) => {
                    assert!(
                        matches!(error, ScheduleError::TooManyThreads { .. }),
                        "{error}"
                    );
                    break;
                }
            }
        }
        assert!(
            inside.len() > AT_LEAST,
            "thread {} was refused",
            inside.len()
        );
        for (leave, thread) in inside {
            drop(leave);
            thread.join().unwrap();
        }
        let id = js
            .job("welcome")
            .try_schedule(|_| ())
            .expect("slots are free again");
        js.wait(id);
    });
}

#[test]
fn nested_scopes_joins_and_loops_add_up() {
    with_all("nesting", |js| {
        let values: Vec<u64> = (0..200).collect();
        let total = AtomicU64::new(0);
        js.parallel_for(0..60, Grain::Items(7), |part, cx| {
            for item in part {
                cx.scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|cx| {
                            let (a, b) = cx.join(
                                |cx| sum(cx, &values),
                                |cx| {
                                    let inner = AtomicU64::new(0);
                                    cx.parallel_for(0..values.len(), Grain::Auto, |part, _| {
                                        let part = values[part].iter().sum();
                                        inner.fetch_add(part, Ordering::Relaxed);
                                    });
                                    inner.into_inner()
                                },
                            );
                            total.fetch_add(a + b + item as u64, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        let each = 2 * (0..200).sum::<u64>();
        assert_eq!(total.into_inner(), 3 * (60 * each + (0..60).sum::<u64>()));
    });
}

/// The same from many threads at once: each has its own numbers.
#[test]
fn many_threads_fork_and_join_at_the_same_time() {
    with_all("forks", |js| {
        thread::scope(|threads| {
            for thread in 0..16 {
                threads.spawn(move || {
                    let values: Vec<u64> = (thread..thread + 1000).collect();
                    for _ in 0..5 {
                        let found = js.enter(|cx| sum(cx, &values));
                        assert_eq!(found, values.iter().sum::<u64>());
                    }
                });
            }
        });
    });
}

#[test]
fn one_to_ten_thousand_to_one() {
    const WIDTH: usize = 10_000;
    with_all("fan", |js| {
        let ran = Arc::new(AtomicUsize::new(0));
        for round in 1..=2 {
            let first = {
                let ran = Arc::clone(&ran);
                js.schedule(move |_| assert_eq!(ran.load(Ordering::Relaxed), (round - 1) * WIDTH))
            };
            let middle: Vec<_> = (0..WIDTH)
                .map(|_| {
                    let ran = Arc::clone(&ran);
                    js.job("middle").after(first).schedule(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            let seen = Arc::clone(&ran);
            let last = js
                .job("last")
                .after_all(&middle)
                .run(move |_| seen.load(Ordering::Relaxed));
            assert_eq!(last.wait(), round * WIDTH);
            assert!(middle.iter().all(|&id| js.is_done(id)));
            js.wait(js.combine(&middle));
        }
    });
}

#[test]
fn workers_come_and_go_while_everything_runs() {
    watched("resize", || {
        let js = system(8);
        let done = AtomicBool::new(false);
        let ran = AtomicU64::new(0);
        let rounds = AtomicU64::new(0);
        thread::scope(|threads| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    threads.spawn(|| {
                        while !done.load(Ordering::Relaxed) {
                            js.scope(|scope| {
                                for _ in 0..50 {
                                    scope.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed));
                                }
                            });
                            js.parallel_for(0..500, Grain::Items(10), |part, _| {
                                ran.fetch_add(part.len() as u64, Ordering::Relaxed);
                            });
                            rounds.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            for step in 0..100 {
                let workers = [0, 8, 1, 5, 0, 2, 8, 3][step % 8];
                js.resize(workers).unwrap();
                assert_eq!(js.workers(), workers);
                // Something has happened in between.
                let before = rounds.load(Ordering::Relaxed);
                while rounds.load(Ordering::Relaxed) < before + 2 {
                    thread::yield_now();
                }
            }
            done.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().unwrap();
            }
        });
        assert_eq!(ran.into_inner(), rounds.into_inner() * 550);
        assert!(js.resize(1 << 20).is_err(), "more than the limit");
        js.resize(2).unwrap();
        assert_eq!(js.job("after").run(|_| 7).wait(), 7);
    });
}

/// A job left ready when the last worker goes is run by its waiter.
#[test]
fn jobs_survive_the_last_worker() {
    watched("the last worker", || {
        for _ in 0..50 {
            let js = system(2);
            let ran = Arc::new(AtomicUsize::new(0));
            let ids: Vec<_> = (0..100)
                .map(|_| {
                    let ran = Arc::clone(&ran);
                    js.schedule(move |_| _ = ran.fetch_add(1, Ordering::Relaxed))
                })
                .collect();
            js.resize(0).unwrap();
            for &id in &ids {
                js.wait(id);
            }
            assert_eq!(ran.load(Ordering::Relaxed), 100);
        }
    });
}

#[test]
fn frames_are_counted() {
    with_all("frames", |js| {
        for number in 0..10 {
            let frame = js.frame("frame", AGES);
            assert_eq!((frame.label(), frame.number()), ("frame", number));
            let a = frame.schedule(|_| ());
            let b = frame.job("b").after(a).schedule(|_| ());
            js.wait(b);
        }
        let stats = js.stats();
        assert_eq!((stats.frames, stats.frames_missed), (10, 0));
        drop(js.frame("late", Duration::ZERO));
        assert_eq!(js.stats().frames, 11);
    });
}

#[test]
fn a_timeout_is_no_error() {
    with_all("timeouts", |js| {
        let gate = js.event("gate");
        let id = js.job("held").after(gate.id()).schedule(|_| ());
        assert!(!js.wait_timeout(id, Duration::ZERO).unwrap());
        assert!(!js.wait_timeout(id, MOMENT).unwrap());
        // Many at once, some of which give up as it is completed.
        thread::scope(|threads| {
            for millis in 0..20 {
                threads.spawn(move || {
                    let over = js.wait_timeout(id, Duration::from_millis(millis)).unwrap();
                    assert!(!over || js.is_done(id));
                });
            }
            threads.spawn(move || {
                thread::sleep(Duration::from_millis(10));
                gate.complete();
            });
            threads.spawn(move || assert!(js.wait_timeout(id, AGES).unwrap()));
        });
        assert!(js.wait_timeout(id, Duration::ZERO).unwrap());
        assert!(js.wait_timeout(id, Duration::MAX).unwrap());
    });
}
