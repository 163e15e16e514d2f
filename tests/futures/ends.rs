//! How futures end: with a value, a panic, a cancellation, the job system.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::Wake;
use std::thread;
use std::time::Duration;

use paceline::{GraphError, Job, JobId, WaitError};

use super::*;
use crate::support::fail;
use crate::support::ledger::{Ledger, Token};

/// Goal: a value of any size reaches the handle, the future is dropped before, and a value that nothing takes
/// is dropped. Method: futures in the slot and boxed ones, ready at once or later; handles that wait, go
/// early, go late, or become inputs.
#[test]
fn a_future_gives_its_value() {
    fn future<const CAPTURED: usize, const VALUE: usize>(
        ledger: &Arc<Ledger>,
        yielded: u32,
    ) -> impl Future<Output = ([u8; VALUE], Token)> + Send + use<CAPTURED, VALUE> {
        let (captured, inside, given) = ([1_u8; CAPTURED], ledger.token(), ledger.token());
        async move {
            let _inside = inside;
            yields(yielded).await;
            assert_eq!(
                captured.iter().map(|&one| u32::from(one)).sum::<u32>(),
                CAPTURED as u32
            );
            ([7; VALUE], given)
        }
    }
    each_system("values of futures", |js| {
        let ledger = Arc::new(Ledger::default());
        for yielded in [0, 3] {
            let small = || js.spawn_future("small", future::<1, 8>(&ledger, yielded));
            let large = || js.spawn_future("large", future::<300, 200>(&ledger, yielded));
            assert_eq!(small().wait().0, [7; 8]);
            assert_eq!(large().wait().0, [7; 200]);
            let id = small().id();
            js.wait(id);
            let late = large();
            js.wait(late.id());
            drop(late);
            let sum = js.job("sum").with((small(), large()));
            assert_eq!(sum.run(|_, (a, b)| a.0.len() + b.0.len()).wait(), 208);
            assert_eq!(small().then(|value| value.0[3]).wait(), 7);
        }
        until(|| ledger.kept() == 0);
        ledger.check_each_dropped_once(2 * 2 * 7);
    });
}

/// Goal: a panic of the future is the job's panic, and cancels what depends on it; also one of the drop of a
/// future that was ready. The future is dropped once, and its captures panic alone where it is dropped
/// because of a panic.
#[test]
fn a_future_panics() {
    struct Bomb(Token);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !thread::panicking() {
                fail("a drop");
            }
        }
    }
    each_system("futures that panic", |js| {
        let ledger = Arc::new(Ledger::default());
        for yielded in [0, 2] {
            let token = ledger.token();
            let panics = js.spawn_future("panics", async move {
                let _token = token;
                yields(yielded).await;
                fail("a poll")
            });
            let after = js.job("after").after(&panics).schedule(|_| ());
            let error = panics.try_wait().map(|never: u32| never).unwrap_err();
            assert!(error.to_string().ends_with("panicked: a poll"), "{error}");
            assert!(matches!(
                js.try_wait(after),
                Err(WaitError::Cancelled { .. })
            ));

            // A future that is ready, whose drop panics: its value is dropped, too.
            let (bomb, given) = (Bomb(ledger.token()), ledger.token());
            let mut given = Some(given);
            let mut waits = yielded;
            let ready = js.spawn_future(
                "ready",
                poll_fn(move |task| {
                    let _bomb = &bomb.0;
                    if waits > 0 {
                        waits -= 1;
                        task.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Poll::Ready(given.take())
                }),
            );
            let error = ready.try_wait().map(|_| ()).unwrap_err();
            assert!(error.to_string().ends_with("panicked: a drop"), "{error}");

            let before = js.stats().drop_panics;
            let bomb = Bomb(ledger.token());
            let both = js.spawn_future(
                "both",
                poll_fn(move |_| -> Poll<()> {
                    let _bomb = &bomb;
                    resume_unwind(Box::new("both"))
                }),
            );
            let error = both.try_wait().unwrap_err();
            assert!(error.to_string().ends_with("panicked: both"), "{error}");
            assert_eq!(js.stats().drop_panics - before, 1);
        }
        until(|| ledger.kept() == 0);
        ledger.check_each_dropped_once(2 * 4);
    });
}

/// Goal: a future comes after its dependencies, also if one of them comes late, and is dropped unpolled if
/// one of them fails. A future that was polled has started: it can wait for nothing more.
#[test]
fn a_future_depends() {
    each_system("futures that depend", |js| {
        let ledger = Arc::new(Ledger::default());
        for (fails, is_late) in [(false, false), (true, false), (false, true), (true, true)] {
            let (gate, first, signal) = (js.event("gate"), js.event("first"), Signal::new());
            let polled = Arc::new(AtomicU32::new(0));
            let (token, polls, here) = (ledger.token(), polled.clone(), signal.clone());
            let job = js.job("future").after(&first);
            let job = if is_late { job } else { job.after(&gate) };
            let job = job.run_future(async move {
                let _token = token;
                polls.fetch_add(1, Relaxed);
                here.taken().await;
            });
            if is_late {
                js.add_dependency(&job, &gate).expect("it has not started");
            }
            first.complete();
            js.flush();
            assert_eq!((job.is_done(), polled.load(Relaxed)), (false, 0));
            if fails {
                drop(gate);
                let error = job.try_wait().unwrap_err();
                assert!(
                    matches!(error, WaitError::Cancelled { cause, .. } if cause.name == "gate")
                );
                assert_eq!(polled.load(Relaxed), 0);
            } else {
                gate.complete();
                js.flush();
                until(|| signal.waker().is_some());
                let late = js.schedule(|_| ());
                let error = js.add_dependency(&job, late).unwrap_err();
                let said = error.to_string();
                assert!(
                    matches!(error, GraphError::TooLate { id, label: Some(_) } if id == job.id()),
                    "{said}"
                );
                assert!(said.contains(") has already started; "), "{said}");
                assert_eq!(format!("{error:?}"), format!("GraphError({said})"));
                signal.give(());
                job.wait();
            }
        }
        until(|| ledger.kept() == 0);
        ledger.check_each_dropped_once(4);
    });
}

/// Goal: a thread in the middle of a job that waits for a future runs what the future awaits. Otherwise it
/// would hang here. Method: no workers, and another thread that uses the job system without helping. The
/// future awaits a job, the end of one, another future, or one of many, first or later.
#[test]
fn a_wait_for_a_future_helps() {
    watched("a wait for a future helps", || {
        let js = Arc::new(Builder::new().workers(0).build().unwrap());
        let ends = Arc::new(AtomicU32::new(0));
        thread::scope(|threads| {
            threads.spawn(|| {
                js.flush();
                until(|| ends.load(Relaxed) == 1);
            });
            let inner = js.clone();
            let outer = js.job("outer").run(move |cx| {
                let job = |number: u32| cx.job("job").run(move |_| number);
                let one = cx.spawn_future("one", job(1));
                let ended = cx.schedule(|_| ());
                let two = cx.spawn_future("two", {
                    let (ended, more) = (cx.when_done(ended), job(1));
                    async move { ended.await.map_or(0, |()| 1) + more.await }
                });
                let nested = cx.spawn_future("nested", async move { one.await + two.await });
                let many: Vec<_> = (0..100).map(job).collect();
                let sum = cx.spawn_future("sum", async move {
                    let mut sum = nested.await;
                    for job in many {
                        sum += job.await;
                        sum += inner.job("made").run(|_| 1).await;
                    }
                    sum
                });
                sum.wait()
            });
            assert_eq!(outer.wait(), 3 + 99 * 50 + 100);
            ends.store(1, Relaxed);
        });
    });
}

/// Goal: a future that awaits one of two jobs, the first of which waits for the future, is in no deadlock.
/// Method: the other one is an event, which is completed when a deadlock would have been reported.
#[test]
fn a_future_that_could_go_on_is_in_no_deadlock() {
    each_system("a future that selects", |js| {
        let (gate, waits) = (js.event("gate"), Arc::new(AtomicU32::new(0)));
        let (event, value) = js.event_with::<u32>("event");
        let selects = Arc::new(Mutex::new(None::<JobId>));
        let (known, begins) = (selects.clone(), waits.clone());
        let first = js.job("first").after(&gate).run(move |cx| {
            let future = *known.lock().expect("nothing panics inside");
            begins.store(1, Relaxed);
            let waited = cx.try_wait(future.expect("it was set before the gate opened"));
            waited.map_err(|error| error.to_string())
        });
        let (mut end, mut value) = (js.when_done(&first), value.outcome());
        let future = js.spawn_future(
            "selects",
            poll_fn(move |task| {
                if Pin::new(&mut end).poll(task).is_ready() {
                    return Poll::Ready(Ok(0));
                }
                Pin::new(&mut value).poll(task)
            }),
        );
        *selects.lock().expect("nothing panics inside") = Some(future.id());
        gate.complete();
        thread::scope(|threads| {
            threads.spawn(|| {
                until(|| waits.load(Relaxed) == 1);
                thread::sleep(Duration::from_millis(20));
                event.complete_with(7);
            });
            assert_eq!(first.wait(), Ok(()));
            assert_eq!(future.wait().expect("it was completed"), 7);
        });
    });
}

/// Goal: the end of the job system drops a future that is pending, and its handle says so; what is ready, or
/// becomes ready by that, is run. Method: futures that wait for nothing, for a job, and for each other.
#[test]
fn the_job_system_ends() {
    for workers in 0..3 {
        watched(&format!("the end, {workers} workers"), || {
            for _ in 0..if cfg!(miri) { 2 } else { 100 } {
                let ledger = Arc::new(Ledger::default());
                let js = Builder::new().workers(workers).build().unwrap();
                let never = Signal::<()>::new();
                let (token, here) = (ledger.token(), never.clone());
                let pending = js.spawn_future("pending", async move {
                    let _token = token;
                    here.taken().await;
                });
                let behind = js.spawn_future("behind", {
                    let pending = js.when_done(&pending);
                    async { pending.await.is_err() }
                });
                let job = js.job("job").run(|_| 20);
                let token = ledger.token();
                let runs = js.spawn_future("runs", async move {
                    let _token = token;
                    yields(3).await;
                    job.await + 1
                });
                drop(js);
                never.give(());
                assert!(matches!(pending.try_wait(), Err(WaitError::ShutDown)));
                // Woken by the drop of the first, it may run or be dropped itself.
                let behind = behind.try_wait();
                assert!(
                    matches!(behind, Ok(true) | Err(WaitError::ShutDown)),
                    "{behind:?}"
                );
                assert_eq!(runs.wait(), 21);
                ledger.check_each_dropped_once(2);
            }
        });
    }
}

/// A waker that keeps its caller for a while.
struct Lingers(AtomicU32);

impl Wake for Lingers {
    fn wake(self: Arc<Lingers>) {
        self.0.store(1, Relaxed);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Goal: a future that awaits a job which can run is finished by the end of the job system, also if an
/// outside thread has run that job and is only about to call the future's waker. Method: another waker comes
/// before it, and keeps that thread until the end is well under way.
#[test]
fn the_end_waits_for_wakers_that_are_due() {
    watched("wakers that are due", || {
        let js = Builder::new().workers(0).build().unwrap();
        let gate = js.event("gate");
        let job = js.job("job").after(&gate).run(|_| 20);
        let awaited = js.when_done(&job);
        let future = js.spawn_future("future", async move { awaited.await.map(|()| 1) });
        js.flush(); // The first poll: its waker is there.
        let (lingers, mut first) = (Arc::new(Lingers(AtomicU32::new(0))), js.when_done(&job));
        let waker = Waker::from(lingers.clone());
        let mut task = std::task::Context::from_waker(&waker);
        assert!(Pin::new(&mut first).poll(&mut task).is_pending());
        gate.complete();
        thread::scope(|threads| {
            threads.spawn(move || assert_eq!(job.wait(), 20));
            until(|| lingers.0.load(Relaxed) == 1);
            drop(js);
            let ended = future.try_wait();
            assert!(matches!(ended, Ok(Ok(1))), "{ended:?}");
        });
    });
}

/// Goal: a future that is detached goes on; one that is never woken keeps no thread, and a wait for it ends
/// when it is woken. A wait with a timeout gives the handle back.
#[test]
fn a_future_is_detached() {
    each_system("detached futures", |js| {
        let (done, signals) = (Arc::new(AtomicU32::new(0)), [Signal::new(), Signal::new()]);
        let (here, ends) = (signals[0].clone(), done.clone());
        drop(js.spawn_future("detached", async move {
            here.taken().await;
            ends.fetch_add(1, Relaxed);
        }));
        let waits = js.spawn_future("waits", signals[1].clone().taken());
        let early = waits.wait_timeout(Duration::from_millis(1));
        let waits = early.expect("it does not fail").expect_err("it is pending");
        signals[0].give(());
        js.flush();
        until(|| done.load(Relaxed) == 1);
        thread::scope(|threads| {
            threads.spawn(|| signals[1].give(()));
            waits.wait();
        });
    });
}

/// Goal: a wait inside of a poll is a wait inside of a job: it runs what it needs, and one that can never end
/// is reported. Method: a future that waits for a job, and one that waits for itself.
#[test]
fn a_future_waits() {
    for workers in 0..3 {
        watched(&format!("futures that wait, {workers} workers"), || {
            let js = Arc::new(Builder::new().workers(workers).build().unwrap());
            let sum = js.enter(|cx| {
                let part = |part| cx.job("part").run(move |_| part);
                let parts: Vec<_> = (0..4).map(part).collect();
                let sum = async move { parts.into_iter().map(Job::wait).sum::<u32>() };
                cx.spawn_future("sum", sum)
            });
            assert_eq!(sum.wait(), 6);

            let (own, gate) = (Arc::new(Mutex::new(None::<JobId>)), js.event("gate"));
            let (me, theirs) = (own.clone(), js.clone());
            let selfish = js.job("selfish").after(&gate).run_future(async move {
                yields(2).await;
                let me = me.lock().expect("nothing panics inside");
                let told = theirs.try_wait(me.expect("it was set before the start"));
                told.map_err(|error| error.to_string())
            });
            *own.lock().expect("nothing panics inside") = Some(selfish.id());
            gate.complete();
            let told = selfish.wait().expect_err("it waits for itself");
            let why = "can never end";
            assert!(told.contains(why) && told.contains("selfish"), "{told}");
        });
    }
}

/// Goal: a future of a scope may borrow, and the scope ends when it has ended; a panic comes out of the
/// scope.
#[test]
fn futures_of_a_scope() {
    each_system("futures of a scope", |js| {
        for fails in [false, true] {
            let (drops, mut sum) = (AtomicUsize::new(0), 0);
            let numbers = [1, 2, 3];
            let signal = Signal::new();
            struct Counts<'a>(&'a AtomicUsize);
            impl Drop for Counts<'_> {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Relaxed);
                }
            }
            let scope = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                js.scope(|scope| {
                    let (counts, here, numbers, sum) =
                        (Counts(&drops), signal.clone(), &numbers, &mut sum);
                    let value = scope.job("future").run_future(async move {
                        let _counts = counts;
                        here.taken().await;
                        *sum = numbers.iter().sum::<u32>();
                        if fails {
                            fail("on purpose");
                        }
                        numbers
                    });
                    drop(value);
                    let giver = signal.clone();
                    js.schedule(move |_| giver.give(()));
                });
            }));
            assert_eq!((scope.is_err(), drops.load(Relaxed), sum), (fails, 1, 6));
        }
    });
}

/// Goal: if there is no room for the future, it is dropped and the call says why.
#[test]
fn there_is_no_room_for_a_future() {
    let ledger = Arc::new(Ledger::default());
    let js = Builder::new().workers(0).max_jobs(1).build().unwrap();
    while js.job("one more").try_event().map(std::mem::forget).is_ok() {}
    let token = ledger.token();
    let refused = js.job("future").try_run_future(async move { drop(token) });
    assert_eq!(
        refused.unwrap_err(),
        paceline::ScheduleError::Full { max_jobs: 1 }
    );
    ledger.check_each_dropped_once(1);
}
