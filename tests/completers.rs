//! Goal: a wait for an event whose completer is known runs that job and carries its urgency to it, and a wait
//! that can never end because of it is reported. It changes nothing else.
//!
//! Method: an event that a job completes which nobody would run otherwise for a while, on simulated threads;
//! each with and without saying so. And the mistakes, with their texts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, GraphError, JobId, JobSystem, Lane, WaitError};
use platform::Platform;
use sim::Sim;

use crate::support::delays;

/// A job system with one worker, which is in the middle of a long job.
fn with_a_busy_worker(sim: &Sim) -> (JobSystem<Sim>, JobId) {
    let js = Builder::with_platform(sim.clone()).workers(1);
    let js = js.build().unwrap();
    let long = js.job("long");
    let long = long.schedule(|cx| cx.work(Nanos::from_millis(10)));
    // The worker is woken for it, and begins.
    sim.sleep_until(sim.time() + Nanos::from_millis(1));
    (js, long)
}

/// Goal: a waiter runs the job that completes what it waits for, and what comes before that. Method: the
/// only worker is busy for 10 ms.
#[test]
fn a_wait_runs_the_completer() {
    for is_said in [true, false] {
        for seed in 0..8 {
            let report = Sim::run(delays(seed), move |sim| {
                let (js, long) = with_a_busy_worker(&sim);
                let loaded = js.event("loaded");
                let id = loaded.id();
                let read = js.job("read").schedule(|_| ());
                let load = js.job("load").after(read);
                let load = load.schedule(move |_| loaded.complete());
                if is_said {
                    js.add_completer(id, load).unwrap();
                }
                let draw = js.job("draw").after(id).schedule(|_| ());
                js.wait(draw);
                assert_eq!(js.is_done(long), !is_said);
            });
            report.expect_finished();
        }
    }
}

/// Goal: the completer is raised to the lane of the waiter, whether it is said before the wait or while it
/// lasts. Method: a wait with a timeout, which runs nothing by itself; the completer is in the background
/// behind other jobs.
#[test]
fn a_wait_raises_the_completer() {
    for is_said_late in [false, true] {
        let report = Sim::run(delays(3), move |sim| {
            let (js, _) = with_a_busy_worker(&sim);
            let js = Arc::new(js);
            let order: Arc<Mutex<Vec<&str>>> = Arc::default();
            let note = |name| {
                let order = order.clone();
                move || order.lock().unwrap().push(name)
            };
            let loaded = js.event("loaded");
            let id = loaded.id();
            let normal = note("normal");
            js.job("normal").schedule(move |_| normal());
            let load = note("load");
            let load = js.job("load").background().schedule(move |_| {
                load();
                loaded.complete();
            });
            if !is_said_late {
                js.add_completer(id, load).unwrap();
            }
            let (inner, clock) = (js.clone(), sim.clone());
            let body = Box::new(move || {
                clock.sleep_until(clock.time() + Nanos::from_millis(2));
                inner.add_completer(id, load).unwrap();
            });
            let late = sim.spawn(platform::ThreadSpec::default(), body).unwrap();
            let over = js.in_lane(Lane::Frame, || {
                js.wait_timeout(id, Duration::from_secs(1)).unwrap()
            });
            assert!(over);
            assert_eq!(order.lock().unwrap()[0], "load");
            platform::Thread::join(late).unwrap();
        });
        report.expect_finished();
    }
}

/// Goal: a job that waits for an event which it would complete itself, or which a job completes that waits
/// for it, is told so. Method: both.
#[test]
fn a_circle_through_an_event_is_reported() {
    for is_self in [true, false] {
        let js = JobSystem::new();
        let event = js.event("found");
        let id = event.id();
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let asks = js.job("asks").run(move |cx| {
            told.recv().unwrap();
            cx.try_wait(id)
        });
        let completes = if is_self {
            asks.id()
        } else {
            js.job("completes").after(&asks).schedule(|_| ())
        };
        js.add_completer(id, completes).unwrap();
        tell.send(()).unwrap();
        let error = asks.wait().unwrap_err();
        assert!(matches!(error, WaitError::Deadlock { .. }), "{error}");
        event.complete();
    }
}

/// Goal: what cannot be is refused, and what is over changes nothing. Method: each.
#[test]
fn mistakes_are_told() {
    let (js, other) = (JobSystem::new(), JobSystem::new());
    let job = js.schedule(|_| ());
    let event = js.event("event");
    let gate = js.event("gate");
    let body = js.job("body").after(&gate).schedule(|_| ());
    assert_eq!(
        js.add_completer(body, job),
        Err(GraphError::NoEvent { id: body })
    );
    let foreign = other.schedule(|_| ());
    let refused = Err(GraphError::Foreign { id: foreign });
    assert_eq!(js.add_completer(&event, foreign), refused);
    assert_eq!(js.add_completer(foreign, &event), refused);
    js.wait(job);
    let id = event.id();
    js.add_completer(id, job).unwrap();
    event.complete();
    js.add_completer(id, body).unwrap();
    js.wait(id);
    let text = js.add_completer(body, job).unwrap_err().to_string();
    assert!(
        text.ends_with("is no event or latch, so no job completes it"),
        "{text}"
    );
    gate.complete();
    js.wait(body);
}

/// Goal: a latch may have many completers, more than fit a block of links, and is over when it is counted
/// down. Method: one with 40, on no workers, waited for.
#[test]
fn a_latch_has_many_completers() {
    let js = Builder::new().workers(0).build().unwrap();
    let parts = js.latch("parts", 40);
    for _ in 0..40 {
        let inner = parts.clone();
        let part = js.job("part").schedule(move |_| inner.complete_one());
        js.add_completer(&parts, part).unwrap();
    }
    js.wait(&parts);
    assert!(js.report().jobs.is_empty());
}
