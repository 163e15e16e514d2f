//! Events with values: each side may come first, go first, fail, or outlive the job system.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use paceline::{Event, Job, WaitError};

use super::*;

/// Goal: the value reaches whatever takes it, whichever side comes first. Method: a wait, a wait with a
/// timeout, a handle that is asked when it is over, for values in the slot and boxed ones.
#[test]
fn a_value_is_taken() {
    fn check<const BYTES: usize>(js: &JobSystem, ledger: &Arc<Ledger>) {
        let make = || js.event_with::<Value<BYTES>>("event");
        let value = |number| Value::new(ledger, number);
        let (event, handle) = make();
        event.complete_with(value(1));
        assert!(handle.is_done());
        assert_eq!(handle.wait().number, 1);

        let (event, handle) = make();
        thread::scope(|threads| {
            threads.spawn(|| event.complete_with(value(2)));
            assert_eq!(handle.wait().number, 2);
        });

        let (event, handle) = make();
        let early = handle.wait_timeout(Duration::ZERO);
        let handle = early.expect("it does not fail").err().expect("not yet");
        let sent = value(3);
        js.job("completes")
            .schedule(move |_| event.complete_with(sent));
        js.wait(handle.id());
        assert_eq!(handle.try_wait().expect("it has not failed").number, 3);
    }
    each_system("values are taken", |js| {
        let ledger = Arc::new(Ledger::default());
        check::<8>(js, &ledger);
        check::<200>(js, &ledger);
        ledger.check_each_dropped_once(6);
    });
}

/// Goal: a value that no handle takes is dropped as soon as that is known. Method: handles that go before,
/// after, and while the event waits for another job.
#[test]
fn a_value_that_nothing_takes_is_dropped() {
    each_system("values nothing takes", |js| {
        let ledger = Arc::new(Ledger::default());
        for round in 0..4 {
            let gate = js.event("gate");
            let job = js.job("event");
            let job = if round < 2 { job } else { job.after(&gate) };
            let (event, handle) = job.try_event_with::<Small>().expect("there is room");
            let id = event.id();
            let value = Value::new(&ledger, 0);
            if round % 2 == 0 {
                drop(handle);
                event.complete_with(value);
            } else {
                event.complete_with(value);
                drop(handle);
            }
            assert_eq!(ledger.kept(), 0, "round {round}");
            assert_eq!(js.is_done(id), round < 2);
            gate.complete();
            js.wait(id);
        }
        ledger.check_each_dropped_once(4);
    });
}

/// Goal: as above, at the same moment. Method: two threads, very often; the handle asks sometimes.
#[test]
fn a_value_is_given_while_its_handle_goes() {
    each_system("a race for a value", |js| {
        let ledger = Arc::new(Ledger::default());
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        let events: Vec<(Event<Small>, Job<Small>)> =
            (0..rounds / 4).map(|_| js.event_with("event")).collect();
        assert!(events.len() < 1 << 10);
        let (events, handles): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        thread::scope(|threads| {
            threads.spawn(|| {
                for (number, event) in events.into_iter().enumerate() {
                    event.complete_with(Value::new(&ledger, number as u64));
                }
            });
            for (number, handle) in handles.into_iter().enumerate() {
                if number % 3 == 0 && handle.is_done() {
                    assert_eq!(handle.wait().number, number as u64);
                } else {
                    drop(handle);
                }
            }
        });
        ledger.check_each_dropped_once(rounds / 4);
    });
}

/// Goal: an event that is dropped says so to its handle and cancels what depends on it, before and after the
/// handle has gone. So does a failed predecessor, and then the value is dropped.
#[test]
fn an_event_fails() {
    each_system("failing events", |js| {
        let ledger = Arc::new(Ledger::default());
        let (event, handle) = js.event_with::<Small>("abandoned");
        let after = js.job("after").after(&handle).schedule(|_| ());
        drop(event);
        let error = handle.try_wait().err().expect("it was dropped");
        assert!(matches!(error, WaitError::Abandoned { label } if label.name == "abandoned"));
        let error = js.try_wait(after).expect_err("it was cancelled");
        let said = error.to_string();
        let end = "was dropped without being completed";
        assert!(
            said.contains("because event 'abandoned' (") && said.ends_with(end),
            "{said}"
        );
        assert_eq!(format!("{error:?}"), format!("WaitError({said})"));
        assert!(
            matches!(error, WaitError::Cancelled { cause, message: None, is_abandoned: true, .. }
                if cause.name == "abandoned")
        );

        let (event, handle) = js.event_with::<Small>("abandoned");
        let id = event.id();
        drop(handle);
        drop(event);
        assert!(matches!(js.try_wait(id), Err(WaitError::Abandoned { .. })));

        for takes in [false, true] {
            let gate = js.event("gate");
            let job = js.job("event").after(&gate);
            let (event, handle) = job.try_event_with::<Small>().expect("there is room");
            event.complete_with(Value::new(&ledger, 0));
            drop(gate);
            if takes {
                let error = handle.try_wait().err().expect("it was cancelled");
                assert!(matches!(error, WaitError::Cancelled { .. }), "{error}");
            } else {
                drop(handle);
            }
            assert_eq!(ledger.kept(), 0);
        }
        ledger.check_each_dropped_once(2);
    });
}

/// Goal: both sides may outlive the job system. The handle says that it was shut down, and the value is
/// dropped. Method: the handle goes before or after the completion, after the end.
#[test]
fn both_sides_outlive_the_job_system() {
    for workers in 0..3 {
        for way in 0..4 {
            watched(&format!("after the end, {workers} workers"), || {
                let ledger = Arc::new(Ledger::default());
                let js = Builder::new().workers(workers).build().unwrap();
                let (event, handle) = js.event_with::<Small>("event");
                drop(js);
                let value = Value::new(&ledger, 0);
                let shut_down =
                    |handle: Job<Small>| matches!(handle.try_wait(), Err(WaitError::ShutDown));
                match way {
                    0 => {
                        event.complete_with(value);
                        assert!(shut_down(handle));
                    }
                    1 => {
                        assert!(shut_down(handle));
                        event.complete_with(value);
                    }
                    2 => {
                        drop(handle);
                        event.complete_with(value);
                    }
                    _ => {
                        drop(event);
                        assert!(shut_down(handle));
                        drop(value);
                    }
                }
                ledger.check_each_dropped_once(1);
            });
        }
    }
}

/// Goal: a value that panics when it is dropped harms nothing and is counted, whichever side drops it.
#[test]
fn a_value_that_panics_when_it_is_dropped() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    each_system("values that panic", |js| {
        let (event, handle) = js.event_with("event");
        drop(handle);
        event.complete_with(Bomb);
        let (event, handle) = js.event_with("event");
        event.complete_with(Bomb);
        drop(handle);
        assert_eq!(js.stats().drop_panics, 2);
        js.wait(js.schedule(|_| ()));
    });
}

/// Goal: in a scope a value may borrow, and is gone when what it borrows is: the scope does not wait for its
/// event. Method: the event waits for a job outside, which ends after the scope. The value notes in its drop
/// what it borrows.
#[test]
fn a_value_that_borrows_goes_with_its_handle() {
    struct Borrows<'a>(&'a AtomicU32, &'a AtomicU32);
    impl Drop for Borrows<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.load(Relaxed), 1, "what it borrows is still there");
            self.1.fetch_add(1, Relaxed);
        }
    }
    each_system("values that borrow", |js| {
        for given_first in [false, true] {
            let (gate, drops) = (js.event("gate"), AtomicU32::new(0));
            let (event_id, alive) = (Cell::new(None), AtomicU32::new(1));
            js.scope(|scope| {
                let job = scope.job("event").after(&gate);
                let (event, handle) = job.try_event_with::<Borrows<'_>>().expect("there is room");
                event_id.set(Some(event.id()));
                if given_first {
                    event.complete_with(Borrows(&alive, &drops));
                    drop(handle);
                } else {
                    drop(handle);
                    event.complete_with(Borrows(&alive, &drops));
                }
            });
            assert_eq!(drops.load(Relaxed), 1);
            alive.store(0, Relaxed);
            gate.complete();
            js.wait(event_id.get().expect("it was made"));
            assert_eq!(drops.load(Relaxed), 1);
        }
    });
}
