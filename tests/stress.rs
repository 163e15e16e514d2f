//! Everything at once, on the operating system: programs that schedule, wait, end, panic and shut
//! down from many threads at the same time, with no workers, few, and far more than the machine has.
//!
//! Method: each body leaves a trace that can be counted (sums, start counts, drop counts), and the
//! counts are exact whatever the order was. Nothing is timed. A program that hangs is ended by
//! [`watched`].

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use paceline::{
    Builder, Context, Event, Grain, GraphError, Job, JobId, JobSystem, ScheduleError, WaitError,
};
use platform::Os;

use crate::support::{Random, watched};

const WORKERS: [usize; 5] = [0, 1, 2, 8, 32];

/// Long enough for anything to have happened that is going to.
const AGES: Duration = Duration::from_secs(60);
/// Short; nothing depends on how short.
const MOMENT: Duration = Duration::from_millis(1);

fn system(workers: usize) -> JobSystem {
    Builder::new()
        .workers(workers)
        .build()
        .expect("threads can be started")
}

/// Runs a program with each number of workers.
fn with_all(what: &str, program: impl Fn(&JobSystem)) {
    for workers in WORKERS {
        watched(&format!("{what}, {workers} workers"), || {
            program(&system(workers))
        });
    }
}

/// Unwinds without the noise of the panic hook.
fn fail(message: &'static str) -> ! {
    resume_unwind(Box::new(message))
}

/// What `f` panicked with.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => *payload
            .downcast::<String>()
            .expect("a panic with a message"),
    }
}

/// Counts how often each of its tokens was dropped.
#[derive(Default)]
struct Ledger {
    drops: Mutex<Vec<u32>>,
}

/// One of a ledger's values.
struct Token {
    number: usize,
    ledger: Arc<Ledger>,
}

impl Ledger {
    fn token(self: &Arc<Ledger>) -> Token {
        let mut drops = self.drops.lock().expect("nobody panics inside");
        drops.push(0);
        Token {
            number: drops.len() - 1,
            ledger: Arc::clone(self),
        }
    }

    fn large(self: &Arc<Ledger>, number: u64) -> Large {
        Large {
            _token: self.token(),
            numbers: [number; 100],
        }
    }

    #[track_caller]
    fn check_each_dropped_once(&self, at_least: usize) {
        let drops = self.drops.lock().expect("nobody panics inside");
        assert!(
            drops.len() >= at_least,
            "only {} tokens were made",
            drops.len()
        );
        for (number, &drops) in drops.iter().enumerate() {
            assert_eq!(drops, 1, "drops of token {number}");
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.drops.lock().expect("nobody panics inside")[self.number] += 1;
    }
}

/// Too large for a slot: such bodies and results lie elsewhere.
struct Large {
    _token: Token,
    numbers: [u64; 100],
}

struct Unparker(thread::Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Unparker>) {
        self.0.unpark();
    }
}

/// The smallest executor. With no workers somebody has to pump: it does so itself.
fn block_on<T>(js: &JobSystem, future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    let mut task = std::task::Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(value) => return value,
            Poll::Pending if js.workers() == 0 && js.poll() => {}
            // What makes a job ready may come later, and nobody else would run it.
            Poll::Pending if js.workers() == 0 => thread::park_timeout(MOMENT),
            Poll::Pending => thread::park(),
        }
    }
}

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
                        mine.iter().for_each(|&id| js.wait(id));
                    }
                });
            }
        });
        let ids = last.into_inner().unwrap();
        assert_eq!(ids.len() as u64, THREADS * JOBS);
        ids.iter().for_each(|&id| js.wait(id));
        assert_eq!(sum.load(Ordering::Relaxed), (0..THREADS * JOBS).sum());
    });
}

/// One thread more than there are seats is told so; when the others have ended it is let in.
#[test]
fn a_thread_too_many_is_refused_until_another_has_ended() {
    const AT_LEAST: usize = 2;
    watched("seats", || {
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
                Ok(_) => assert!(inside.len() < js.seats(), "more threads than seats"),
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
            .expect("seats are free again");
        js.wait(id);
    });
}

fn sum(cx: &Context<'_, Os>, values: &[u64]) -> u64 {
    match values {
        [] => 0,
        [one] => *one,
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            let (a, b) = cx.join(|cx| sum(cx, left), |cx| sum(cx, right));
            a + b
        }
    }
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
                        assert_eq!(found, values.iter().sum());
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
            clients
                .into_iter()
                .for_each(|client| client.join().unwrap());
        });
        assert_eq!(ran.into_inner(), rounds.into_inner() * 550);
        assert!(js.resize(1 << 20).is_err(), "more than the limit");
        js.resize(2).unwrap();
        assert_eq!(js.job("after").run(|_| 7).wait(), 7);
    });
}

/// A job left ready when the last worker goes is run by who waits.
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
            ids.iter().for_each(|&id| js.wait(id));
            assert_eq!(ran.load(Ordering::Relaxed), 100);
        }
    });
}

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
                let (body, result) = (ledger.large(1), ledger.large(2));
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
            let (a, b, c) = (ledger.token(), ledger.large(0), ledger.token());
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
                let job = js.job("both").after_all(&ids).run(move |_| round);
                pair.into_iter()
                    .for_each(|event| events.send(event).unwrap());
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
                matches!(&error, WaitError::Cancelled { label, cause }
                    if label.name == "hopeful" && cause.name == "promise"),
                "{error}"
            );
            assert!(js.is_done(job) && js.is_done(id));
            assert!(!ran.load(Ordering::Relaxed));
            // Also for who comes later.
            let late = js.job("late").after(id).run(|_| ());
            assert!(matches!(late.try_wait(), Err(WaitError::Cancelled { .. })));
        }
    });
}

/// The job system is dropped with work in flight and with jobs an event still holds: what can run
/// runs, the rest is dropped once, and who asks is told.
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
                        // Work that makes work is through, too.
                        cx.schedule(move |_| _ = ran.fetch_add(1, Ordering::Relaxed));
                    });
                }
                let held: Vec<_> = (0..50)
                    .map(|_| {
                        let (token, next) = (ledger.token(), ledger.large(0));
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
                // Nobody is left to be told.
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
            let combined = js.combine(&[bad, bystander]);
            let error = js.try_wait(grandchild).expect_err("its ancestor failed");
            assert!(
                matches!(&error, WaitError::Cancelled { label, cause }
                    if label.name == "grandchild" && cause.name == "bad"),
                "{error}"
            );
            assert!(matches!(
                js.try_wait(combined),
                Err(WaitError::Cancelled { .. })
            ));
            js.wait(bystander);
            // The payload goes to the first who asks, the message to everybody.
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
        let values: Vec<u64> = (0..1000).collect();
        assert_eq!(js.enter(|cx| sum(cx, &values)), 499_500, "it still works");
    });
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

/// The end of the job system waits for a job that runs. That is nobody who would hear of its panic.
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

/// An id of long ago: its slot has had a thousand jobs since.
#[test]
fn stale_ids_are_over() {
    with_all("stale ids", |js| {
        let js = &Builder::new()
            .workers(js.workers())
            .max_jobs(4096)
            .build()
            .unwrap();
        let old = js.schedule(|_| ());
        js.wait(old);
        let typed = js.job("typed").run(|_| ());
        let old_typed = typed.id();
        typed.wait();
        let old_scope = js.event("old");
        let old_event = old_scope.id();
        old_scope.complete();
        for _ in 0..1000 {
            js.wait(js.schedule(|_| ()));
            js.job("typed").run(|_| ()).wait();
        }
        // Alive, perhaps in the very slots.
        let gate = js.event("gate");
        let held: Vec<_> = (0..500)
            .map(|_| js.job("held").after(gate.id()).schedule(|_| ()))
            .collect();
        for id in [old, old_typed, old_event] {
            assert!(js.is_done(id));
            js.try_wait(id).unwrap();
            assert!(js.wait_timeout(id, Duration::ZERO).unwrap());
            assert_eq!(js.job("heir").after(id).run(|_| 1).wait(), 1);
            assert!(matches!(
                js.add_dependency(id, held[0]),
                Err(GraphError::TooLate { .. })
            ));
            js.add_dependency(held[0], id).unwrap();
        }
        assert!(held.iter().all(|&id| !js.is_done(id)));
        gate.complete();
        js.wait(js.combine(&held));
    });
}

/// The smallest table: every job has the slot of the last.
#[test]
fn one_slot_is_enough_for_jobs_one_after_the_other() {
    for workers in [0, 1, 2, 8] {
        watched(&format!("one slot, {workers} workers"), || {
            let js = Builder::new().workers(workers).max_jobs(1).build().unwrap();
            let first = js.schedule(|_| ());
            js.wait(first);
            for round in 0..1000 {
                // That a job is over is seen before its slot is free.
                let id = retry(|| js.job("next").try_schedule(|_| ()));
                js.try_wait(id).unwrap();
                assert!(js.is_done(first), "round {round}");
                js.try_wait(first).unwrap();
            }
        });
    }
}

/// Schedules when there is room.
fn retry<T>(mut schedule: impl FnMut() -> Result<T, ScheduleError>) -> T {
    loop {
        match schedule() {
            Ok(value) => return value,
            Err(ScheduleError::Full { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A table holds as many jobs as it is told to, and a few more (threads keep free slots at hand).
#[test]
fn a_full_table_is_an_error_and_passes() {
    const MAX: u32 = 64;
    for workers in WORKERS {
        watched(&format!("full, {workers} workers"), || {
            let js = Builder::new()
                .workers(workers)
                .max_jobs(MAX)
                .build()
                .unwrap();
            let ledger = &Arc::new(Ledger::default());
            for _ in 0..20 {
                let gate = js.event("gate");
                let mut held = Vec::new();
                let full = loop {
                    let token = ledger.token();
                    match js
                        .job("held")
                        .after(gate.id())
                        .try_schedule(move |_| drop(token))
                    {
                        Ok(id) => held.push(id),
                        Err(error) => break error,
                    }
                    assert!(held.len() < 1 << 16, "it never fills");
                };
                assert_eq!(full, ScheduleError::Full { max_jobs: MAX });
                // With the event.
                assert!(
                    held.len() + 1 >= MAX as usize,
                    "full with {} jobs",
                    held.len()
                );
                assert!(js.job("typed").try_run(|_| ()).is_err());
                assert!(js.job("event").try_event().is_err());
                assert!(js.job("combine").try_combine().is_err());
                assert!(
                    js.job("loop")
                        .try_schedule_for(0..10, Grain::Auto, |_, _| ())
                        .is_err()
                );
                gate.complete();
                held.iter().for_each(|&id| js.wait(id));
            }
            let id = retry(|| js.job("again").try_schedule(|_| ()));
            js.wait(id);
            drop(js);
            ledger.check_each_dropped_once(20);
        });
    }
}

/// All slots can be used, wherever they were freed.
#[test]
fn slots_come_back_from_everywhere() {
    const MAX: usize = 1024;
    for workers in [0, 1, 2, 8] {
        watched(&format!("slots, {workers} workers"), || {
            let js = Builder::new()
                .workers(workers)
                .max_jobs(MAX as u32)
                .build()
                .unwrap();
            for _ in 0..20 {
                let gate = js.event("gate");
                let held: Vec<_> = (1..MAX / 2)
                    .map(|_| retry(|| js.job("held").after(gate.id()).try_schedule(|_| ())))
                    .collect();
                gate.complete();
                held.iter().for_each(|&id| js.wait(id));
            }
        });
    }
}

#[test]
fn foreign_ids_are_refused_everywhere() {
    with_all("foreign", |js| {
        let other = system(1);
        let foreign = other.schedule(|_| ());
        let own = js.event("own");
        assert!(matches!(js.try_wait(foreign), Err(WaitError::Foreign { id }) if id == foreign));
        assert!(matches!(
            js.wait_timeout(foreign, MOMENT),
            Err(WaitError::Foreign { .. })
        ));
        let refused = Err(ScheduleError::Foreign { id: foreign });
        assert_eq!(js.job("job").after(foreign).try_schedule(|_| ()), refused);
        assert_eq!(
            js.job("job").after_all(&[own.id(), foreign]).try_combine(),
            refused
        );
        assert_eq!(
            js.job("job")
                .after(foreign)
                .try_schedule_for(0..9, Grain::Auto, |_, _| ()),
            refused
        );
        let ledger = Arc::new(Ledger::default());
        let token = ledger.token();
        let typed = js.job("job").after(foreign).try_run(move |_| token);
        assert!(matches!(typed, Err(ScheduleError::Foreign { .. })));
        ledger.check_each_dropped_once(1);
        assert!(matches!(
            js.job("job").after(foreign).try_event(),
            Err(ScheduleError::Foreign { .. })
        ));
        let refused = Err(GraphError::Foreign { id: foreign });
        assert_eq!(js.add_dependency(own.id(), foreign), refused);
        assert_eq!(js.add_dependency(foreign, own.id()), refused);
        assert!(panic_of(|| js.wait(foreign)).contains("another job system"));
        assert!(panic_of(|| _ = js.is_done(foreign)).contains("another job system"));
        assert!(panic_of(|| _ = js.combine(&[foreign])).contains("another job system"));
        other.wait(foreign);
        own.complete();
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
