//! Goal: lanes with a share get that much of the workers' time as long as all have work, whatever the lengths
//! of their jobs; a lane without work leaves its time to the others and saves nothing; a wait does not wait
//! for a share; a lane with a limit, too, never has more workers.
//!
//! Method: workers of a simulated machine, with jobs that follow on each other for ever in each lane. The
//! work that the bodies have done is counted, by themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, JobSystem, Lane};
use sim::{Machine, Sim, SimConfig};

use crate::support::{Random, delays, each_seed};

/// A machine of which the CPUs do nothing else, so that the time of workers is the work of bodies.
fn quiet(seed: u64) -> SimConfig {
    let machine = Machine::named("ryzen-5800x").expect("it is in the library");
    SimConfig::on(machine, "eevdf-6.18", seed)
}

/// The jobs of a lane that are ready at a time.
const AT_A_TIME: usize = 12;

/// The work done in a lane, and whether it goes on.
#[derive(Default)]
struct Flow {
    done: AtomicU64,
    ends: AtomicBool,
}

/// A job of `length` in the lane that this thread works in, and another one after it, and so on.
fn flow(cx: &Context<'_, Sim>, of: &Arc<Flow>, length: Nanos) {
    let of = of.clone();
    cx.schedule(move |cx| {
        cx.work(length);
        of.done.fetch_add(length.0, Relaxed);
        if !of.ends.load(Relaxed) {
            flow(cx, &of, length);
        }
    });
}

/// Begins the flow of a lane with jobs of these lengths.
fn begin(js: &JobSystem<Sim>, lane: Lane, lengths: &[Nanos]) -> Arc<Flow> {
    let of = Arc::new(Flow::default());
    js.enter(|cx| {
        cx.in_lane(lane, || {
            for number in 0..AT_A_TIME {
                flow(cx, &of, lengths[number % lengths.len()]);
            }
        });
    });
    of
}

/// Flows that end with it, also if a test fails: the job system waits for them.
struct Flows(Vec<Arc<Flow>>);

impl Drop for Flows {
    fn drop(&mut self) {
        let flows = self.0.iter();
        flows.for_each(|flow| flow.ends.store(true, Relaxed));
    }
}

/// The part of each in the work that was done since `before`, in percent.
fn parts(Flows(flows): &Flows, before: &[u64]) -> Vec<f64> {
    let done = |(flow, before): (&Arc<Flow>, &u64)| flow.done.load(Relaxed) - before;
    let done: Vec<u64> = flows.iter().zip(before).map(done).collect();
    let all: u64 = done.iter().sum();
    let part = |&done: &u64| 100.0 * done as f64 / all as f64;
    done.iter().map(part).collect()
}

fn done(Flows(flows): &Flows) -> Vec<u64> {
    flows.iter().map(|flow| flow.done.load(Relaxed)).collect()
}

fn expect_parts(parts: &[f64], expected: &[f64]) {
    for (part, expected) in parts.iter().zip(expected) {
        // One job of each worker, and what the threads have not charged yet.
        assert!((part - expected).abs() < 1.5, "{parts:.2?}");
    }
}

/// Goal: source 003's "25 % of the time to the first, 10 % to the second and third, 55 % to the last", in
/// work done, for jobs of equal and of unequal lengths. Method: 4 ms to begin, then 200 ms of three workers.
#[test]
fn shares_are_shares_of_the_work() {
    each_seed("shares::shares_are_shares_of_the_work", 6, |seed| {
        let mut random = Random::new(seed ^ 0x54a2_0000);
        let lanes = [Lane::Share1, Lane::Share2, Lane::Share3, Lane::Normal];
        let lengths: Vec<Vec<Nanos>> = lanes
            .iter()
            .map(|_| {
                (0..3)
                    .map(|_| Nanos::from_micros(2 + random.below(40) as u64))
                    .collect()
            })
            .collect();
        let report = Sim::run(quiet(seed), move |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(3);
            let js = builder.shares(&[25, 10, 10]).build().unwrap();
            let begin = |(&lane, lengths): (&Lane, &Vec<Nanos>)| begin(&js, lane, lengths);
            let flows = Flows(lanes.iter().zip(&lengths).map(begin).collect());
            sim.sleep_until(sim.time() + Nanos::from_millis(4));
            let before = done(&flows);
            sim.sleep_until(sim.time() + Nanos::from_millis(200));
            expect_parts(&parts(&flows, &before), &[25.0, 10.0, 10.0, 55.0]);
        });
        report.expect_finished();
    });
}

/// Goal: a lane that has no work leaves its time to the others in the proportion of their shares. When it has
/// work again it gets its share, and no more for what it left. Method: two lanes without normal work for
/// 100 ms; then with it, for 100 ms, after 4 ms.
#[test]
fn what_a_lane_leaves_is_gone() {
    let report = Sim::run(quiet(3), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(2);
        let js = builder.shares(&[20, 10]).build().unwrap();
        let lengths = [Nanos::from_micros(20), Nanos::from_micros(5)];
        let mut flows = Flows(vec![
            begin(&js, Lane::Share1, &lengths),
            begin(&js, Lane::Share2, &lengths),
        ]);
        sim.sleep_until(sim.time() + Nanos::from_millis(100));
        expect_parts(&parts(&flows, &[0, 0]), &[66.7, 33.3]);
        flows.0.push(begin(&js, Lane::Normal, &lengths));
        sim.sleep_until(sim.time() + Nanos::from_millis(4));
        let before = done(&flows);
        sim.sleep_until(sim.time() + Nanos::from_millis(100));
        expect_parts(&parts(&flows, &before), &[20.0, 10.0, 70.0]);
        // The other way round.
        flows.0[0].ends.store(true, Relaxed);
        sim.sleep_until(sim.time() + Nanos::from_millis(50));
        flows.0.push(begin(&js, Lane::Share1, &lengths));
        sim.sleep_until(sim.time() + Nanos::from_millis(4));
        let before = done(&flows);
        sim.sleep_until(sim.time() + Nanos::from_millis(100));
        expect_parts(&parts(&flows, &before), &[0.0, 10.0, 70.0, 20.0]);
    });
    report.expect_finished();
}

/// How many jobs run at a time, and how many ever did.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn count<R>(&self, run: impl FnOnce() -> R) -> R {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
        let result = run();
        self.now.fetch_sub(1, Relaxed);
        result
    }
}

/// Goal: a lane with a share and a limit has its share of the work, and never more workers than its limit. If
/// its limit keeps it below its share it has what these workers can do, and the others have the rest; if
/// nothing else has work, too. Method: flows in three lanes on four workers. One lane wants less than its
/// limit allows, one wants half of the time and may have one worker. Then they alone.
#[test]
fn a_lane_may_have_a_share_and_a_limit() {
    each_seed("shares::a_lane_may_have_a_share_and_a_limit", 4, |seed| {
        let report = Sim::run(quiet(seed ^ 0x54a2_2000), |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(4);
            let builder = builder.shares(&[50, 20]).shares_at_most(&[1, 2]);
            let js = builder.build().unwrap();
            let crowds: [Arc<Crowd>; 2] = Default::default();
            let lengths = [5, 13, 30].map(Nanos::from_micros);
            let normal = begin(&js, Lane::Normal, &lengths);
            let limited = [Lane::Share1, Lane::Share2];
            let limited = limited.into_iter().zip(&crowds).map(|(lane, crowd)| {
                let of = Arc::new(Flow::default());
                for number in 0..AT_A_TIME {
                    crowded_flow(&js, lane, &of, crowd, lengths[number % 3]);
                }
                of
            });
            let mut flows: Vec<_> = limited.collect();
            flows.push(normal.clone());
            let flows = Flows(flows);
            sim.sleep_until(sim.time() + Nanos::from_millis(4));
            let before = done(&flows);
            sim.sleep_until(sim.time() + Nanos::from_millis(200));
            // Half of the time would be two workers, and it may have one. The others have the rest in
            // proportion to their shares, which are 20 and 30.
            expect_parts(&parts(&flows, &before), &[25.0, 30.0, 45.0]);

            normal.ends.store(true, Relaxed);
            sim.sleep_until(sim.time() + Nanos::from_millis(4));
            let before = done(&flows);
            sim.sleep_until(sim.time() + Nanos::from_millis(100));
            let work = |lane: usize| (done(&flows)[lane] - before[lane]) as f64 / 100e6;
            assert!((work(0) - 1.0).abs() < 0.05, "{} workers", work(0));
            assert!((work(1) - 2.0).abs() < 0.1, "{} workers", work(1));
            let most = crowds.each_ref().map(|crowd| crowd.most.load(Relaxed));
            assert_eq!(most, [1, 2], "at a time");
        });
        report.expect_finished();
    });
}

/// A job of this lane, counted, and another one after it, and so on.
fn crowded_flow(
    js: &JobSystem<Sim>,
    lane: Lane,
    of: &Arc<Flow>,
    crowd: &Arc<Crowd>,
    length: Nanos,
) {
    fn body(cx: &Context<'_, Sim>, of: Arc<Flow>, crowd: Arc<Crowd>, length: Nanos) {
        crowd.count(|| cx.work(length));
        of.done.fetch_add(length.0, Relaxed);
        if !of.ends.load(Relaxed) {
            cx.schedule(move |cx| body(cx, of, crowd, length));
        }
    }
    let (of, crowd) = (of.clone(), crowd.clone());
    let job = js.job("limited").lane(lane);
    job.schedule(move |cx| body(cx, of, crowd, length));
}

/// Goal: jobs of a limited lane that wait for each other do not use up its places: one that rests leaves its
/// own, in waits and in `blocking`. Method: a limit of one; a job that waits for an event which another job
/// of the lane completes, by each kind of rest. If the place were not left, the program would hang.
#[test]
fn a_job_that_rests_leaves_its_place() {
    each_seed("shares::a_job_that_rests_leaves_its_place", 200, |seed| {
        let mut random = Random::new(seed ^ 0x54a2_3000);
        let (workers, blocks) = (2 + random.below(3), random.chance(50));
        let report = Sim::run(delays(seed), move |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(workers);
            let builder = builder.shares(&[30, 20]).shares_at_most(&[1]);
            let js = Arc::new(builder.build().unwrap());
            for _ in 0..3 {
                let (event, inner) = (js.event("event"), js.clone());
                let awaited = event.id();
                let waits = js.job("waits").lane(Lane::Share1).schedule(move |cx| {
                    if blocks {
                        cx.blocking(|| inner.wait(awaited));
                    } else {
                        cx.wait(awaited);
                    }
                });
                let completes = js.job("completes").lane(Lane::Share1);
                completes.schedule(move |_| event.complete());
                // Not by a wait, which would take it out of the lane.
                while !js.is_done(waits) {
                    sim.sleep_until(sim.time() + Nanos::from_micros(100));
                }
            }
        });
        report.expect_finished();
    });
}

/// Goal: jobs that a job of a lane with a share makes are charged to that lane: loops and scopes. Method: the
/// jobs of one lane are such, of several parts.
#[test]
fn loops_and_scopes_are_in_the_lane_of_their_job() {
    let report = Sim::run(quiet(5), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(3);
        let js = Arc::new(builder.shares(&[30]).build().unwrap());
        let normal = begin(&js, Lane::Normal, &[Nanos::from_micros(10)]);
        let split = Arc::new(Flow::default());
        for _ in 0..AT_A_TIME {
            split_flow(&js, &split);
        }
        let flows = Flows(vec![split, normal]);
        sim.sleep_until(sim.time() + Nanos::from_millis(4));
        let before = done(&flows);
        sim.sleep_until(sim.time() + Nanos::from_millis(200));
        let parts = parts(&flows, &before);
        // A scope and a loop cost time in which no body works, and that is charged, too.
        assert!((parts[0] - 30.0).abs() < 3.0, "{parts:.2?}");
    });
    report.expect_finished();
}

/// Goal: frame jobs are no lane's with a share: they go first, whatever that lane has used, and leave it its
/// part of all work. Method: frame jobs of half of two workers' time, in each millisecond.
#[test]
fn frame_jobs_are_charged_to_no_share() {
    let report = Sim::run(quiet(7), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(2);
        let js = builder.shares(&[30]).build().unwrap();
        let lengths = [Nanos::from_micros(10)];
        let frames = Arc::new(Flow::default());
        let flows = Flows(vec![
            begin(&js, Lane::Share1, &lengths),
            begin(&js, Lane::Normal, &lengths),
            frames.clone(),
        ]);
        let mut before = vec![0; 3];
        for milli in 0..200 {
            for _ in 0..50 {
                let frames = frames.clone();
                js.job("frame").lane(Lane::Frame).schedule(move |cx| {
                    cx.work(Nanos::from_micros(20));
                    frames.done.fetch_add(20_000, Relaxed);
                });
            }
            sim.sleep_until(sim.time() + Nanos::from_millis(1));
            if milli == 4 {
                before = done(&flows);
            }
        }
        let parts = parts(&flows, &before);
        expect_parts(&parts[..1], &[30.0]);
        assert!(parts[2] > 40.0, "too few frame jobs: {parts:.2?}");
    });
    report.expect_finished();
}

/// Goal: the background has its turn now and then beside lanes with a share that always have work. Method: 20
/// background jobs, and 100 ms.
#[test]
fn the_background_has_its_turn() {
    let report = Sim::run(quiet(9), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(2);
        let js = builder.shares(&[30, 20]).build().unwrap();
        let lengths = [Nanos::from_micros(5)];
        let _flows = Flows(vec![
            begin(&js, Lane::Share1, &lengths),
            begin(&js, Lane::Share2, &lengths),
        ]);
        let ids: Vec<_> = (0..20)
            .map(|_| js.job("save").background().schedule(|_| ()))
            .collect();
        sim.sleep_until(sim.time() + Nanos::from_millis(100));
        let left = ids.iter().filter(|&&id| !js.is_done(id)).count();
        assert_eq!(left, 0, "background jobs never had their turn");
    });
    report.expect_finished();
}

/// A job with a scope and a loop, and another one after it.
fn split_flow(js: &Arc<JobSystem<Sim>>, of: &Arc<Flow>) {
    let (again, of) = (js.clone(), of.clone());
    js.job("split").lane(Lane::Share1).schedule(move |cx| {
        let part = |cx: &Context<'_, Sim>| {
            cx.work(Nanos::from_micros(10));
            of.done.fetch_add(10_000, Relaxed);
        };
        cx.scope(|scope| (0..4).for_each(|_| scope.spawn(part)));
        let grain = paceline::Grain::Items(1);
        cx.parallel_for(0..4, grain, |items, cx| items.for_each(|_| part(cx)));
        if !of.ends.load(Relaxed) {
            split_flow(&again, &of);
        }
    });
}

/// Goal: a wait for a job of a lane with a share takes it at once, past all that is before it. Method: one
/// worker, 300 jobs in each of two lanes, and a thread that runs nothing itself waits for the last one.
#[test]
fn a_wait_does_not_wait_for_a_share() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let report = Sim::run(delays(1), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(1);
        let js = builder.shares(&[1, 1]).build().unwrap();
        js.schedule(|cx| cx.work(Nanos::from_secs(10)));
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        let gate = js.event("gate");
        let mut last = None;
        for lane in [Lane::Share1, Lane::Share2, Lane::Normal] {
            for _ in 0..300 {
                let counted = counted.clone();
                let job = js.job("job").lane(lane).after(&gate).schedule(move |cx| {
                    counted.fetch_add(1, Relaxed);
                    cx.work(Nanos::from_micros(50));
                });
                last = if lane == Lane::Share2 {
                    Some(job)
                } else {
                    last
                };
            }
        }
        gate.complete();
        let last = last.unwrap();
        let wait = || js.wait_timeout(last, Duration::from_secs(3600));
        assert!(js.in_lane(Lane::Frame, wait).unwrap());
        let before = counted.load(Relaxed);
        assert!(before < 5, "{before} jobs went before it");
    });
    report.expect_finished();
    assert_eq!(begun.load(Relaxed), 900);
}

/// Goal: nothing is lost, with any number of workers. Method: random jobs of all lanes that depend on each
/// other and wait for each other; a job that is forgotten is a deadlock of the simulated program.
#[test]
fn nothing_is_forgotten_beside_the_lanes() {
    each_seed(
        "shares::nothing_is_forgotten_beside_the_lanes",
        800,
        |seed| {
            let mut random = Random::new(seed ^ 0x54a2_1000);
            let (workers, jobs) = (random.below(4), 1 + random.below(40));
            let ran = Arc::new(Mutex::new(vec![0; jobs]));
            let counted = ran.clone();
            let report = Sim::run(delays(seed), move |sim| {
                let builder = Builder::with_platform(sim.clone()).workers(workers);
                let limits: Vec<usize> =
                    (0..random.below(6)).map(|_| 1 + random.below(3)).collect();
                let builder = builder.shares_at_most(&limits);
                let js = Arc::new(builder.shares(&[40, 1, 10, 5, 3]).build().unwrap());
                let mut ids = Vec::new();
                for number in 0..jobs {
                    let lanes = [Lane::Frame, Lane::Normal, Lane::Background];
                    let lane = if random.chance(70) {
                        *random.pick(&Lane::SHARES)
                    } else {
                        *random.pick(&lanes)
                    };
                    let after: Vec<_> = (0..random.below(3).min(number))
                        .map(|_| *random.pick(&ids))
                        .collect();
                    let awaited = (number > 0 && random.chance(20)).then(|| *random.pick(&ids));
                    let (counted, work) =
                        (counted.clone(), Nanos::from_micros(random.below(30) as u64));
                    let body = move |cx: &Context<'_, Sim>| {
                        cx.work(work);
                        counted.lock().unwrap()[number] += 1;
                        if let Some(awaited) = awaited {
                            cx.wait(awaited);
                        }
                    };
                    ids.push(js.job("job").lane(lane).after_all(after).schedule(body));
                    if random.chance(10) {
                        sim.sleep_until(sim.time() + Nanos::from_micros(random.below(200) as u64));
                    }
                }
                js.wait(js.combine(&ids));
            });
            report.expect_finished();
            assert!(ran.lock().unwrap().iter().all(|&times| times == 1));
        },
    );
}

/// Goal: the texts of wrong shares, and of reports. Method: word for word.
#[test]
fn wrong_shares_are_refused() {
    let refused = |percents: &[u8]| {
        let error = Builder::new().shares(percents).build().err().unwrap();
        error.to_string()
    };
    assert_eq!(
        refused(&[1, 2, 3, 4, 5, 6]),
        "the number of shares must be between 0 and 5, not 6"
    );
    assert_eq!(
        refused(&[10, 0]),
        "a share (percent) must be between 1 and 99, not 0"
    );
    assert_eq!(
        refused(&[60, 40]),
        "the sum of the shares (percent) must be between 0 and 99, not 100"
    );
    let refused = |workers: &[usize]| {
        let builder = Builder::new().shares_at_most(workers).shares(&[10]);
        builder.build().err().unwrap().to_string()
    };
    assert_eq!(
        refused(&[1, 2, 3, 4, 5, 6]),
        "the number of limits must be between 0 and 5, not 6"
    );
    assert_eq!(
        refused(&[2, 0]),
        "shares_at_most must be between 1 and 1024, not 0"
    );
    assert_eq!(
        refused(&[1025]),
        "shares_at_most must be between 1 and 1024, not 1025"
    );
    let js = Builder::new().workers(0).shares(&[60]);
    let js = js.build().unwrap();
    let job = js.job("tile").lane(Lane::Share1).schedule(|_| ());
    let report = js.report();
    assert_eq!((report.beside, report.jobs[0].lane), (1, Lane::Share1));
    let text = report.to_string();
    assert!(text.contains("ready, in the lane with share 1"), "{text}");
    assert!(
        text.contains("1 ticket in the queues beside the normal lane"),
        "{text}"
    );
    js.wait(job);
}
