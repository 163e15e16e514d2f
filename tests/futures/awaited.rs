//! Handles, outcomes and ids, awaited by a hand-written executor.

use std::task::Context as Task;
use std::thread;
use std::time::Duration;

use paceline::{ScheduleError, WaitError};

use super::*;
use crate::support::fail;

/// Runs jobs while it waits where there are no workers.
fn block_on<T>(js: &JobSystem, future: impl Future<Output = T>) -> T {
    testkit::block_on(future, || {
        if js.workers() > 0 {
            thread::park();
        } else if !js.poll() {
            thread::park_timeout(Duration::from_millis(1));
        }
    })
}

/// Goal: an outcome is the value or the error, where the handle would panic.
#[test]
fn outcomes() {
    each_system("outcomes", |js| {
        assert_eq!(block_on(js, js.job("job").run(|_| 7).outcome()).unwrap(), 7);
        let error = block_on(
            js,
            js.job("job")
                .run(|_| -> u8 { fail("on purpose") })
                .outcome(),
        );
        assert!(matches!(
            error,
            Err(WaitError::Panicked {
                payload: Some(_),
                ..
            })
        ));
        let (event, handle) = js.event_with::<u8>("event");
        let outcome = handle.outcome();
        thread::scope(|threads| {
            threads.spawn(|| drop(event));
            let error = block_on(js, outcome).unwrap_err();
            assert!(matches!(error, WaitError::Abandoned { .. }), "{error}");
        });
        let (event, handle) = js.event_with::<u8>("event");
        let mut outcome = handle.outcome();
        let mut task = Task::from_waker(Waker::noop());
        let mut poll = || std::pin::Pin::new(&mut outcome).poll(&mut task);
        assert!(poll().is_pending());
        event.complete_with(7);
        assert!(matches!(poll(), Poll::Ready(Ok(7))));
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| _ = poll()));
        let text = again.expect_err("it was ready").downcast::<&str>().unwrap();
        assert!(text.contains("asked for again"), "{text}");
    });
}

/// Goal: any number of futures of the end of one job are pending at once, and each is woken; some of them are
/// dropped. A failed job's end is an error for each. Old ids and foreign ones have an answer at once.
#[test]
fn ends_of_jobs() {
    each_system("ends of jobs", |js| {
        for fails in [false, true] {
            let gate = js.event("gate");
            let id = js.job("job").after(&gate).schedule(move |_| {
                if fails {
                    fail("on purpose")
                }
            });
            let mut task = Task::from_waker(Waker::noop());
            let mut dropped = js.when_done(id);
            assert!(
                std::pin::Pin::new(&mut dropped)
                    .poll(&mut task)
                    .is_pending()
            );
            drop(dropped);
            let mut gate = Some(gate);
            let ends: Vec<_> = (0..20).map(|_| Box::pin(js.when_done(id))).collect();
            let mut ends: Vec<_> = ends.into_iter().map(Some).collect();
            let all = poll_fn(|task| {
                let (mut pending, mut failed) = (0, 0);
                for end in ends.iter_mut().flatten() {
                    match end.as_mut().poll(task) {
                        Poll::Pending => pending += 1,
                        Poll::Ready(Err(WaitError::Panicked { .. })) => failed += 1,
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => panic!("{error}"),
                    }
                }
                gate.take().into_iter().for_each(paceline::Event::complete);
                match pending {
                    0 => Poll::Ready(failed),
                    _ => Poll::Pending,
                }
            });
            assert_eq!(block_on(js, all), if fails { 20 } else { 0 });
            assert_eq!(block_on(js, js.when_done(id)).is_err(), fails);
        }
        let other = Builder::new().workers(0).build().unwrap();
        let foreign = other.schedule(|_| ());
        let end = block_on(js, js.when_done(foreign));
        assert!(matches!(end, Err(WaitError::Foreign { id }) if id == foreign));
    });
}

/// Goal: futures of ends outlive the job system.
#[test]
fn ends_after_the_end() {
    for workers in 0..3 {
        watched("ends after the end", || {
            let js = Builder::new().workers(workers).build().unwrap();
            let never = js.event("never");
            let mut task = Task::from_waker(Waker::noop());
            let mut ends = [js.when_done(&never), js.when_done(&never)];
            assert!(
                std::pin::Pin::new(&mut ends[0])
                    .poll(&mut task)
                    .is_pending()
            );
            let over = js.when_done(js.schedule(|_| ()));
            drop(js);
            for end in ends {
                let end = testkit::block_on(end, || ());
                assert!(matches!(end, Err(WaitError::ShutDown)), "{end:?}");
            }
            assert!(testkit::block_on(over, || ()).is_ok());
        });
    }
}

/// Goal: a thread that can have no slot awaits handles all the same. Method: a job system that lets one
/// outside thread in; another one polls a handle when its job is over, and when it is not.
#[test]
fn a_thread_without_a_slot_awaits() {
    watched("a thread without a slot", || {
        let js = Builder::new().workers(1).max_threads(1).build().unwrap();
        let over = js.job("over").run(|_| 7);
        js.wait(over.id());
        let (event, pending) = js.event_with::<u8>("event");
        thread::scope(|threads| {
            threads.spawn(|| {
                assert_eq!(testkit::block_on(over, || ()), 7);
                let refused = testkit::block_on(pending.outcome(), || ());
                let full = ScheduleError::TooManyThreads { max_threads: 1 };
                assert!(matches!(refused, Err(WaitError::Refused(error)) if error == full));
            });
        });
        event.complete_with(1);
    });
}
