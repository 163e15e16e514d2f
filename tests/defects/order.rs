//! Jobs that are ready get their turn, and waits with a deadline end in time.
//!
//! Once the turns of fairness came from the queues of outside threads alone. A job in the queue of a thread
//! that was busy with something else waited as long as the workers made jobs for themselves. So did an older
//! job below newer ones in a worker's own queue. And a wait with a deadline began jobs, however long they
//! were.
//!
//! Method: the job that must not be put off for ever ends something that otherwise goes on for ever.

use super::*;

use std::time::Duration;

use paceline::{Context, Grain};
use platform::Os;

/// Makes the next job of its sort, until it is told to stop.
fn goes_on(cx: &Context<'_, Os>, stop: Flag) {
    if !stop.is_up() {
        cx.schedule(move |cx| goes_on(cx, stop));
    }
}

/// Keeps all workers busy with jobs that make jobs.
fn busy(workers: usize) -> (JobSystem, Flag) {
    let (js, stop) = (system(workers), Flag::default());
    for _ in 0..2 * workers {
        let stop = stop.clone();
        js.schedule(move |cx| goes_on(cx, stop));
    }
    js.flush();
    (js, stop)
}

/// Goal: a job in a scope of an outside thread is run although all workers are busy with jobs that make
/// jobs, and the thread that opened the scope does something else. Method: what that thread does ends when
/// the job has run.
#[test]
fn a_scope_of_a_busy_thread() {
    for workers in [1, 2] {
        watched(&format!("a busy scope, {workers} workers"), || {
            let (js, stop) = busy(workers);
            for _ in 0..5 {
                let ran = Flag::default();
                js.scope(|scope| {
                    let runs = ran.clone();
                    scope.spawn(move |_| runs.raise());
                    js.flush();
                    ran.wait();
                });
            }
            stop.raise();
            ends_well(js);
        });
    }
}

/// Goal: as above for a job that another one leaves behind which an outside thread has run inside a wait.
/// Method: the job, which main waits for and therefore runs, makes another one; main calls nothing from then
/// on.
#[test]
fn what_a_job_leaves_with_a_waiter() {
    for workers in [1, 2] {
        watched(&format!("left with a waiter, {workers} workers"), || {
            let (js, stop) = busy(workers);
            for _ in 0..5 {
                let ran = Flag::default();
                let runs = ran.clone();
                let made = js.schedule(move |cx| {
                    cx.schedule(move |_| runs.raise());
                });
                js.try_wait(made).expect("it ends well");
                ran.wait();
            }
            stop.raise();
            ends_well(js);
        });
    }
}

/// Goal: jobs that an outside thread schedules are run in such a case, too, in the background or not, and so
/// are jobs that an event held back. Method: as above.
#[test]
fn what_a_busy_thread_schedules() {
    for workers in [1, 2] {
        watched(&format!("scheduled outside, {workers} workers"), || {
            let (js, stop) = busy(workers);
            for _ in 0..5 {
                let ran = Count::default();
                let gate = js.event("gate");
                for job in [
                    js.job("plain"),
                    js.job("background").background(),
                    js.job("held").after(gate.id()),
                ] {
                    let ran = ran.clone();
                    job.schedule(move |_| _ = ran.up());
                }
                gate.complete();
                until(|| ran.get() == 3);
            }
            stop.raise();
            ends_well(js);
        });
    }
}

/// Goal: the oldest job of a worker's own queue gets its turn. Method: with one worker, a job schedules the
/// one that ends it all, and then newer ones that each make another.
#[test]
fn the_oldest_job_of_a_queue() {
    for newer in [1, 100] {
        watched(&format!("the oldest job, {newer} newer ones"), || {
            let (js, stop) = (system(1), Flag::default());
            let stops = stop.clone();
            js.schedule(move |cx| {
                let ends = stops.clone();
                cx.schedule(move |_| ends.raise());
                for _ in 0..newer {
                    let stop = stops.clone();
                    cx.schedule(move |cx| goes_on(cx, stop));
                }
            });
            js.flush();
            stop.wait();
            all_workers_work(&js);
            ends_well(js);
        });
    }
}

/// Goal: a wait with a deadline begins no job where there are workers, since it could not end in time then.
/// Method: the job that main waits for is ready, or becomes ready in the middle of the wait, and ends when
/// that wait is over. All workers are busy with something else, so main would be the one to run it.
#[test]
fn a_wait_with_a_deadline_begins_nothing() {
    for is_ready in [true, false] {
        watched(&format!("a deadline, ready at once: {is_ready}"), || {
            let (js, gave_up) = (system(1), Flag::default());
            let (busy, is_busy) = (gave_up.clone(), Flag::default());
            let begins = is_busy.clone();
            js.job("busy").schedule(move |_| {
                begins.raise();
                busy.wait();
            });
            js.flush();
            is_busy.wait();
            let (gate, over) = (js.event("gate"), gave_up.clone());
            let job = js.job("awaited").after(gate.id());
            let job = job.run(move |_| over.wait());
            let other = thread::spawn({
                let delay = Duration::from_millis(if is_ready { 0 } else { 20 });
                move || {
                    thread::sleep(delay);
                    gate.complete();
                }
            });
            if is_ready {
                other.join().expect("it does not panic");
                let waited = js.wait_timeout(job.id(), Duration::from_millis(1));
                assert!(matches!(waited, Ok(false)), "{waited:?}");
            } else {
                let waited = js.wait_timeout(job.id(), Duration::from_millis(100));
                assert!(matches!(waited, Ok(false)), "{waited:?}");
                other.join().expect("it does not panic");
            }
            let job = match job.wait_timeout(Duration::from_millis(1)) {
                Ok(Err(job)) => job,
                other => panic!("it cannot be over: {other:?}"),
            };
            gave_up.raise();
            job.wait();
            ends_well(js);
        });
    }
}

/// Goal: the same for a job that the awaited one depends on, and for parts of a loop. Method: the awaited job
/// is not ready, but one that it needs is; or it is a range in the middle of which the worker is.
#[test]
fn a_wait_with_a_deadline_does_not_help() {
    watched("a deadline and ancestors", || {
        let (js, gave_up) = (system(1), Flag::default());
        let main = thread::current().id();
        let (over, begun, strays) = (gave_up.clone(), Count::default(), Count::default());
        let (begins, strayed) = (begun.clone(), strays.clone());
        let range = js.job("range");
        let range = range.schedule_for(0..8, Grain::Items(1), move |_, _| {
            begins.up();
            if thread::current().id() == main && !over.is_up() {
                strayed.up();
            } else {
                over.wait();
            }
        });
        js.flush();
        until(|| begun.get() == 1);
        let stray = strays.clone();
        let is_over = gave_up.clone();
        let before = js.job("before").schedule(move |_| {
            if thread::current().id() == main && !is_over.is_up() {
                stray.up();
            }
        });
        let last = js.job("last").after_all([before, range]).schedule(|_| ());
        for id in [range, last] {
            let waited = js.wait_timeout(id, Duration::from_millis(5));
            assert!(matches!(waited, Ok(false)), "{waited:?}");
        }
        assert_eq!(strays.get(), 0, "bodies that a wait with a deadline ran");
        gave_up.raise();
        js.try_wait(last).expect("it ends well");
        ends_well(js);
    });
}

/// Goal: an outside thread that polls with a deadline ends although all workers are blocked where the job
/// system does not see it. Method: each worker's job joins an outside thread, in the operating system; that
/// thread polls for a job that is ready, for one that needs it, or for a range.
#[test]
fn polling_for_what_a_blocked_worker_should_run() {
    for workers in [1, 2] {
        watched(&format!("polls, {workers} blocked workers"), || {
            let js = Arc::new(system(workers));
            let blocked = Count::default();
            let joins: Vec<_> = (0..workers)
                .map(|_| {
                    let (outside, up, all) = (js.clone(), blocked.clone(), blocked.clone());
                    let poller = thread::spawn(move || {
                        until(|| all.get() == workers);
                        let ready = outside.schedule(|_| ());
                        let range =
                            outside
                                .job("range")
                                .schedule_for(0..100, Grain::Items(1), |_, _| ());
                        let last = outside.job("last").after(ready).schedule(|_| ());
                        for id in [last, range] {
                            while let Ok(false) = outside.wait_timeout(id, Duration::from_micros(5))
                            {
                            }
                        }
                    });
                    js.schedule(move |_| {
                        up.up();
                        poller.join().expect("it does not panic");
                    })
                })
                .collect();
            js.flush();
            // No job of the loop may end up here: this thread only looks on.
            until(|| joins.iter().all(|id| js.is_done(*id)));
            ends_well(Arc::into_inner(js).expect("the pollers have gone"));
        });
    }
}

/// Goal: jobs that poll with a deadline, on all workers, come to an end although what each polls for is ready
/// and no other thread is there to run it. Method: each worker's job makes a job and polls until that is
/// over. No spare may relieve them, and main only looks on.
#[test]
fn polling_on_all_workers() {
    for (workers, moment) in [1, 2]
        .into_iter()
        .flat_map(|few| MOMENTS.map(|of| (few, of)))
    {
        watched(&format!("{workers} workers poll for {moment:?}"), || {
            let js = small(workers).max_spares(0).build();
            let js = Arc::new(js.expect("threads can be started"));
            let polling = Count::default();
            let polls: Vec<_> = (0..workers)
                .map(|_| {
                    let (theirs, polling) = (js.clone(), polling.clone());
                    js.schedule(move |cx| {
                        polling.up();
                        until(|| polling.get() == workers);
                        let needed = cx.schedule(|_| ());
                        while let Ok(false) = theirs.wait_timeout(needed, moment) {}
                    })
                })
                .collect();
            let_run(&js, &polls);
            until(|| Arc::strong_count(&js) == 1);
            ends_well(Arc::into_inner(js).expect("the jobs have let go"));
        });
    }
}

/// How long one poll lasts: no time at all, and long enough for a worker to stand still.
const MOMENTS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(2)];

/// Goal: without workers such a wait runs the needed jobs, and ends when the deadline has passed. Method: a
/// chain of jobs of which one lasts longer than the deadline; the wait comes back before the next one.
#[test]
fn a_wait_with_a_deadline_without_workers() {
    watched("a deadline without workers", || {
        let (js, ran) = (system(0), Count::default());
        let needed = js.job("needed").run(|_| 7);
        let waited = js.wait_timeout(needed.id(), Duration::from_secs(100));
        assert!(matches!(waited, Ok(true)), "{waited:?}");
        assert_eq!(needed.wait(), 7);
        let mut last = js.schedule(|_| thread::sleep(Duration::from_millis(30)));
        for _ in 0..10 {
            let ran = ran.clone();
            last = js.job("link").after(last).schedule(move |_| _ = ran.up());
        }
        let waited = js.wait_timeout(last, Duration::from_millis(1));
        assert!(matches!(waited, Ok(false)), "{waited:?}");
        assert_eq!(ran.get(), 0, "jobs that began after the deadline");
        js.try_wait(last).expect("it ends well");
        assert_eq!(ran.get(), 10);
    });
}
