//! Single cases: what is refused, with which words, and what is not.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, mpsc};

use paceline::{
    AccessError, AccessFault, AccessKind, Builder, JobId, JobSystem, ScheduleError, Shared,
    WaitError,
};

use crate::support::ledger::Ledger;
use crate::support::{fail, watched};

fn checked() -> JobSystem {
    Builder::new().workers(0).checks(true).build().unwrap()
}

#[track_caller]
fn access_error<T>(refused: Result<T, ScheduleError>) -> AccessError {
    match refused.err() {
        Some(ScheduleError::Access(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn add(js: &JobSystem, number: &Shared<u32>) -> JobId {
    js.job("add")
        .writes(number)
        .schedule(|_, number| *number += 1)
}

/// Goal: a job that is in no order with one that touches the same data is refused before anything runs; the
/// error names both jobs, both places, the data, and what to add; nothing of the job is left. Method: two
/// writers, and the whole text.
#[test]
fn a_conflict_is_refused_and_says_what_is_missing() {
    let js = checked();
    let score = js.share("score", 0);
    let ledger = Arc::new(Ledger::default());
    let win = add(&js, &score);
    let token = ledger.token();
    let line = line!() + 1;
    let error = js.job("lose").writes(&score).try_schedule(move |_, score| {
        *score -= 1;
        drop(token);
    });
    let error = access_error(error);
    let AccessFault::Unordered(conflict) = error.fault() else {
        panic!("{error}");
    };
    let (first, second) = (conflict.earlier.label, conflict.later.label);
    assert_eq!(
        (first.name, second.name, conflict.resource),
        ("add", "lose", "score")
    );
    assert_eq!(
        (conflict.earlier.kind, conflict.later.kind),
        (AccessKind::Writes, AccessKind::Writes)
    );
    assert_eq!((second.site.file(), second.site.line()), (file!(), line));
    let expected = format!(
        "'lose' ({}) writes 'score', and 'add' ({}) writes it, and nothing orders the two jobs: to 'lose', \
         add `.after(add)`, or `.auto()`",
        second.site, first.site
    );
    assert_eq!(error.to_string(), expected);
    ledger.check_each_dropped_once(1);
    js.wait(win);
    assert_eq!(*score.read(), 1);
}

/// Goal: what orders jobs is seen: to come after, directly or not, through jobs without a body and jobs that
/// declare nothing; waits; the end of a scope; and what comes before the job in whose body another one is
/// scheduled. That a job is over is not enough. Method: one program with each.
#[test]
fn what_orders_jobs() {
    let js = checked();
    let score = js.share("score", 0);
    let first = add(&js, &score);
    let event = js.event("event");
    let both = js.combine([first, event.id()]);
    let between = js.job("between").after(both).schedule(|_| ());
    let late = js.job("late").after(between).writes(&score);
    let late = late.schedule(|_, score| *score += 1);
    event.complete();

    let theirs = score.clone();
    let outer = js.job("outer").after(late).run(move |cx| {
        let theirs = &theirs;
        cx.scope(|scope| {
            _ = scope
                .job("inner")
                .writes(theirs)
                .schedule(|_, score| *score += 1)
        });
        *theirs.write() += 1; // The scope is over, and with it what it scheduled.
    });
    outer.wait();
    js.wait(add(&js, &score));
    assert_eq!(*score.read(), 5);

    let last = add(&js, &score);
    js.flush(); // There are no workers.
    assert!(js.is_done(last));
    let error = access_error(js.job("add").writes(&score).try_schedule(|_, _| ()));
    assert!(
        matches!(error.fault(), AccessFault::Unordered(_)),
        "{error}"
    );
    js.wait(last);
    js.wait(add(&js, &score));
}

/// Goal: what a job does in a scope comes before what comes after the job, in whichever order the two were
/// scheduled; what nothing orders with the job does not. Method: a frame that is scheduled at once, and its
/// first job divides its work; once more with a writer beside it.
#[test]
fn jobs_of_a_scope_come_before_what_comes_after_its_opener() {
    let js = checked();
    for stranger in [false, true] {
        let (score, gate) = (js.share("score", 0), js.event("gate"));
        let theirs = score.clone();
        let divide = js.job("divide").after(gate.id()).run(move |cx| {
            let theirs = &theirs;
            cx.scope(|scope| {
                let half = scope.job("half").writes(theirs);
                half.try_schedule(|_, score| *score += 1).map(|_| ())
            })
        });
        let last = if stranger {
            let other = js.job("other").after(gate.id()).writes(&score);
            let other = other.schedule(|_, score| *score += 1);
            let last = js.job("last").after(divide.id()).after(other);
            last.writes(&score).schedule(|_, score| *score += 1)
        } else {
            let last = js.job("last").after(divide.id()).writes(&score);
            last.schedule(|_, score| *score *= 10)
        };
        gate.complete();
        match divide.wait() {
            Ok(()) => assert!(!stranger),
            Err(error) => {
                let text = error.to_string();
                assert!(stranger && text.starts_with("'half' ("), "{text}");
                assert!(text.contains("and 'other' ("), "{text}");
            }
        }
        js.wait(last);
        assert_eq!(*score.read(), if stranger { 2 } else { 10 });
    }
}

/// Goal: an edge that is added later counts. Method: a job that waits for an event gets one, and with it what
/// comes after that job.
#[test]
fn an_edge_that_is_added_later_orders_jobs() {
    let js = checked();
    let (score, gate) = (js.share("score", 0), js.event("gate"));
    let link = js.job("link").after(gate.id()).schedule(|_| ());
    let behind = js.job("behind").after(link).schedule(|_| ());
    let first = add(&js, &score);
    let second = |js: &JobSystem| {
        js.job("second")
            .after(behind)
            .writes(&score)
            .try_schedule(|_, _| ())
    };
    access_error(second(&js));
    js.add_dependency(link, first).unwrap();
    let second = second(&js).unwrap();
    gate.complete();
    js.wait(second);
}

/// Goal: parts that do not meet need no order; parts that do are named; a part without items meets none.
/// Method: halves, a part across them, empty parts in them.
#[test]
fn parts_of_a_slice() {
    let js = checked();
    let heights = js.share_slice("heights", vec![0; 100]);
    let halves = [0..50, 50..100].map(|part| {
        let half = js.job("half").writes(heights.part(part));
        half.for_each(|height| *height += 1)
    });
    js.job("nothing")
        .writes(heights.part(20..20))
        .schedule(|_, none| assert!(none.is_empty()));
    let across = js
        .job("across")
        .after(halves[0])
        .reads(heights.part(40..60));
    let error = access_error(across.try_schedule(|_, _| ())).to_string();
    assert!(error.contains("reads items 40..60 of 'heights'"), "{error}");
    assert!(error.contains("'half' ("), "{error}");
    assert!(error.contains("writes items 50..100 of it"), "{error}");
    let across = js
        .job("across")
        .after_all(halves)
        .reads(heights.part(40..60));
    assert_eq!(across.run(|_, some| some.iter().sum::<i32>()).wait(), 20);
    assert!(heights.try_part(90..101).is_none());
}

/// Goal: the program itself may touch data between jobs, and not beside one that may run; which is the same
/// whether that one has run. Method: reads and writes beside jobs that read and write, before and after they
/// ran, and after a wait; a guard that is still there.
#[test]
fn touching_data_from_outside() {
    let js = checked();
    let score = js.share("score", 0);
    let show = js.job("show").reads(&score).schedule(|_, _| ());
    drop(score.read());
    let error = score.try_write().unwrap_err();
    assert!(matches!(error.fault(), AccessFault::Outside { job, .. } if job.label.name == "show"));
    js.flush();
    assert!(score.try_write().is_err());
    js.wait(show);
    *score.write() = 1;

    let win = add(&js, &score);
    let error = score.try_read().unwrap_err();
    let AccessFault::Outside { job, outside, .. } = error.fault() else {
        panic!("{error}");
    };
    let expected = format!(
        "'score' is read at {}, and 'add' ({}) writes it, and was not waited for: call `wait(add)` before",
        outside.site, job.label.site
    );
    assert_eq!(error.to_string(), expected);
    js.wait(win);

    let guard = score.read();
    let read = js
        .job("read")
        .reads(&score)
        .schedule(|_, score| assert_eq!(*score, 2));
    let refused = js.job("write").writes(&score).try_schedule(|_, _| ());
    let error = access_error(refused);
    let AccessFault::Guarded { job, outside, .. } = error.fault() else {
        panic!("{error}");
    };
    let expected = format!(
        "'write' ({}) writes 'score', and it is still read at {}: drop that guard before you schedule \
         the job",
        job.label.site, outside.site
    );
    assert_eq!(error.to_string(), expected);
    drop(guard);
    js.wait(
        js.job("write")
            .after(read)
            .writes(&score)
            .schedule(|_, _| ()),
    );
}

/// Goal: the last handle does not go while a job may touch the data, unless the thread panics already; the
/// data itself goes once, after the job. Method: drops beside a job, with another handle, and after a wait.
#[test]
fn dropping_data_in_use() {
    let js = checked();
    let ledger = Arc::new(Ledger::default());
    let data = js.share("data", ledger.token());
    let job = js.job("use").writes(&data).schedule(|_, _| ());
    drop(data.clone());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(data)));
    let text = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(text.starts_with("'data' is dropped, and 'use' ("), "{text}");
    assert!(
        text.ends_with("writes it, and was not waited for: call `wait(use)` before"),
        "{text}"
    );
    assert_eq!(ledger.kept(), 1);
    js.wait(job);
    ledger.check_each_dropped_once(1);

    let data = js.share("data", 0);
    js.wait(js.job("use").writes(&data).schedule(|_, _| ()));
    drop(data);
}

/// Goal: to wait inside a job for what needs what the job holds is an error: at the call that schedules it,
/// or at the wait if it was told to come after. Method: both.
#[test]
fn waiting_for_what_needs_what_one_holds() {
    let js = checked();
    let (score, gate) = (js.share("score", 0), js.event("gate"));
    let (theirs, own) = (score.clone(), Arc::<OnceLock<JobId>>::default());
    let told = own.clone();
    let outer = js.job("outer").writes(&score).after(gate.id());
    let outer = outer.run(move |cx, _| {
        let own = *own.get().expect("it was told before the gate opened");
        let inner = cx.job("inner").reads(&theirs);
        let refused = access_error(inner.try_schedule(|_, _| ())).to_string();
        let inner = cx
            .job("inner")
            .after(own)
            .reads(&theirs)
            .schedule(|_, _| ());
        let Err(WaitError::Deadlock { cycle }) = cx.try_wait(inner) else {
            panic!("it ends");
        };
        (refused, cycle.len(), inner)
    });
    told.set(outer.id()).expect("it is set once");
    gate.complete();
    let (refused, cycle, inner) = outer.wait();
    assert!(
        refused.contains("reads 'score', and 'outer' ("),
        "{refused}"
    );
    assert_eq!(cycle, 2);
    js.wait(inner);
}

/// Goal: what is wrong with a declaration alone is an error, with checks and without. Method: the same data
/// twice, data of another job system, `auto` without checks.
#[test]
fn declarations_that_cannot_be() {
    for checks in [false, true] {
        let js = Builder::new().workers(0).checks(checks).build().unwrap();
        let other = JobSystem::new();
        let (score, foreign) = (js.share("score", 0), other.share("theirs", 0));
        let twice = js.job("twice").reads(&score).writes(&score);
        let error = access_error(twice.try_schedule(|_, _| ())).to_string();
        assert!(
            error.contains("declares 'score' twice and writes it"),
            "{error}"
        );
        let error = access_error(js.job("far").reads(&foreign).try_schedule(|_, _| ())).to_string();
        assert!(
            error.contains("'theirs', which belongs to another job system"),
            "{error}"
        );
        let both = js.job("both").reads(&score).reads(&score);
        assert_eq!(both.run(|_, (a, b)| a + b).wait(), 0);
        let auto = js.job("auto").auto().reads(&score).try_run(|_, _| ());
        match auto {
            Ok(auto) => {
                assert!(checks);
                auto.wait();
            }
            refused => {
                assert!(!checks);
                let error = access_error(refused).to_string();
                assert!(
                    error.contains("make it with `Builder::checks(true)`"),
                    "{error}"
                );
            }
        }
    }
}

/// Goal: without checks a job that comes too early fails, and does not race; a job that panics leaves the
/// data to others. Method: a job that holds the data until another one has failed.
#[test]
fn without_checks_a_job_that_comes_too_early_fails() {
    watched("a job that comes too early", || {
        let js = Builder::new().workers(1).build().unwrap();
        let score = js.share("score", 0);
        let (holds, held) = mpsc::channel();
        let goes_on = Arc::new(AtomicBool::new(false));
        let go = goes_on.clone();
        let first = js.job("first").writes(&score).schedule(move |_, score| {
            holds.send(()).unwrap();
            while !go.load(SeqCst) {
                std::thread::yield_now();
            }
            *score += 1;
        });
        held.recv().unwrap();
        let error = score.try_read().unwrap_err().to_string();
        assert!(error.contains("while 'first' ("), "{error}");
        let second = js.job("second").reads(&score).schedule(|_, _| ());
        let error = js.try_wait(second).unwrap_err().to_string();
        assert!(error.contains("'second' ("), "{error}");
        assert!(error.contains("reads 'score' while 'first' ("), "{error}");
        goes_on.store(true, SeqCst);
        js.wait(first);
        let third = js
            .job("third")
            .writes(&score)
            .schedule(|_, _| fail("planned"));
        assert!(js.try_wait(third).is_err());
        js.wait(add(&js, &score));
        assert_eq!(*score.read(), 2);
    });
}
