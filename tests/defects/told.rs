//! Counts, and reports to the program: panics of its own code, waits that no spare worker relieves, failures
//! of long ago.

use super::*;

use std::sync::{Mutex, OnceLock, Weak};

use event::{Event, Sink};
use paceline::{BuildError, Grain, ScheduleError, WaitError};

use crate::support::ledger::Ledger;

/// Goal: each value of the program that panics when the runtime drops it is counted, and is no failure of a
/// job. Method: a result, a body, the closure of a range and a surplus payload of a scope, with each of
/// [`FEW`] numbers of workers. A job is over before its values are dropped, so a count may lag behind.
#[test]
fn values_that_panic_at_their_end_are_counted() {
    for workers in FEW {
        watched(&format!("counted drops, {workers} workers"), || {
            let (js, ledger) = (system(workers), Arc::new(Ledger::default()));
            let bomb = || Bomb::new(ledger.token());
            let result = bomb();
            let result = js.job("result").run(|_| result).id();
            let_run(&js, &[result]);
            until(|| js.stats().drop_panics == 1);

            let failed = js.job("failed").schedule(|_| fail("on purpose"));
            let body = bomb();
            let cancelled = js.job("cancelled").after(failed);
            let cancelled = cancelled.schedule(move |_| _ = &body);
            let_run(&js, &[cancelled]);
            until(|| js.stats().drop_panics == 2);

            let closure = bomb();
            let range = js.job("range");
            let range = range.schedule_for(0..4, Grain::Items(1), move |_, _| _ = &closure);
            let_run(&js, &[range]);
            until(|| js.stats().drop_panics == 3);
            js.try_wait(range).expect("that is no failure");

            let payloads = [bomb(), bomb(), bomb()];
            let left = catch_unwind(AssertUnwindSafe(|| {
                js.scope(|scope| {
                    for bomb in payloads {
                        scope.spawn(|_| bomb.throw());
                    }
                });
            }));
            assert!(defuse(left.expect_err("it panics")));
            until(|| js.stats().drop_panics == 5);
            let stats = js.stats();
            assert_eq!((stats.panicked, stats.hook_panics), (4, 0));
            ends_well(js);
            ledger.check_each_dropped_once(6);
        });
    }
}

/// Goal: each hook that panics is counted. Method: one worker, each of whose hooks panics at each call.
#[test]
fn hooks_that_panic_are_counted() {
    watched("counted hooks", || {
        let js = small(1)
            .thread_name(|_| fail("no name"))
            .on_thread_start(|_| fail("at the start"))
            .on_thread_stop(|_| fail("at the end"))
            .on_unwaited_panic(|_| fail("at a panic"));
        let js = js.build().expect("threads can be started");
        all_workers_work(&js);
        assert_eq!(js.stats().hook_panics, 2, "the name and the start");
        let failed = js.job("failed").schedule(|_| fail("on purpose"));
        let_run(&js, &[failed]);
        until(|| js.stats().hook_panics == 3);
        js.resize(0).expect("fewer is always possible");
        until(|| js.stats().hook_panics == 4);
        assert_eq!(js.stats().panicked, 1);
        ends_well(js);
    });
}

/// Asks the job system for everything, at each event.
#[derive(Default)]
struct Asks {
    home: OnceLock<Weak<JobSystem>>,
    known: OnceLock<JobId>,
    answers: Mutex<Vec<&'static str>>,
    panics: bool,
}

impl Asks {
    fn ask(&self, js: &JobSystem, id: JobId) {
        let note = |is_refused: bool, what| {
            if !is_refused {
                self.answers.lock().expect("no panics inside").push(what);
            }
        };
        let tried = js.job("job").try_schedule(|_| ());
        note(tried == Err(ScheduleError::InSink), "try_schedule");
        let tried = js.job("job").try_run(|_| ()).err();
        note(tried == Some(ScheduleError::InSink), "try_run");
        let tried = js.job("event").try_event().err();
        note(tried == Some(ScheduleError::InSink), "try_event");
        let refused = matches!(
            js.try_wait(id),
            Err(WaitError::Refused(ScheduleError::InSink))
        );
        note(refused, "try_wait");
        if self.panics {
            js.schedule(|_| ());
            note(false, "schedule");
        }
    }
}

impl Sink for Asks {
    fn record(&self, _: &Event) {
        let js = self.home.get().and_then(Weak::upgrade);
        if let (Some(js), Some(&id)) = (js, self.known.get()) {
            self.ask(&js, id);
        }
    }
}

/// Goal: a sink that asks the job system for something while it records is refused; where the call has no
/// result that could say so it panics, inside the sink, which is counted. Method: with one worker, which
/// records as main does.
#[test]
fn a_sink_is_refused() {
    for panics in [false, true] {
        watched(&format!("a sink that asks, panics: {panics}"), || {
            let sink = Arc::new(Asks {
                panics,
                ..Asks::default()
            });
            let js = Arc::new(small(1).sink(sink.clone()).build().expect("threads"));
            let held = js.event("held");
            sink.known.set(held.id()).expect("set once");
            sink.home.set(Arc::downgrade(&js)).expect("set once");
            let job = js.job("job").run(|_| 7);
            assert_eq!(job.wait(), 7);
            held.complete();
            all_workers_work(&js);
            let answers = sink.answers.lock().expect("no panics").clone();
            assert!(answers.is_empty(), "not refused: {answers:?}");
            assert_eq!(js.stats().hook_panics > 0, panics);
            until(|| Arc::strong_count(&js) == 1);
            ends_well(Arc::into_inner(js).expect("the sink has let go"));
        });
    }
}

/// Goal: the program is told if no more spare workers may be started though work is ready. Method: at most
/// one spare; three jobs wait for an event that a job behind them completes. Main hears of it and has other
/// threads run the ready jobs.
#[test]
fn a_program_that_is_stuck_is_told() {
    watched("stuck", || {
        let calls = Count::default();
        let told = calls.clone();
        let js = small(1).max_spares(1).on_stuck(move |_| _ = told.up());
        let js = Arc::new(js.build().expect("threads can be started"));
        let event = js.event("event");
        let id = event.id();
        let waits: Vec<_> = (0..3)
            .map(|_| {
                let theirs = Arc::clone(&js);
                js.schedule(move |_| theirs.try_wait(id).expect("it is completed"))
            })
            .collect();
        js.schedule(move |_| event.complete());
        js.flush();
        until(|| calls.get() > 0 && js.stats().spares_refused > 0);
        // One of the three that wait is among the ready ones, too, and keeps the thread that polls.
        thread::scope(|threads| {
            (0..3).for_each(|_| _ = threads.spawn(|| while js.poll() {}));
        });
        let_run(&js, &waits);
        until(|| Arc::strong_count(&js) == 1);
    });
}

/// Goal: the number of spare workers has bounds, in words.
#[test]
fn the_number_of_spares_is_checked() {
    assert!(small(1).max_spares(0).build().is_ok());
    assert!(small(1).max_spares(960).build().is_ok());
    match small(1).max_spares(961).build() {
        Err(error @ BuildError::OutOfRange { .. }) => {
            assert_eq!(
                error.to_string(),
                "max_spares must be between 0 and 960, not 961"
            );
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was built"),
    }
}

/// Goal: the last 4096 failures are known in full; of each older one it is known that it was one. Method:
/// more jobs than that, all of which have a place of their own, panic.
#[test]
fn old_failures_are_known_as_such() {
    const REMEMBERED: usize = 4_096;
    for workers in FEW {
        watched(&format!("old failures, {workers} workers"), || {
            let js = Builder::new().workers(workers).build();
            let js = js.expect("threads can be started");
            let gate = js.event("gate");
            let ids: Vec<_> = (0..2 * REMEMBERED)
                .map(|_| {
                    let job = js.job("fails").after(gate.id());
                    job.schedule(|_| fail("on purpose"))
                })
                .collect();
            gate.complete();
            let_run(&js, &ids);
            let (mut known, mut forgotten) = (0, 0);
            for &id in &ids {
                match js.try_wait(id) {
                    Err(WaitError::Panicked { .. }) => known += 1,
                    Err(WaitError::Forgotten) => forgotten += 1,
                    other => panic!("it failed: {other:?}"),
                }
            }
            assert_eq!((known, forgotten), (REMEMBERED, REMEMBERED));
            let next = js.job("next").after(ids[0]).run(|_| ());
            assert!(next.try_wait().is_err(), "what depends on it is cancelled");
            ends_well(js);
        });
    }
}
