//! Goal: jobs of frames begin in the order of what hangs on them, once that is learnt; no job is lost, run
//! twice or begun too early; where a frame changes, only the order suffers.
//!
//! Method: frames with a long chain that is made last, on a simulated machine, whose length is compared with
//! the bound (work, longest way) and with the same frames without the order; random frames, of which each
//! body checks that those before it have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, Frame, Grain, JobId, Lane};
use sim::{Machine, Sim, SimConfig};

use crate::support::{Random, delays, each_seed, fail};

const STEP: Nanos = Nanos::from_micros(50);
const CROWD: u64 = 200;
const CHAIN: u64 = 30;
const WORKERS: usize = 4;

/// A crowd of jobs, and a chain that is made after it.
fn crowd_and_chain(frame: &Frame<'_, Sim>) -> JobId {
    let crowd = (0..CROWD).map(|_| frame.job("crowd").schedule(|cx| cx.work(STEP)));
    let mut all: Vec<JobId> = crowd.collect();
    let mut last = None;
    for _ in 0..CHAIN {
        let mut job = frame.job("chain");
        if let Some(before) = last {
            job = job.after(before);
        }
        last = Some(job.schedule(|cx| cx.work(STEP)));
    }
    all.extend(last);
    frame.combine(all)
}

/// How long each of some frames took.
fn frames(seed: u64, critical_first: bool) -> Vec<Nanos> {
    let machine = Machine::named("ryzen-3950x").expect("it is in the library");
    let mut took = Vec::new();
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", seed), |sim| {
        let js = Builder::with_platform(sim.clone()).workers(WORKERS);
        let js = js.critical_first(critical_first).build().unwrap();
        for number in 1..=12 {
            sim.sleep_until(Nanos::from_millis(16 * number));
            let begin = sim.time();
            let frame = js.frame("update", Duration::from_millis(16));
            frame.wait(crowd_and_chain(&frame));
            took.push(sim.time() - begin);
        }
    });
    report.expect_finished();
    took
}

/// Goal: with the order a frame takes at most 5 % more than its bound; without, much more. Method: the frames
/// after the first four.
#[test]
fn a_chain_that_is_made_last_begins_first() {
    let threads = WORKERS as u64 + 1;
    let bound = STEP.0 * ((CROWD + CHAIN) / threads).max(CHAIN);
    for seed in 1..=4 {
        let ordered = frames(seed, true)[4..].iter().max().copied();
        let usual = frames(seed, false)[4..].iter().min().copied();
        let ratio = |time: Option<Nanos>| time.map_or(0.0, |time| time.0 as f64 / bound as f64);
        let (ordered, usual) = (ratio(ordered), ratio(usual));
        println!("seed {seed}: {ordered:.3} of the bound, without the order {usual:.3}");
        assert!(ordered < 1.05, "seed {seed}: {ordered}");
        assert!(usual > 1.2, "seed {seed}: {usual}");
    }
}

const LOOPS: u64 = 4;
const PIECES: u64 = 40;
const SINGLES: u64 = 80;
const PIECE: Nanos = Nanos::from_micros(40);

/// A chain of loops and one long job behind it, beside as much other work. The loops are jobs themselves, or
/// in the bodies of jobs.
fn singles_and_loops(frame: &Frame<'_, Sim>, are_jobs: bool) -> JobId {
    let single = |_| {
        frame
            .job("single")
            .schedule(|cx| cx.work(Nanos(2 * PIECE.0)))
    };
    let mut all: Vec<JobId> = (0..SINGLES).map(single).collect();
    let piece = |part: std::ops::Range<usize>, cx: &Context<'_, Sim>| {
        cx.work(Nanos(PIECE.0 * part.len() as u64));
    };
    let (pieces, grain) = (0..PIECES as usize, Grain::Auto);
    let mut last = None;
    for _ in 0..LOOPS {
        let mut job = frame.job("loop");
        if let Some(before) = last {
            job = job.after(before);
        }
        let pieces = pieces.clone();
        last = Some(if are_jobs {
            job.schedule_for(pieces, grain, piece)
        } else {
            job.schedule(move |cx| cx.parallel_for(pieces, grain, piece))
        });
    }
    let long = frame.job("long").after(last.expect("there are loops"));
    all.push(long.schedule(|cx| cx.work(Nanos(PIECE.0 * PIECES))));
    frame.combine(all)
}

/// Goal: a job that holds up the rest of a frame gets helpers for its loop before others are begun. Method:
/// on four threads, within a tenth of the least time. If helpers come when there is nothing else to do,
/// nothing is left to do beside the last job.
#[test]
fn a_loop_that_holds_up_the_rest_is_helped_with() {
    for are_jobs in [false, true] {
        let machine = Machine::named("ryzen-5800x").expect("it is in the library");
        let mut took = Vec::new();
        let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", 1), |sim| {
            let js = Builder::with_platform(sim.clone()).workers(3);
            let js = js.critical_first(true).build().unwrap();
            for number in 1..=30 {
                sim.sleep_until(Nanos::from_millis(16 * number));
                let begin = sim.time();
                let frame = js.frame("update", Duration::from_millis(16));
                frame.wait(singles_and_loops(&frame, are_jobs));
                took.push(sim.time() - begin);
            }
        });
        report.expect_finished();
        let mut took = took.split_off(10);
        took.sort_unstable();
        let least = (LOOPS * PIECES + PIECES + 2 * SINGLES) * PIECE.0 / 4;
        let median = took[took.len() / 2].0 as f64 / least as f64;
        println!("loops that are jobs: {are_jobs}, {median:.3} of the least time");
        assert!(median <= 1.1, "{median:.3}");
    }
}

/// A random frame: jobs of all lanes, some made by others, edges, combinations, loops, panics. The frame may
/// be another one each time.
fn random_frame(random: &mut Random, frame: &Frame<'_, Sim>) -> (Vec<JobId>, Arc<[AtomicU32]>) {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let count = 1 + random.below(30);
    let runs: Arc<[AtomicU32]> = (0..count).map(|_| AtomicU32::new(0)).collect();
    let mut jobs: Vec<JobId> = Vec::new();
    for number in 0..count {
        let befores: Vec<usize> = (0..random.below(3).min(number))
            .map(|_| random.below(number))
            .collect();
        let mut job = frame.job(*random.pick(&NAMES));
        for &before in &befores {
            job = job.after(jobs[before]);
        }
        if random.chance(10) {
            job = job.lane(*random.pick(&[Lane::Frame, Lane::Background]));
        }
        let (done, time) = (runs.clone(), Nanos(1 + random.next() % 20_000));
        let panics = random.chance(3);
        let body = move |cx: &paceline::Context<'_, Sim>| {
            assert!(befores.iter().all(|&before| done[before].load(Relaxed) > 0));
            cx.work(time);
            done[number].fetch_add(1, Relaxed);
            if panics {
                fail("on purpose");
            }
        };
        jobs.push(match random.below(10) {
            0 => {
                runs[number].store(1, Relaxed);
                job.try_combine().unwrap()
            }
            1 => {
                let grain = paceline::Grain::Items(1);
                let done = runs.clone();
                job.schedule_for(0..4, grain, move |part, cx| {
                    cx.work(Nanos::from_micros(part.len() as u64));
                    done[number].fetch_add(part.len() as u32, Relaxed);
                })
            }
            _ => job.schedule(body),
        });
    }
    (jobs, runs)
}

#[test]
fn frames_of_all_sorts_are_whole() {
    each_seed("learned::frames_of_all_sorts_are_whole", 400, |seed| {
        let mut random = Random::new(seed);
        let workers = random.below(4);
        let report = Sim::run(delays(seed), |sim| {
            let js = Builder::with_platform(sim.clone()).workers(workers);
            let js = js.critical_first(true).build().unwrap();
            // The same frame again and again, and now and then another one.
            let mut kept = random.clone();
            for _ in 0..8 {
                let mut again = if random.chance(70) {
                    kept.clone()
                } else {
                    kept = random.clone();
                    random.next();
                    kept.clone()
                };
                let frame = js.frame("update", Duration::from_millis(1));
                let (jobs, runs) = random_frame(&mut again, &frame);
                let ended: Vec<bool> = jobs.iter().map(|&job| js.try_wait(job).is_ok()).collect();
                drop(frame);
                for (run, ended) in runs.iter().zip(ended) {
                    let run = run.load(Relaxed);
                    // One that panicked has run, and what comes after it has not.
                    assert!(
                        if ended {
                            run == 1 || run == 4
                        } else {
                            run <= 1
                        },
                        "{run}"
                    );
                }
            }
        });
        report.expect_finished();
    });
}

/// Goal: two frames of one name at a time, on two threads, and jobs that outlive their frame, do no harm.
/// Method: as said; each job counts.
#[test]
fn frames_that_overlap_are_kept_apart() {
    each_seed("learned::frames_that_overlap_are_kept_apart", 100, |seed| {
        let ran = Arc::new(AtomicU32::new(0));
        let counts = ran.clone();
        let report = Sim::run(delays(seed), move |sim| {
            let js = Builder::with_platform(sim.clone()).workers(2);
            let js = js.critical_first(true).build().unwrap();
            for _ in 0..6 {
                let first = js.frame("update", Duration::from_millis(2));
                let second = js.frame("update", Duration::from_millis(1));
                let mut last: Option<JobId> = None;
                for number in 0..10 {
                    let frame = if number % 2 == 0 { &first } else { &second };
                    let counts = counts.clone();
                    let mut job = frame.job("step");
                    if let Some(before) = last {
                        job = job.after(before); // Across frames: no edge of either.
                    }
                    last = Some(job.schedule(move |cx| {
                        cx.work(Nanos::from_micros(5));
                        counts.fetch_add(1, Relaxed);
                    }));
                }
                drop(first);
                if let Some(last) = last {
                    js.wait(last);
                }
            }
        });
        report.expect_finished();
        assert_eq!(ran.load(Relaxed), 60);
    });
}
