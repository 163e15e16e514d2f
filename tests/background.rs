//! Goal: background jobs take no more workers than they may, lose nothing by the limit, and cannot stop each
//! other through it. A worker that blocks lends its core.
//!
//! Method: programs on simulated threads under random orders of steps, where a job that is forgotten is a
//! deadlock or never ends; how many background bodies are in progress is counted by themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use event::Nanos;
use paceline::{Builder, Context, JobId, JobSystem};
use sim::Sim;

use crate::support::{Random, delays, each_seed, fail};

/// Waits without running anything.
fn sleep_until_done(sim: &Sim, js: &JobSystem<Sim>, jobs: &[JobId]) {
    while !jobs.iter().all(|&job| js.is_done(job)) {
        sim.sleep_until(sim.time() + Nanos::from_micros(200));
    }
}

/// How many bodies are in progress, and the most that were.
#[derive(Default)]
struct InProgress {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl InProgress {
    fn run(&self, body: impl FnOnce()) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
        body();
        self.now.fetch_sub(1, Relaxed);
    }
}

#[test]
fn background_jobs_take_no_more_workers_than_they_may() {
    let test = "background::background_jobs_take_no_more_workers_than_they_may";
    each_seed(test, 600, |seed| {
        let mut random = Random::new(seed ^ 0xbac6_0000);
        let workers = 1 + random.below(4);
        let limit = 1 + random.below(workers);
        let jobs = 1 + random.below(30);
        let backgrounds: Vec<bool> = (0..jobs).map(|_| random.chance(60)).collect();
        let pauses: Vec<usize> = (0..jobs).map(|_| random.below(40)).collect();
        let progress = Arc::new(InProgress::default());
        let counted = progress.clone();
        let report = Sim::run(delays(seed), move |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(workers);
            let js = builder.background_at_most(limit).build().unwrap();
            let mut ids: Vec<JobId> = Vec::new();
            for (is_background, pause) in backgrounds.into_iter().zip(pauses) {
                let counted = counted.clone();
                let work = move |cx: &Context<'_, Sim>| cx.work(Nanos::from_micros(30));
                let mut job = js.job("job");
                // Some come after others, and so become ready on a worker.
                if pause % 3 == 0
                    && let Some(&last) = ids.last()
                {
                    job = job.after(last);
                }
                ids.push(if is_background {
                    job.background()
                        .schedule(move |cx| counted.run(|| work(cx)))
                } else {
                    job.schedule(work)
                });
                sim.sleep_until(sim.time() + Nanos::from_micros(pause as u64));
            }
            sleep_until_done(&sim, &js, &ids);
        });
        report.expect_finished();
        let most = progress.most.load(Relaxed);
        assert!(most <= limit, "{most} of {limit} at a time");
    });
}

/// Goal: jobs that cannot end before others of their lane have run do not use up all places. Method: one
/// place; a job waits for an event that another one completes, or is blocked until it has run, in random
/// order with others. A loop in the background has a place, too.
#[test]
fn places_of_jobs_that_rest_are_free() {
    each_seed(
        "background::places_of_jobs_that_rest_are_free",
        400,
        |seed| {
            let mut random = Random::new(seed ^ 0xbac7_0000);
            let (workers, blocks) = (2 + random.below(2), random.chance(50));
            let report = Sim::run(delays(seed), move |sim| {
                let builder = Builder::with_platform(sim.clone()).workers(workers);
                let js = builder.background_at_most(1).build().unwrap();
                let mut jobs = Vec::new();
                for _ in 0..4 {
                    let has_run = Arc::new(AtomicBool::new(false));
                    let event = js.event("event");
                    let (id, ran) = (event.id(), has_run.clone());
                    jobs.push(js.job("rests").background().schedule(move |cx| {
                        if !blocks {
                            return cx.wait(id);
                        }
                        cx.blocking(|| {
                            while !ran.load(Relaxed) {
                                let platform = cx.platform();
                                platform.sleep_until(platform.time() + Nanos::from_micros(20));
                            }
                        });
                    }));
                    let grain = paceline::Grain::Items(1);
                    let range = js.job("loop").background();
                    jobs.push(
                        range.schedule_for(0..4, grain, |_, cx| cx.work(Nanos::from_micros(5))),
                    );
                    jobs.push(js.job("completes").background().schedule(move |_| {
                        has_run.store(true, Relaxed);
                        event.complete();
                    }));
                }
                sleep_until_done(&sim, &js, &jobs);
            });
            report.expect_finished();
        },
    );
}

/// Goal: the same for a worker that has joined a loop of the background. Method: one place; each part of a
/// loop waits for an event that a background job completes.
#[test]
fn places_of_loops_that_rest_are_free() {
    each_seed(
        "background::places_of_loops_that_rest_are_free",
        200,
        |seed| {
            let report = Sim::run(delays(seed), move |sim| {
                let builder = Builder::with_platform(sim.clone()).workers(3);
                let js = builder.background_at_most(1).build().unwrap();
                let event = js.event("event");
                let id = event.id();
                let range = js.job("loop").background();
                let range = range.schedule_for(0..3, paceline::Grain::Items(1), move |_, cx| {
                    cx.work(Nanos::from_micros(50));
                    cx.wait(id);
                });
                // The first worker is in the loop by now, and has invited others.
                sim.sleep_until(sim.time() + Nanos::from_micros(200));
                let completes = js.job("completes").background();
                let completes = completes.schedule(move |_| event.complete());
                sleep_until_done(&sim, &js, &[range, completes]);
            });
            report.expect_finished();
        },
    );
}

/// Goal: the background gets a turn although there is always other work. Method: one worker; each job from
/// outside schedules its successor from outside, so that there is always one in the inbox.
#[test]
fn the_background_gets_a_turn() {
    const MOST: usize = 2000;
    let report = Sim::run(delays(0), |sim| {
        let js = Arc::new(
            Builder::with_platform(sim.clone())
                .workers(1)
                .build()
                .unwrap(),
        );
        let (saved, ran) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let work = |ran: &Arc<AtomicUsize>| {
            let ran = ran.clone();
            move |cx: &Context<'_, Sim>| {
                ran.fetch_add(1, Relaxed);
                cx.work(Nanos::from_micros(20));
            }
        };
        for _ in 0..8 {
            js.schedule(work(&ran));
        }
        let saves = saved.clone();
        let save = js
            .job("save")
            .background()
            .schedule(move |_| saves.store(true, Relaxed));
        // This thread is faster than the worker.
        while !saved.load(Relaxed) && ran.load(Relaxed) < MOST {
            js.schedule(work(&ran));
            sim.sleep_until(sim.time() + Nanos::from_micros(15));
        }
        assert!(
            saved.load(Relaxed),
            "{} others went before",
            ran.load(Relaxed)
        );
        js.wait(save);
    });
    report.expect_finished();
}

/// Goal: a wait for a background job is not held up by the limit. Method: all places are taken by jobs that
/// end only when another background job has, which the program waits for.
#[test]
fn a_wait_needs_no_place() {
    let report = Sim::run(delays(0), |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(2);
        let js = builder.background_at_most(1).build().unwrap();
        let has_run = Arc::new(AtomicBool::new(false));
        let ran = has_run.clone();
        let holder = js.job("holder").background().schedule(move |cx| {
            while !ran.load(Relaxed) {
                cx.work(Nanos::from_micros(20));
            }
        });
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        let awaited = js.job("awaited").background();
        let awaited = awaited.schedule(move |_| has_run.store(true, Relaxed));
        // This thread may run nothing in it, so a worker has to.
        let hour = std::time::Duration::from_secs(3600);
        assert!(js.wait_timeout(awaited, hour).unwrap());
        js.wait(holder);
    });
    report.expect_finished();
}

#[test]
fn a_limit_of_no_worker_is_refused() {
    let built = Builder::new().background_at_most(0).build();
    let error = built.err().expect("there would be none left").to_string();
    assert_eq!(
        error,
        "background_at_most must be between 1 and 1024, not 0"
    );
}

/// Goal: while a worker blocks, a spare runs what is ready, and nothing is left of that when the call is
/// over, however it ends. Method: the only worker blocks until another job has run, three times: the call
/// returns, it panics, it waits in the middle.
#[test]
fn a_worker_that_blocks_lends_its_core() {
    each_seed(
        "background::a_worker_that_blocks_lends_its_core",
        200,
        |seed| {
            let report = Sim::run(delays(seed), |sim| {
                let js = Builder::with_platform(sim.clone())
                    .workers(1)
                    .build()
                    .unwrap();
                for way in 0..3 {
                    let has_run = Arc::new(AtomicBool::new(false));
                    let ran = has_run.clone();
                    let blocked = js.job("blocks").schedule(move |cx| {
                        let block = || {
                            while !ran.load(Relaxed) {
                                let platform = cx.platform();
                                platform.sleep_until(platform.time() + Nanos::from_micros(20));
                            }
                            match way {
                                1 => fail("on purpose"),
                                2 => cx.wait(cx.job("inner").schedule(|_| ())),
                                _ => {}
                            }
                        };
                        let ended = catch_unwind(AssertUnwindSafe(|| cx.blocking(block)));
                        assert_eq!(ended.is_err(), way == 1);
                    });
                    sim.sleep_until(sim.time() + Nanos::from_millis(1));
                    let other = js
                        .job("other")
                        .schedule(move |_| has_run.store(true, Relaxed));
                    sleep_until_done(&sim, &js, &[blocked, other]);
                    assert!(js.is_done(other));
                }
                assert!(js.stats().spares >= 1, "{:?}", js.stats());
                // The worker counts as free again: now no spare is needed.
                let before = js.stats().spares;
                sleep_until_done(&sim, &js, &[js.job("last").schedule(|_| ())]);
                assert_eq!(js.stats().spares, before);
            });
            report.expect_finished();
        },
    );
}
