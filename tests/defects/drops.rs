//! Values of the program that panic when the runtime drops them: results that nothing takes, bodies that
//! never run, closures of ranges.
//!
//! Once such a panic unwound through the thread that was finishing the job. The worker ended but was still
//! counted, the job was never over, the jobs after it never ran, and the end of the job system hung or
//! panicked.

use super::*;

use paceline::{Grain, WaitError};

use crate::support::ledger::Ledger;

/// Jobs behind a gate. Each job's value panics at its end, with each of [`FEW`] numbers of workers. The job
/// is over all the same, a successor is told, as many successors run as `runs` says, and the job system
/// works on and ends.
fn costs_nothing(what: &str, runs: usize, make: impl Fn(&JobSystem, &Arc<Ledger>, JobId) -> JobId) {
    for workers in FEW {
        watched(&format!("{what}, {workers} workers"), || {
            let js = system(workers);
            let (ledger, ran) = (Arc::new(Ledger::default()), Count::default());
            // More often than there are workers, so that none can be spared.
            for round in 1..=4 {
                let gate = js.event("gate");
                let bad = make(&js, &ledger, gate.id());
                let successor = ran.clone();
                let next = js.job("next").after(bad);
                let next = next.schedule(move |_| _ = successor.up());
                gate.complete();
                let_run(&js, &[bad, next]);
                assert_eq!(ran.get(), round * runs, "successors that ran");
                all_workers_work(&js);
            }
            ends_well(js);
            ledger.check_each_dropped_once(4);
        });
    }
}

/// Goal: the result of a job whose handle is gone may panic when it is dropped. Method: the handle is
/// dropped while a gate holds the job; its result is a bomb. Successors run.
#[test]
fn a_result_that_nothing_takes_panics_at_its_end() {
    costs_nothing("a detached result", 1, |js, ledger, gate| {
        let token = ledger.token();
        let bad = js.job("bad").after(gate).run(|_| Bomb::new(token));
        bad.id()
    });
}

/// Goal: the body of a cancelled job may panic when it is dropped. Method: the job's predecessor panics, and
/// the body owns a bomb. Successors are cancelled, too.
#[test]
fn a_cancelled_body_panics_at_its_end() {
    costs_nothing("a cancelled body", 0, |js, ledger, gate| {
        let failed = js
            .job("failed")
            .after(gate)
            .schedule(|_| fail("on purpose"));
        let bomb = Bomb::new(ledger.token());
        js.job("bad").after(failed).schedule(move |_| drop(bomb))
    });
}

/// Goal: as above for a range that is cancelled.
#[test]
fn a_cancelled_range_panics_at_its_end() {
    costs_nothing("a cancelled range", 0, |js, ledger, gate| {
        let failed = js
            .job("failed")
            .after(gate)
            .schedule(|_| fail("on purpose"));
        let bomb = Bomb::new(ledger.token());
        let bad = js.job("bad").after(failed);
        bad.schedule_for(0..4, Grain::Items(1), move |_, _| _ = &bomb)
    });
}

/// Goal: the closure of a range may panic when the last thread to leave the range drops it. That is no
/// failure of the range. Method: the closure owns a bomb; one range has one part, one has many.
#[test]
fn a_closure_of_a_range_panics_at_its_end() {
    for items in [1, 64] {
        costs_nothing("a range", 1, move |js, ledger, gate| {
            let bomb = Bomb::new(ledger.token());
            let bad = js.job("bad").after(gate);
            bad.schedule_for(0..items, Grain::Items(1), move |_, _| _ = &bomb)
        });
    }
}

/// Goal: such a panic does not come out of a wait, and the thread that waited is in the middle of no job
/// afterwards. Method: main waits for a range whose closure is a bomb, then opens scopes and joins, which
/// ask for the job that the thread is in. An interpreter that checks pointers (Miri) sees the dead frame
/// which that question once found.
#[test]
fn a_wait_does_not_raise_the_end_of_a_closure() {
    for workers in FEW {
        watched(&format!("a wait for a range, {workers} workers"), || {
            let js = system(workers);
            let ledger = Arc::new(Ledger::default());
            for _ in 0..4 {
                let bomb = Bomb::new(ledger.token());
                let range = js.job("range");
                let range = range.schedule_for(0..4, Grain::Items(1), move |_, _| _ = &bomb);
                let waited = catch_unwind(AssertUnwindSafe(|| js.try_wait(range)));
                let verdict = waited.expect("the wait does not panic");
                assert!(verdict.is_ok(), "the range has not failed: {verdict:?}");
                assert!(js.is_done(range));
                let ran = Count::default();
                js.scope(|scope| scope.spawn(|cx| _ = cx.join(|_| ran.up(), |_| ran.up())));
                assert_eq!(ran.get(), 2);
            }
            all_workers_work(&js);
            ends_well(js);
            ledger.check_each_dropped_once(4);
        });
    }
}

/// Goal: bodies that can never run any more are dropped at the end of the job system, all of them, although
/// some panic; their handles report the end. Method: jobs behind an event that is never completed, every
/// second one with a bomb.
#[test]
fn what_is_dropped_unrun_at_the_end_panics() {
    for workers in FEW {
        watched(&format!("dropped unrun, {workers} workers"), || {
            let js = system(workers);
            let ledger = Arc::new(Ledger::default());
            let never = js.event("never");
            let held: Vec<_> = (0..20)
                .map(|number| {
                    let token = ledger.token();
                    let bomb = (number % 2 == 0).then(|| Bomb::new(ledger.token()));
                    let held = js.job("held").after(never.id());
                    held.run(move |_| drop((token, bomb)))
                })
                .collect();
            ends_well(js);
            for job in held {
                let verdict = job.try_wait();
                assert!(matches!(verdict, Err(WaitError::ShutDown)), "{verdict:?}");
            }
            drop(never);
            ledger.check_each_dropped_once(30);
        });
    }
}

/// Goal: a handle that drops its job's result gives the job's place back although the result panics.
/// Method: far more handles than there is room for jobs, each dropped after its job is over. The panic may
/// or may not reach the thread that drops the handle.
#[test]
fn a_handle_gives_its_place_back_though_the_result_panics() {
    const ROUNDS: usize = 20_000;
    for workers in FEW {
        watched(&format!("results in handles, {workers} workers"), || {
            let js = small(workers).max_threads(4).max_jobs(64);
            let js = js.build().expect("threads can be started");
            let ledger = Arc::new(Ledger::default());
            for round in 0..ROUNDS {
                let token = ledger.token();
                let job = js.job("job").try_run(|_| Bomb::new(token));
                let job = job.unwrap_or_else(|error| panic!("round {round}: {error}"));
                let over = js.try_wait(job.id());
                assert!(over.is_ok(), "{over:?}");
                _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
            }
            all_workers_work(&js);
            ends_well(js);
            ledger.check_each_dropped_once(ROUNDS);
        });
    }
}
