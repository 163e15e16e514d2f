//! Goal: a background job with checkpoints is not in the way of more urgent jobs, and goes on when it no
//! longer is, when it becomes urgent itself, or now and then; nothing is lost or stuck by that.
//!
//! Method: programs on simulated threads under random orders of steps. A body that is to make way works on
//! until what it makes way for has happened, and gives up after many checkpoints. So nothing is timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use event::Nanos;
use paceline::{
    Activity, Builder, Context, Grain, JobId, JobSystem, Lane, LiveThread, LiveThreadKind,
};
use platform::Platform;
use policy::Placement;
use sim::{Machine, Sim, SimConfig};

use crate::support::{Random, delays, each_seed};

/// A body that has come to so many checkpoints gives up.
const MANY: usize = 20_000;

fn work<P: Platform>(cx: &Context<'_, P>, micros: u64) {
    cx.work(Nanos::from_micros(micros));
}

/// Works, with checkpoints, until `is_over`. Returns how often it has rested.
fn work_until<P: Platform>(cx: &Context<'_, P>, mut is_over: impl FnMut() -> bool) -> usize {
    let mut rests = 0;
    for _ in 0..MANY {
        if is_over() {
            return rests;
        }
        work(cx, 20);
        rests += usize::from(cx.checkpoint());
    }
    panic!("what the background should make way for never happens");
}

/// Waits without running anything.
fn sleep_until(sim: &Sim, is_over: impl Fn() -> bool) {
    while !is_over() {
        sim.sleep_until(sim.time() + Nanos::from_micros(50));
    }
}

fn system(sim: &Sim, workers: usize) -> JobSystem<Sim> {
    let builder = Builder::with_platform(sim.clone()).workers(workers);
    builder.build().unwrap()
}

/// A background job that is in progress and ends when the flag is set.
fn baking(sim: &Sim, js: &JobSystem<Sim>, until: &Arc<AtomicBool>) -> JobId {
    let (begun, until) = (Arc::new(AtomicBool::new(false)), until.clone());
    let begins = begun.clone();
    let job = js.job("bake").background().schedule(move |cx| {
        begins.store(true, Relaxed);
        work_until(cx, || until.load(Relaxed));
    });
    sleep_until(sim, || begun.load(Relaxed));
    job
}

/// Goal: whatever comes up while background jobs hold all workers is run before they end. Method: random
/// numbers of workers and places; each background job ends when a job has run that is scheduled later: from
/// outside, by a job, in a scope, as a successor, quietly with a flush, in either lane.
#[test]
fn the_background_makes_way() {
    each_seed("checkpoint::the_background_makes_way", 600, |seed| {
        let mut random = Random::new(seed ^ 0xc4ec_0000);
        let workers = 1 + random.below(4);
        let bakes = 1 + random.below(6);
        let limit = random.chance(40).then(|| 1 + random.below(workers));
        let ways: Vec<usize> = (0..bakes).map(|_| random.below(5)).collect();
        let pauses: Vec<usize> = (0..bakes).map(|_| random.below(200)).collect();
        let report = Sim::run(delays(seed), move |sim| {
            let mut builder = Builder::with_platform(sim.clone()).workers(workers);
            if let Some(limit) = limit {
                builder = builder.background_at_most(limit);
            }
            let js = builder.build().unwrap();
            let flags: Vec<_> = (0..bakes)
                .map(|_| Arc::new(AtomicBool::new(false)))
                .collect();
            let mut jobs = Vec::new();
            for flag in &flags {
                let flag = flag.clone();
                jobs.push(js.job("bake").background().schedule(move |cx| {
                    work_until(cx, || flag.load(Relaxed));
                }));
            }
            for ((way, flag), pause) in ways.into_iter().zip(flags).zip(pauses) {
                sim.sleep_until(sim.time() + Nanos::from_micros(pause as u64));
                let urgent = js.job("urgent");
                jobs.push(match way {
                    0 => urgent.schedule(move |_| flag.store(true, Relaxed)),
                    1 => {
                        let urgent = urgent.lane(Lane::Frame);
                        urgent.schedule(move |_| flag.store(true, Relaxed))
                    }
                    2 => urgent.schedule(move |cx| {
                        cx.schedule(move |_| flag.store(true, Relaxed));
                        work(cx, 30);
                    }),
                    3 => urgent.schedule(move |cx| {
                        cx.scope(|scope| {
                            let flag = &flag;
                            scope.spawn(move |_| flag.store(true, Relaxed));
                        });
                    }),
                    _ => {
                        let first = js.schedule(|cx| work(cx, 10));
                        urgent
                            .after(first)
                            .schedule(move |_| flag.store(true, Relaxed))
                    }
                });
            }
            sleep_until(&sim, || jobs.iter().all(|&job| js.is_done(job)));
            for job in jobs {
                js.wait(job); // None has given up.
            }
        });
        report.expect_finished();
    });
}

/// Goal: a worker that has made way goes on when an urgent wait comes to need the job that it is in the
/// middle of, for the job underneath, or for the scope that the job is part of. Method: the only worker makes
/// way for a job that ends only when the background job has; then this thread waits for it.
#[test]
fn a_wait_has_it_go_on() {
    each_seed("checkpoint::a_wait_has_it_go_on", 300, |seed| {
        let report = Sim::run(delays(seed), move |sim| {
            let js = system(&sim, 1);
            for way in 0..3 {
                let (begun, rested) = (Arc::new(AtomicBool::new(false)), Arc::default());
                let (begins, rests) = (begun.clone(), Arc::clone(&rested));
                let bake = move |cx: &Context<'_, Sim>| {
                    begins.store(true, Relaxed);
                    for _ in 0..MANY {
                        work(cx, 20);
                        if cx.checkpoint() {
                            return AtomicBool::store(&rests, true, Relaxed);
                        }
                    }
                };
                let outer = js.job("bake").background().schedule(move |cx| match way {
                    0 => bake(cx),
                    1 => cx.wait(cx.job("underneath").schedule(bake)),
                    _ => cx.scope(|scope| {
                        scope.spawn(bake);
                    }),
                });
                sleep_until(&sim, || begun.load(Relaxed));
                let over = Arc::clone(&rested);
                // Whether it has seen the background job go on.
                let other = js.job("other").run(move |cx| {
                    (0..MANY).any(|_| {
                        work(cx, 20);
                        over.load(Relaxed)
                    })
                });
                sleep_until(&sim, || js.stats().yields > way);
                assert!(!js.is_done(outer) && !js.is_done(other.id()));
                // This thread may run nothing in it.
                let hour = std::time::Duration::from_secs(3600);
                assert!(js.wait_timeout(outer, hour).unwrap());
                assert!(other.wait(), "it has rested until the other job gave up");
            }
        });
        report.expect_finished();
    });
}

/// Goal: a worker that has made way for work without end goes on now and then. Method: the only worker; each
/// job schedules the next one until the background job has rested a few times.
#[test]
fn beside_work_without_end_it_goes_on_now_and_then() {
    const RESTS: usize = 3;
    const MOST: usize = 20_000;
    fn next(cx: &Context<'_, Sim>, over: Arc<AtomicBool>, ran: Arc<AtomicUsize>) {
        work(cx, 5);
        if !over.load(Relaxed) && ran.fetch_add(1, Relaxed) < MOST {
            cx.schedule(move |cx| next(cx, over, ran));
        }
    }
    let report = Sim::run(delays(0), |sim| {
        let js = system(&sim, 1);
        let (over, ran) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let is_over = over.clone();
        let bake = js.job("bake").background().schedule(move |cx| {
            let mut rests = 0;
            work_until(cx, || {
                rests += usize::from(cx.checkpoint());
                rests == RESTS
            });
            is_over.store(true, Relaxed);
        });
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        let counted = Arc::clone(&ran);
        js.schedule(move |cx| next(cx, over, counted));
        sleep_until(&sim, || js.is_done(bake));
        js.wait(bake);
        assert!(
            AtomicUsize::load(&ran, Relaxed) < MOST,
            "it rested for ever"
        );
    });
    report.expect_finished();
}

/// Goal: a background job that was begun comes before one that was not, so there are never more in progress
/// than workers. A worker that lets one go on, in fairness, takes no other. Method: endless background jobs
/// beside a thousand jobs, which is longer than any turn of fairness, and the number of bodies begun.
#[test]
fn no_more_are_begun_than_there_are_workers() {
    each_seed(
        "checkpoint::no_more_are_begun_than_there_are_workers",
        24,
        |seed| {
            let workers = 1 + (seed % 2) as usize;
            let report = Sim::run(delays(seed), move |sim| {
                let js = system(&sim, workers);
                let (is_over, begun) = (Arc::new(AtomicBool::new(false)), Arc::default());
                for _ in 0..2 * workers + 2 {
                    let (is_over, begun) = (is_over.clone(), Arc::<AtomicUsize>::clone(&begun));
                    js.job("bake").background().schedule(move |cx| {
                        begun.fetch_add(1, Relaxed);
                        work_until(cx, || is_over.load(Relaxed));
                    });
                }
                for _ in 0..1000 {
                    let urgent = js.schedule(|cx| work(cx, 10));
                    sleep_until(&sim, || js.is_done(urgent));
                }
                assert_eq!(begun.load(Relaxed), workers);
                is_over.store(true, Relaxed);
            });
            report.expect_finished();
        },
    );
}

/// Goal: loops and joins of other threads are shared with a worker that would make way. Method: the only
/// worker is in the background; this thread runs a loop, or joins, until other threads were seen in it. The
/// same loop without a checkpoint in the background is a control: no other thread takes part.
#[test]
fn loops_and_joins_are_shared_with_it() {
    const ITEMS: usize = 400;
    fn tree(cx: &Context<'_, Sim>, depth: usize, leaf: &(dyn Fn(&Context<'_, Sim>) + Sync)) {
        if depth == 0 {
            leaf(cx);
        } else {
            cx.join(
                |cx| tree(cx, depth - 1, leaf),
                |cx| tree(cx, depth - 1, leaf),
            );
        }
    }
    for (has_checkpoints, is_loop) in [(true, true), (true, false), (false, true), (false, false)] {
        let report = Sim::run(delays(0), move |sim| {
            let js = system(&sim, 1);
            let over = Arc::new(AtomicBool::new(false));
            let bake = if has_checkpoints {
                baking(&sim, &js, &over)
            } else {
                let (over, begun) = (over.clone(), Arc::new(AtomicBool::new(false)));
                let begins = begun.clone();
                let job = js.job("bake").background().schedule(move |cx| {
                    begins.store(true, Relaxed);
                    while !over.load(Relaxed) {
                        work(cx, 20);
                    }
                });
                sleep_until(&sim, || begun.load(Relaxed));
                job
            };
            let threads: Vec<AtomicUsize> = (0..js.thread_slots())
                .map(|_| AtomicUsize::new(0))
                .collect();
            let leaf = |cx: &Context<'_, Sim>| {
                work(cx, 20);
                threads[cx.worker()].fetch_add(1, Relaxed);
            };
            if is_loop {
                js.parallel_for(0..ITEMS, Grain::Items(1), |part, cx| {
                    part.for_each(|_| leaf(cx))
                });
            } else {
                js.enter(|cx| tree(cx, 9, &leaf));
            }
            over.store(true, Relaxed);
            js.wait(bake);
            let seen = threads
                .iter()
                .filter(|count| count.load(Relaxed) > 0)
                .count();
            assert_eq!(seen > 1, has_checkpoints, "loop: {is_loop}");
        });
        report.expect_finished();
    }
}

/// Goal: without spares a checkpoint does not rest, and nothing is reported as stuck. Method: as above, with
/// a body that counts its rests.
#[test]
fn without_spares_it_works_on() {
    let report = Sim::run(delays(0), |sim| {
        let stuck = Arc::new(AtomicBool::new(false));
        let is_stuck = stuck.clone();
        let builder = Builder::with_platform(sim.clone()).workers(1).max_spares(0);
        let builder = builder.on_stuck(move |_| is_stuck.store(true, Relaxed));
        let js = builder.build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let bake = js.job("bake").background();
        let bake = bake.run(move |cx| work_until(cx, || until.load(Relaxed)));
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        let other = js.schedule(|_| ());
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        assert!(!js.is_done(other));
        over.store(true, Relaxed);
        assert_eq!(bake.wait(), 0);
        js.wait(other);
        assert!(!stuck.load(Relaxed));
        assert!(
            js.stats().spares_refused > 0 && js.stats().yields == 0,
            "{:?}",
            js.stats()
        );
    });
    report.expect_finished();
}

/// Goal: jobs of other lanes do not rest. Method: a normal job comes to checkpoints beside a ready one.
#[test]
fn only_the_background_makes_way() {
    let report = Sim::run(delays(0), |sim| {
        let js = system(&sim, 1);
        let long = js.job("long").run(|cx| {
            cx.schedule(|_| ());
            (0..100)
                .filter(|_| {
                    work(cx, 20);
                    cx.checkpoint()
                })
                .count()
        });
        sleep_until(&sim, || js.is_done(long.id()));
        assert_eq!(long.wait(), 0);
        js.enter(|cx| assert!(!cx.checkpoint()));
    });
    report.expect_finished();
}

/// Goal: the job system can end while a worker rests. Method: it is dropped just then, in random orders; the
/// job that has the only core ends after a while.
#[test]
fn the_end_finds_those_that_rest() {
    each_seed("checkpoint::the_end_finds_those_that_rest", 200, |seed| {
        let report = Sim::run(delays(seed), |sim| {
            let js = system(&sim, 1);
            let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::default());
            let (begins, ends) = (begun.clone(), Arc::clone(&ended));
            js.job("bake").background().schedule(move |cx| {
                begins.store(true, Relaxed);
                (0..MANY).any(|_| {
                    work(cx, 20);
                    cx.checkpoint()
                });
                AtomicBool::store(&ends, true, Relaxed);
            });
            sleep_until(&sim, || begun.load(Relaxed));
            js.schedule(|cx| work(cx, 500));
            sleep_until(&sim, || js.stats().yields > 0);
            drop(js);
            assert!(ended.load(Relaxed), "a body was cut off");
        });
        report.expect_finished();
    });
}

/// Goal: it works on real threads. Method: the job that a background job makes way for ends it, 200 times.
/// Each time begins when the worker sleeps and the spares rest: one of the time before that is still awake
/// could take that job at once, and there would be nothing to make way for.
#[test]
fn on_real_threads() {
    let js = Builder::new().workers(1).build().unwrap();
    for _ in 0..200 {
        while js.report().threads.iter().any(is_awake) {
            std::thread::yield_now();
        }
        let over = Arc::new(AtomicBool::new(false));
        let (until, begun) = (over.clone(), Arc::new(AtomicBool::new(false)));
        let begins = begun.clone();
        let bake = js.job("bake").background().schedule(move |cx| {
            begins.store(true, Relaxed);
            while !until.load(Relaxed) {
                std::hint::spin_loop();
                cx.checkpoint();
            }
        });
        while !begun.load(Relaxed) {
            std::thread::yield_now();
        }
        let urgent = js.schedule(move |_| over.store(true, Relaxed));
        let hour = std::time::Duration::from_secs(3600);
        assert!(js.wait_timeout(urgent, hour).unwrap());
        js.wait(bake);
    }
    assert!(js.stats().yields >= 200, "{:?}", js.stats());
}

/// Whether it could take a job that becomes ready, without a wake-up.
fn is_awake(thread: &LiveThread) -> bool {
    match thread.kind {
        LiveThreadKind::Worker => thread.activity != Activity::Sleeps,
        LiveThreadKind::Spare => thread.activity != Activity::Rests,
        _ => false, // Of the program.
    }
}

/// What runs in the background beside frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Nothing,
    WithCheckpoints,
    Without,
}

/// The median of 30 frames of 4 ms of work at 60 Hz on two simulated CPUs, in virtual time.
fn median_frame(behind: Behind) -> Nanos {
    let machine = Machine::named("vm-2").expect("it is in the library");
    let machine = machine.clone().with_placement(Placement::Mainline);
    let mut times = Vec::new();
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", 1), |sim| {
        let js = system(&sim, 1);
        let over = Arc::new(AtomicBool::new(false));
        if behind != Behind::Nothing {
            let over = over.clone();
            js.job("bake").background().schedule(move |cx| {
                while !over.load(Relaxed) {
                    work(cx, 100);
                    if behind == Behind::WithCheckpoints {
                        cx.checkpoint();
                    }
                }
            });
        }
        for frame in 1..=30 {
            sim.sleep_until(Nanos(frame * 16_666_667));
            let begun = sim.time();
            js.parallel_for(0..200, Grain::Auto, |part, cx| {
                work(cx, 20 * part.len() as u64);
            });
            times.push(sim.time() - begun);
        }
        over.store(true, Relaxed);
    });
    report.expect_finished();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Goal: frames beside a background job with checkpoints are hardly longer than alone. Method: virtual time
/// on two CPUs. Without checkpoints, as a control, a frame has one CPU. (On a kernel that packs virtual CPUs
/// the program's own thread may be put behind the background job when it wakes up, before it calls anything
/// here.)
#[test]
fn frames_get_the_core() {
    let alone = median_frame(Behind::Nothing);
    let beside = median_frame(Behind::WithCheckpoints);
    assert!(beside.0 < alone.0 * 5 / 4, "{beside} beside, {alone} alone");
    let without = median_frame(Behind::Without);
    assert!(
        without.0 > alone.0 * 7 / 4,
        "{without} without, {alone} alone"
    );
}
