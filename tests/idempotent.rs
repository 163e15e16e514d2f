//! Goal: an idempotent job gives the results of its pieces, each exactly once, however often its pieces are
//! run; none is begun more than twice, or before what the job comes after is over; a wait does not last until
//! a worker without a CPU goes on.
//!
//! Method: machines with hogs under a simulated kernel, where the same frames with an ordinary loop are what
//! it is compared with; random programs, on machines whose threads stand still in places, judged by their
//! serial results, by how often each item was begun and whether that was too early, and by counts of all
//! values made and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, CancelToken, Grain, JobSystem, Stats, WaitError};
use platform::{Machine as _, Platform};
use sim::{Machine, Sim, SimConfig};

use crate::support::{Random, delays, each_seed, fail, start_hogs};

const PERIOD: Nanos = Nanos(16_666_667);
const PIECES: usize = 100;
const PIECE: Nanos = Nanos::from_micros(20);

/// Two CPUs of a simulated machine.
fn two_cpus(seed: u64) -> SimConfig {
    let machine = Machine::named("vm-2").expect("it is in the library");
    SimConfig::on(machine, "eevdf-6.18", seed)
}

/// The longest time that the program's thread sleeps in a frame, and what was counted.
fn frames_beside_hogs(seed: u64, is_idempotent: bool) -> (Nanos, Stats) {
    let (mut longest, mut stats) = (Nanos::ZERO, Stats::default());
    let report = Sim::run(two_cpus(seed), |sim| {
        start_hogs(&sim, 4, Nanos::from_micros(100), Nanos(51 * PERIOD.0));
        let js = Builder::with_platform(sim.clone()).workers(1);
        let js = js.follow_machine(false).build().unwrap();
        for number in 1..=50 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            let (begin, before) = (sim.time(), sim.machine().usage());
            let its = sim.clone();
            let body = move |piece: usize| {
                its.charge(PIECE);
                piece
            };
            if is_idempotent {
                let pieces = js.job("pieces").idempotent().grain(Grain::Items(1));
                let results = pieces.map(0..PIECES, body).wait();
                assert!(results.into_iter().eq(0..PIECES));
            } else {
                js.parallel_for(0..PIECES, Grain::Items(1), |part, _| {
                    part.for_each(|piece| _ = body(piece));
                });
            }
            let after = sim.machine().usage();
            let awake = [before, after].map(|usage| {
                let times = usage.cpu.zip(usage.runnable);
                times
                    .map(|(cpu, runnable)| cpu + runnable)
                    .expect("it is simulated")
            });
            longest = longest.max(sim.time() - begin - (awake[1] - awake[0]));
        }
        stats = js.stats();
    });
    report.expect_finished();
    (longest, stats)
}

/// Goal: a wait does not last until a worker that lost its CPU in the middle of a piece gets it back.
/// Method: frames beside hogs. An ordinary loop waits for milliseconds, or there is nothing to show.
#[test]
fn a_wait_does_not_last_until_a_worker_goes_on() {
    let (mut ordinary, mut repeats, mut won) = (Nanos::ZERO, 0, 0);
    for seed in 1..=8 {
        ordinary = ordinary.max(frames_beside_hogs(seed, false).0);
        let (longest, stats) = frames_beside_hogs(seed, true);
        assert!(
            longest < Nanos::from_millis(1),
            "seed {seed}: {longest:?} of sleep"
        );
        repeats += stats.repeats;
        won += stats.repeats_won;
    }
    assert!(ordinary > Nanos::from_millis(2), "{ordinary:?}");
    assert!(won > 0 && won <= repeats, "{won} of {repeats}");
}

/// Goal: on a quiet machine nothing is run twice. Method: the frames of above without hogs, on a machine
/// with CPUs for all.
#[test]
fn nothing_is_repeated_where_all_have_a_cpu() {
    let machine = Machine::named("ryzen-5800x").expect("it is in the library");
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", 1), |sim| {
        let js = Builder::with_platform(sim.clone())
            .workers(3)
            .build()
            .unwrap();
        for number in 1..=20 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            let its = sim.clone();
            let job = js.job("pieces").idempotent().map(0..PIECES, move |piece| {
                // Some take five times as long as others.
                its.charge(Nanos(PIECE.0 * (1 + 4 * u64::from(piece % 7 == 0))));
            });
            job.wait();
        }
        assert_eq!(js.stats().repeats, 0);
    });
    report.expect_finished();
}

/// Counts the values of a run.
#[derive(Default)]
struct Census {
    made: AtomicU64,
    dropped: AtomicU64,
}

/// A result whose owners are counted.
#[derive(Debug)]
struct Counted(usize, Arc<Census>);

impl std::fmt::Debug for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} made, {} dropped",
            self.made.load(Relaxed),
            self.dropped.load(Relaxed)
        )
    }
}

impl Counted {
    fn new(item: usize, census: &Arc<Census>) -> Counted {
        census.made.fetch_add(1, Relaxed);
        Counted(item, census.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.dropped.fetch_add(1, Relaxed);
    }
}

/// A random idempotent loop: its pieces take random times, some of their threads stand still, some panic.
fn random_loop(random: &mut Random, sim: &Sim, js: &JobSystem<Sim>, census: &Arc<Census>) {
    let items = random.below(40);
    let panics_at = random.chance(15).then(|| random.below(items.max(1)));
    let times: Vec<u64> = (0..items).map(|_| 1 + random.next() % 30_000).collect();
    let begun: Arc<[AtomicU32]> = (0..items).map(|_| AtomicU32::new(0)).collect();
    let (its, counts, all) = (sim.clone(), begun.clone(), census.clone());
    let (is_over, early) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let (may_begin, too_early) = (is_over.clone(), early.clone());
    let body = move |item: usize| {
        too_early.fetch_add(u32::from(!may_begin.load(Relaxed)), Relaxed);
        counts[item].fetch_add(1, Relaxed);
        its.charge(Nanos(times[item]));
        if panics_at == Some(item) {
            fail("on purpose");
        }
        Counted::new(item, &all)
    };
    let length = Nanos(random.next() % 100_000);
    let before = js.job("before").schedule(move |cx| {
        cx.work(length);
        is_over.store(true, Relaxed);
    });
    if random.chance(50) {
        js.wait(before);
    }
    let mut job = js.job("loop").after(before).idempotent();
    if random.chance(50) {
        job = job.grain(Grain::Items(1 + random.below(5) as u32));
    }
    let job = job.map(0..items, body);
    let has_successor = random.chance(30);
    if has_successor {
        // The wait needs the loop, and is not for it.
        let next = js.job("next").after(&job).schedule(|_| ());
        let is_ok = js.try_wait(next).is_ok();
        assert_eq!(is_ok, panics_at.is_none() || items == 0);
    }
    match job.try_wait() {
        Ok(results) => {
            assert!(panics_at.is_none() || items == 0, "a panic was lost");
            assert!(results.iter().map(|result| result.0).eq(0..items));
            assert!(begun.iter().all(|begun| begun.load(Relaxed) >= 1));
        }
        Err(WaitError::Panicked { label, message, .. }) => {
            assert!(panics_at.is_some(), "{message}");
            assert_eq!((label.name, &*message), ("loop", "on purpose"));
        }
        Err(other) => panic!("{other}"),
    }
    assert!(begun.iter().all(|begun| begun.load(Relaxed) <= 2));
    assert_eq!(
        early.load(Relaxed),
        0,
        "pieces began before what the job comes after was over"
    );
}

#[test]
fn each_result_counts_once() {
    let (repeats, won) = (AtomicU64::new(0), AtomicU64::new(0));
    each_seed("idempotent::each_result_counts_once", 300, |seed| {
        let mut random = Random::new(seed);
        let census = Arc::new(Census::default());
        let all = census.clone();
        let workers = random.below(4);
        let mut stats = Stats::default();
        let config = SimConfig {
            perturb: delays(seed).perturb,
            ..two_cpus(seed)
        };
        let report = Sim::run(config, |sim| {
            start_hogs(
                &sim,
                random.below(6),
                Nanos::from_micros(100),
                Nanos::from_millis(100),
            );
            let js = Builder::with_platform(sim.clone()).workers(workers);
            let js = js.build().unwrap();
            for _ in 0..6 {
                random_loop(&mut random, &sim, &js, &all);
            }
            stats = js.stats();
        });
        report.expect_finished();
        let (made, dropped) = (census.made.load(Relaxed), census.dropped.load(Relaxed));
        assert_eq!(made, dropped, "results that are left");
        assert_eq!(stats.drop_panics, 0);
        repeats.fetch_add(stats.repeats, Relaxed);
        won.fetch_add(stats.repeats_won, Relaxed);
    });
    // With one seed there may be none.
    let (repeats, won) = (repeats.into_inner(), won.into_inner());
    println!("{repeats} repeated, {won} won");
    assert!(won <= repeats);
    if std::env::var_os("PACELINE_SEED").is_none() {
        assert!(won > 20, "{won} of {repeats} won");
    }
}

/// Goal: a job whose token was cancelled is called off, one whose predecessor failed is cancelled, and
/// bodies that do not run are dropped. Method: both, and a loop that is cancelled in the middle.
#[test]
fn a_job_that_does_not_run_says_why() {
    let js = Builder::new().workers(1).build().unwrap();
    let owned = Arc::new(());
    let kept = owned.clone();
    let token = CancelToken::new();
    token.cancel();
    let job = js.job("off").cancelled_by(&token).idempotent();
    let error = job.run(move || drop(kept.clone())).try_wait().unwrap_err();
    assert!(matches!(error, WaitError::CalledOff { label } if label.name == "off"));

    let kept = owned.clone();
    let fails = js.job("fails").schedule(|_| fail("on purpose"));
    let job = js.job("after").after(fails).idempotent();
    let error = job.run(move || drop(kept.clone())).try_wait().unwrap_err();
    assert!(matches!(error, WaitError::Cancelled { label, .. } if label.name == "after"));
    drop(js);
    assert_eq!(Arc::strong_count(&owned), 1);
}

/// Goal: an empty loop is over when what it depends on is, and is called off as any other. Method: one after
/// an event, one with a token.
#[test]
fn an_empty_loop_ends() {
    let js = Builder::new().workers(1).build().unwrap();
    let gate = js.event("gate");
    let job = js.job("nothing").after(&gate).idempotent();
    let job = job.map(5..5, |item| item);
    assert!(!job.is_done());
    gate.complete();
    assert!(job.wait().is_empty());
    let token = CancelToken::new();
    token.cancel();
    let job = js.job("off").cancelled_by(&token).idempotent();
    let error = job.map(5..5, |item| item).try_wait().unwrap_err();
    assert!(matches!(error, WaitError::CalledOff { .. }), "{error}");
}

/// Goal: without workers the waiting thread runs all pieces, and a job system that ends with such jobs left
/// drops their bodies. Method: as said.
#[test]
fn a_program_without_workers_has_them_too() {
    let owned = Arc::new(());
    let js = Builder::new().workers(0).build().unwrap();
    let squares = js.job("squares").idempotent().map(0..100, |x| x * x);
    assert!(squares.wait().into_iter().eq((0..100).map(|x| x * x)));
    let never = js.event("never");
    let kept = owned.clone();
    let left = js.job("left").after(&never).idempotent();
    let left = left.run(move || drop(kept.clone()));
    drop(js);
    assert!(left.try_wait().is_err());
    drop(never);
    assert_eq!(Arc::strong_count(&owned), 1);
}

/// Goal: the run that ends later is harmless: the wait has ended, its result is dropped, its panic is not the
/// job's, and the job system's end waits for it. Method: on the OS, two pieces; the worker's sleeps, which is
/// to have no CPU, until the wait has ended.
#[cfg(target_os = "linux")]
#[test]
fn a_late_run_is_harmless() {
    for panics in [false, true] {
        let js = Builder::new().workers(1).build().unwrap();
        let (main, over) = (
            std::thread::current().id(),
            Arc::new(AtomicBool::new(false)),
        );
        let census = Arc::new(Census::default());
        for _ in 0..3 {
            js.job("step")
                .idempotent()
                .run(|| std::hint::black_box(1))
                .wait();
        }
        let (ended, all) = (over.clone(), census.clone());
        let has_slept = Arc::new(AtomicBool::new(false));
        let sleeps = has_slept.clone();
        let pieces = js.job("step").idempotent().grain(Grain::Items(1));
        let job = pieces.map(0..2, move |item| {
            if std::thread::current().id() != main && !sleeps.swap(true, Relaxed) {
                while !ended.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if panics {
                    fail("too late");
                }
            } else {
                // The worker comes for the other one.
                while !sleeps.load(Relaxed) {
                    std::thread::yield_now();
                }
            }
            Counted::new(item, &all)
        });
        let results = job.wait();
        assert!(results.iter().map(|result| result.0).eq(0..2));
        over.store(true, Relaxed);
        assert_eq!((js.stats().repeats, js.stats().repeats_won), (1, 1));
        assert_eq!(js.stats().panicked, 0);
        drop(js);
        drop(results);
        let made = census.made.load(Relaxed);
        assert_eq!(made, if panics { 2 } else { 3 });
        assert_eq!(made, census.dropped.load(Relaxed));
        assert!(has_slept.load(Relaxed));
    }
}
