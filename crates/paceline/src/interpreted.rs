//! Small programs for an interpreter that tries several schedules.
//!
//! Goal: where threads meet, the writes of one happen before the reads of another, in programs as users write
//! them: with real threads, which get a thread slot with their first call, and none made in advance.
//! Method: each program is a few threads and a few jobs, small enough for Miri, which reports data races and
//! undefined behaviour in the schedules of several seeds (`cargo xtask test --only miri`; many more of them:
//! `--only miri-seeds`). Run natively they are tests like others.
//! Oracle: Miri, and that everything has run.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};
use std::thread;
use std::time::Duration;

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering, Os, Parker, Platform};

use crate::{Builder, Grain, JobSystem};

type Word = <Os as Memory>::AtomicU32;

/// A number that all threads count up. It makes no edges between threads: those are the runtime's alone.
struct Count(Arc<Word>);

impl Count {
    fn new() -> Count {
        Count(Arc::new(Word::new(0)))
    }
    fn add(&self, more: usize) {
        self.0.fetch_add(more as u32, Ordering::Relaxed);
    }
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clone for Count {
    fn clone(&self) -> Count {
        Count(self.0.clone())
    }
}

fn small(workers: usize) -> JobSystem {
    let built = Builder::small().workers(workers).build();
    built.expect("the settings are in range")
}

/// Goal: a thread that polls for a job and one that makes it wait for a range do not disturb each other.
/// Method: both at the same time, and the event that holds back the range is completed meanwhile.
#[test]
fn polling_beside_a_late_edge() {
    let js = small(2);
    let (items, ran) = (Count::new(), Count::new());
    let gate = js.event("gate");
    let (counted, noted) = (items.clone(), ran.clone());
    let range = js.job("range").after(gate.id());
    let range = range.schedule_for(0..5, Grain::Items(1), move |part, _| {
        counted.add(part.len());
    });
    let next = js.job("next").after(range).run(|_| vec![7; 20]);
    let late = js.job("late").after(next.id()).background();
    let late = late.schedule(move |_| noted.add(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = js.wait_timeout(late, Duration::from_micros(1));
            gate.complete();
        });
        scope.spawn(|| {
            // It may be too late for that.
            let _ = js.add_dependency(late, range);
            js.parallel_for(0..6, Grain::Items(1), |part, _| items.add(part.len()));
        });
        assert_eq!(next.wait(), vec![7; 20]);
    });
    js.wait(late);
    assert_eq!((items.get(), ran.get()), (11, 1));
}

/// Goal: a thread that makes a job ready finds the thread slot of a waiter that has got one since. Method: a
/// thread's first call is a wait, which marks what it needs; another one, which was there before, completes
/// the event.
#[test]
fn a_mark_of_a_new_guest() {
    let js = small(1);
    let (begun, ran) = (Count::new(), Count::new());
    let noted = ran.clone();
    let gate = js.event("gate");
    let first = js.job("first").after(gate.id()).schedule(|_| ());
    let second = js.job("second").after(first);
    let second = second.schedule(move |_| noted.add(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            begun.add(1);
            js.wait(second);
        });
        // Long enough for the other one to get a slot, mark the jobs and rest. No edge leads from there to
        // here.
        let mut naps = 0;
        while begun.get() == 0 || naps < 40 {
            Os.parker().park(Os.now() + Nanos::from_micros(1));
            naps += 1;
        }
        gate.complete();
    });
    assert_eq!(ran.get(), 1);
}

/// Goal: a report is made of words that may be read at any time. Method: a thread asks again and again while
/// others come, wait, share a loop, and go.
#[test]
fn a_thread_asks_while_others_work() {
    let js = small(1);
    let (items, asked) = (Count::new(), Count::new());
    let gate = js.event("gate");
    let draw = js.job("draw").after(&gate).schedule(|_| ());
    thread::scope(|scope| {
        scope.spawn(|| js.wait(draw));
        scope.spawn(|| {
            js.parallel_for(0..6, Grain::Items(1), |part, _| items.add(part.len()));
            gate.complete();
        });
        scope.spawn(|| {
            while !js.is_done(draw) {
                let report = js.report();
                let mut awaited = report.jobs.iter().flat_map(|job| &job.waits_for);
                assert!(awaited.all(|job| job.label.name != "job"));
                for (_, wait) in report.waits() {
                    assert!(wait.site.is_none_or(|site| site.line() > 0));
                }
                assert!(!report.to_string().is_empty());
                asked.add(1);
            }
        });
    });
    js.wait(draw);
    println!("{} reports", asked.get());
    assert_eq!(items.get(), 6);
}

/// Goal: what is borrowed outlives all that borrows, whatever panics. Method: scopes and joins with a part
/// that panics, on two threads and two workers; what they borrow is on the stacks of others.
#[test]
fn scopes_that_panic() {
    let js = small(2);
    let mut cells = [[0; 3]; 2];
    thread::scope(|scope| {
        let threads = [0, 2].into_iter().zip(&mut cells);
        let threads = threads.map(|(panics_at, cells)| {
            let js = &js;
            let thread = scope.spawn(move || add_and_panic(js, panics_at, cells));
            (panics_at, thread)
        });
        for (panics_at, thread) in threads.collect::<Vec<_>>() {
            let payload = thread.join().expect_err("a job of the scope has panicked");
            assert_eq!(payload.downcast_ref(), Some(&panics_at));
        }
    });
    assert_eq!(cells, [[3; 3]; 2]);
}

/// A scope with a job for each cell, of which one panics when it is through.
fn add_and_panic(js: &JobSystem, panics_at: usize, cells: &mut [i32; 3]) {
    js.scope(|jobs| {
        for (number, cell) in cells.iter_mut().enumerate() {
            jobs.spawn(move |cx| {
                let (a, b) = cx.join(|_| 1, |_| 2);
                *cell = a + b;
                if number == panics_at {
                    std::panic::resume_unwind(Box::new(number));
                }
            });
        }
    });
}

/// Goal: spares start where all workers wait, and leave, while others schedule. Method: one worker, two jobs
/// that wait for an event, which the last job completes.
#[test]
fn spares_come_and_go() {
    let js = Arc::new(small(1));
    let ran = Count::new();
    for _ in 0..2 {
        let gate = js.event("gate");
        let id = gate.id();
        let waiting = [0; 2].map(|_| {
            let (theirs, noted) = (js.clone(), ran.clone());
            js.job("waits").schedule(move |_| {
                theirs.wait(id);
                drop(theirs);
                noted.add(1);
            })
        });
        let (last, noted) = (js.job("completes"), ran.clone());
        let last = last.schedule(move |_| {
            gate.complete();
            noted.add(1);
        });
        let all = js.job("all").after_all(waiting).after(last);
        let all = all.run(|_| ());
        all.wait();
    }
    assert_eq!(ran.get(), 6);
}

/// Goal: results and failures come to the threads that wait, whichever thread ends the event that they depend
/// on. Method: events that other threads complete and drop, a result that is taken on one thread and one that
/// no thread takes.
#[test]
fn events_that_end_elsewhere() {
    let js = small(1);
    let (done, lost) = (js.event("done"), js.event("lost"));
    let taken = js.job("taken").after(done.id()).run(|_| vec![1; 30]);
    let unwanted = js.job("unwanted").after(done.id()).run(|_| vec![2; 30]);
    let cancelled = js.job("cancelled").after(lost.id()).schedule(|_| ());
    thread::scope(|scope| {
        scope.spawn(move || done.complete());
        scope.spawn(move || drop((lost, unwanted)));
        scope.spawn(|| assert!(js.try_wait(cancelled).is_err()));
        assert_eq!(taken.wait(), vec![1; 30]);
    });
}

/// Goal: a thread slot has one thread at a time, which finds it as the last one left it. Method: threads that
/// come two at a time, schedule and wait, and go, on a job system with fewer thread slots than threads.
#[test]
fn guests_that_come_and_go() {
    let js = small(1);
    let ran = Count::new();
    for _ in 0..3 {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let (first, second) = (ran.clone(), ran.clone());
                    let before = js.schedule(move |_| first.add(1));
                    let after = js.job("after").after(before);
                    js.wait(after.schedule(move |_| second.add(1)));
                });
            }
        });
    }
    assert_eq!(ran.get(), 12);
}

/// Goal: the value of an event is handed from the thread that gives it to the one that takes or drops it, and
/// a successor gets the values of all its inputs. Method: values in the slot and boxed ones; a handle that
/// goes while the event is completed, one that waits, and some that are inputs.
#[test]
fn values_that_travel() {
    let js = small(1);
    let (small, small_handle) = js.event_with::<Vec<u8>>("small");
    let (large, large_handle) = js.event_with::<[u64; 20]>("large");
    let (lost, lost_handle) = js.event_with::<Vec<u8>>("lost");
    let parts = js.latch("parts", 2);
    let result = js.job("result").after(&parts).run(|_| vec![1; 30]);
    let sum = js.job("sum").with((large_handle, result));
    let sum = sum.run(|_, (large, result)| large[19] as usize + result.len());
    let doubled = sum.then(|sum| 2 * sum);
    thread::scope(|scope| {
        scope.spawn(|| {
            lost.complete_with(vec![1; 3]);
            large.complete_with([7; 20]);
            parts.complete_one();
        });
        scope.spawn(|| {
            drop(lost_handle);
            small.complete_with(vec![2; 3]);
            parts.complete_one();
        });
        assert_eq!(small_handle.wait(), [2; 3]);
        assert_eq!(doubled.wait(), 74);
    });
}

/// Goal: a future is polled by one thread at a time, and sees what its wake-ups were for; its waker may be
/// used when all else is gone. Method: a future in the slot and a boxed one, which await jobs and events that
/// other threads end; a waker that is kept.
#[test]
fn futures_that_are_woken() {
    let js = small(1);
    let kept = Arc::new(<Os as Memory>::Lock::new(None::<Waker>));
    let keeps = kept.clone();
    let (event, value) = js.event_with::<Vec<u8>>("event");
    let boxed = [3_u64; 20];
    let first = js.spawn_future("first", async move { value.await.len() as u64 + boxed[7] });
    let mut left = 2;
    let second = js.spawn_future(
        "second",
        poll_fn(move |task| {
            keeps.with(|kept| *kept = Some(task.waker().clone()));
            task.waker().wake_by_ref();
            left -= 1;
            if left == 0 {
                Poll::Ready(5)
            } else {
                Poll::Pending
            }
        }),
    );
    let end = js.when_done(&first);
    let sum = js.spawn_future("sum", async move { first.await + second.await });
    let never = js.spawn_future("never", std::future::pending::<()>());
    thread::scope(|scope| {
        scope.spawn(|| event.complete_with(vec![1; 4]));
        assert_eq!(sum.wait(), 12);
    });
    drop(js);
    assert!(never.try_wait().is_err());
    let waker = kept.with(Option::take).expect("it was polled");
    waker.wake_by_ref();
    let mut end = end;
    let polled = Pin::new(&mut end).poll(&mut Task::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Ok(()))));
}
