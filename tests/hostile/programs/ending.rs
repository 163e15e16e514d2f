//! The end of a slice: leftovers of programs are over, the counts are right, and the job system goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Event, Grain, Job, JobSystem, Stats, WaitError};

use super::setup::{Ending, Hooks, Setup};
use super::world::{World, fail};
use crate::watchdog;

/// How long counts may lag behind the events they count: a job is over before its finisher has left it. Not a
/// bound on speed, only far more than that.
const LAG: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_micros(200);

/// Ends the world. The number of jobs that were run, or what is wrong.
pub(super) fn end(
    world: Arc<World>,
    setup: &Setup,
    hooks: &Hooks,
    workers: usize,
) -> Result<u64, String> {
    let js = Arc::clone(&world.js);
    js.resize(workers)
        .map_err(|error| format!("resize({workers}): {error}"))?;
    watchdog::stage("jobs that nothing waits for, at the end");
    while Arc::strong_count(&world) > 1 {
        if js.workers() == 0 {
            js.poll();
        }
        thread::sleep(PAUSE);
    }
    check_counts(&world, setup)?;
    if let Some(text) = world.first_wrong() {
        return Err(text);
    }
    let jobs = js.stats().jobs;
    drop(world);
    leave(js, setup, hooks, workers)?;
    Ok(jobs)
}

/// Panics on purpose are counted, each once.
fn check_counts(world: &World, setup: &Setup) -> Result<(), String> {
    let (bombs, wakers) = (&world.bombs, &world.wakers);
    await_count(world, "drop_panics", |counted| {
        counted == bombs.load(Ordering::SeqCst)
    })?;
    let more = setup.counts_more_hook_panics();
    await_count(world, "hook_panics", |counted| {
        let wakers = wakers.load(Ordering::SeqCst);
        counted == wakers || more && counted > wakers
    })
}

/// Waits until the counter is as it should be. One that does not exist is not looked at.
fn await_count(world: &World, name: &str, is_right: impl Fn(u64) -> bool) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        let Some(counted) = counter(&world.js.stats(), name) else {
            return Ok(());
        };
        if is_right(counted) {
            return Ok(());
        }
        if begin.elapsed() > LAG {
            let bombs = world.bombs.load(Ordering::SeqCst);
            let wakers = world.wakers.load(Ordering::SeqCst);
            return Err(format!(
                "Stats::{name} is {counted} after {bombs} drops and {wakers} wakers that panicked"
            ));
        }
        watchdog::progress();
        thread::sleep(PAUSE);
    }
}

fn counter(stats: &Stats, name: &str) -> Option<u64> {
    let named = stats.named();
    let found = named.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, counted)| counted)
}

/// The last owner goes, in the way that was drawn. Jobs cannot be the last owner without workers.
fn leave(js: Arc<JobSystem>, setup: &Setup, hooks: &Hooks, workers: usize) -> Result<(), String> {
    let ending = match setup.ending {
        Ending::Idle | Ending::Busy => setup.ending,
        _ if workers == 0 => Ending::Idle,
        other => other,
    };
    watchdog::stage(&format!("the end of the job system ({ending:?})"));
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| 1);
    match ending {
        Ending::Idle => drop(alone(js)?),
        Ending::Busy => busy(alone(js)?)?,
        _ => by_a_job(js, ending),
    }
    while !hooks.are_all_gone() {
        thread::sleep(PAUSE);
    }
    check_shut_down(never, held)
}

/// The job system itself, which no job owns any more.
fn alone(mut js: Arc<JobSystem>) -> Result<JobSystem, String> {
    let begin = Instant::now();
    loop {
        js = match Arc::try_unwrap(js) {
            Ok(js) => return Ok(js),
            Err(js) => js,
        };
        if begin.elapsed() > LAG {
            return Err("a job that is over still owns the job system".into());
        }
        watchdog::progress();
        thread::sleep(PAUSE);
    }
}

/// Jobs that can run do so while the job system goes.
fn busy(js: JobSystem) -> Result<(), String> {
    const JOBS: u64 = 200;
    let ran = Arc::new(AtomicU64::new(0));
    for _ in 0..JOBS {
        let ran = Arc::clone(&ran);
        js.schedule(move |cx| {
            ran.fetch_add(1, Ordering::Relaxed);
            cx.schedule(move |_| _ = ran.fetch_add(1, Ordering::Relaxed));
        });
    }
    drop(js);
    match ran.load(Ordering::Relaxed) {
        all if all == 2 * JOBS => Ok(()),
        ran => Err(format!(
            "a job system ended after {ran} of {} jobs",
            2 * JOBS
        )),
    }
}

/// A job is the last owner: it is held until this thread has given its own part up.
fn by_a_job(js: Arc<JobSystem>, ending: Ending) {
    let go = Arc::new(AtomicBool::new(false));
    let gate = {
        let go = Arc::clone(&go);
        move || {
            while !go.load(Ordering::SeqCst) {
                thread::sleep(PAUSE);
            }
        }
    };
    let theirs = Arc::clone(&js);
    match ending {
        Ending::Result => drop(js.job("result").run(move |_| {
            gate();
            theirs
        })),
        Ending::Cancelled => {
            let bad = js.job("bad").schedule(move |_| {
                gate();
                fail()
            });
            js.job("cancelled")
                .after(bad)
                .schedule(move |_| drop(theirs));
        }
        Ending::Range => {
            js.job("range")
                .schedule_for(0..8, Grain::Items(1), move |_, _| {
                    let _owner = &theirs;
                    gate();
                });
        }
        Ending::Body | Ending::Idle | Ending::Busy => {
            js.schedule(move |_| {
                gate();
                drop(theirs);
            });
        }
    }
    js.flush();
    drop(js);
    go.store(true, Ordering::SeqCst);
}

/// A job that never could run is dropped, and its handle says why; the event that held it is of no use any
/// more.
fn check_shut_down(never: Event, held: Job<u64>) -> Result<(), String> {
    let told = match held.try_wait() {
        Err(WaitError::ShutDown) => Ok(()),
        Err(error) => Err(format!(
            "a handle that outlives the job system said: {error}"
        )),
        Ok(_) => Err("a job that an event held back was run".into()),
    };
    never.complete();
    told
}
