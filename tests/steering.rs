//! Goal: on a kernel that packs woken threads onto their waker's CPU a frame is parallel all the same, and
//! on one that does not nothing is done about it.
//! Method: frames at 60 Hz on a simulated machine of two CPUs, under both placements, with steering on and
//! off. Times are virtual: a run is the same on every machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use event::{EventKind, KernelEvent, KernelEventKind, MemorySink, Nanos};
use paceline::{Builder, Grain, JobSystem, Role, WaitPolicy};
use platform::{Platform, SchedParams, ThreadSpec};
use policy::{Attr, Placement};
use sim::{Machine, Sim, SimConfig, SimReport};

use crate::support::start_hogs;

const PERIOD: Nanos = Nanos(16_666_667);

/// Other events beside the frames.
#[derive(Clone, Default)]
struct Scene {
    placement: Placement,
    steering: bool,
    /// The help that the main thread, which adopts its role, and the worker ask the kernel for.
    help: Option<SchedParams>,
    /// This many ordinary threads compute all the time.
    hogs: usize,
}

/// The times of `count` frames, each a loop of `pieces` of 20 us. The run is done twice and compared.
fn frames(
    placement: Placement,
    steering: bool,
    count: usize,
    pieces: usize,
) -> (Vec<Nanos>, SimReport) {
    let scene = Scene {
        placement,
        steering,
        ..Scene::default()
    };
    let (times, report, _) = frames_of(&scene, count, pieces);
    (times, report)
}

/// The job system's actions in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    /// Masks that workers changed.
    steered: usize,
    /// Times that the kernel was asked to look again.
    nudged: usize,
}

/// The same of a scene, and the actions.
fn frames_of(scene: &Scene, count: usize, pieces: usize) -> (Vec<Nanos>, SimReport, Counts) {
    let run = || {
        let machine = Machine::named("vm-2")
            .expect("it is in the library")
            .clone();
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(machine.with_placement(scene.placement), "eevdf-6.18", 1)
        };
        let end = Nanos((count as u64 + 1) * PERIOD.0);
        let mut times = Vec::new();
        let (sink, log) = MemorySink::new();
        let sink = Arc::new(sink);
        let report = Sim::run(config, |sim| {
            start_hogs(&sim, scene.hogs, Nanos::from_millis(1), end);
            let mut builder = Builder::with_platform(sim.clone()).workers(1);
            builder = builder.sink(sink.clone());
            if let Some(help) = &scene.help {
                builder = builder.os_help(help.clone());
            }
            let js = builder.steering(scene.steering).build().unwrap();
            let adopted = js.adopt(Role::Main);
            for frame in 0..count as u64 {
                sim.sleep_until(Nanos((frame + 1) * PERIOD.0));
                times.push(one_frame(&sim, &js, pieces));
            }
            drop(adopted);
        });
        let events: Vec<_> = log.drain().into_iter().collect();
        let of_kind = |kind| events.iter().filter(|event| event.kind == kind).count();
        let counts = Counts {
            steered: of_kind(EventKind::Steered),
            nudged: of_kind(EventKind::Nudged),
        };
        (times, report.expect_finished(), counts)
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second, "two runs differ");
    first
}

fn one_frame(sim: &Sim, js: &JobSystem<Sim>, pieces: usize) -> Nanos {
    let begin = sim.time();
    let _frame = js.frame("frame", PERIOD.into());
    let body = |part: std::ops::Range<usize>, cx: &paceline::Context<'_, Sim>| {
        part.for_each(|_| cx.work(Nanos::from_micros(20)));
    };
    let job = js.job("pieces").schedule_for(0..pieces, Grain::Auto, body);
    js.wait(job);
    sim.time() - begin
}

fn mean(times: &[Nanos]) -> Nanos {
    Nanos(times.iter().map(|time| time.0).sum::<u64>() / times.len() as u64)
}

fn median(times: &[Nanos]) -> Nanos {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_packed_worker_leaves_its_wakers_cpu() {
    let half = Nanos::from_micros(2_000);
    let whole = Nanos::from_micros(4_000);
    let (steered, _) = frames(Placement::Pack, true, 30, 200);
    assert!(
        median(&steered) < half + Nanos::from_micros(200),
        "{steered:?}"
    );
    let (packed, _) = frames(Placement::Pack, false, 30, 200);
    assert!(
        median(&packed) > whole - Nanos::from_micros(200),
        "{packed:?}"
    );
}

#[test]
fn where_idle_cpus_are_found_nothing_is_steered() {
    let (with, with_report) = frames(Placement::Mainline, true, 30, 200);
    let (without, without_report) = frames(Placement::Mainline, false, 30, 200);
    assert!(median(&with) < Nanos::from_micros(2_200), "{with:?}");
    assert!(median(&with).0.abs_diff(median(&without).0) < 1_000);
    let moved = |report: &SimReport| {
        let moves = report.trace.iter().filter(|event| event.time > PERIOD);
        moves
            .filter(|event| matches!(event.what, KernelEventKind::Migrate { .. }))
            .count()
    };
    assert_eq!(moved(&with_report), moved(&without_report));
}

/// Jobs that are over before another thread is in the way start soonest where they are woken.
#[test]
fn short_jobs_stay_where_they_are_woken() {
    let (on, report) = frames(Placement::Pack, true, 30, 1);
    let (off, _) = frames(Placement::Pack, false, 30, 1);
    assert!(
        median(&on).0.abs_diff(median(&off).0) < 100,
        "{on:?} {off:?}"
    );
    // The first frames are for learning; after the last one the job system ends, and its threads with it.
    let frames = 3 * PERIOD.0..30 * PERIOD.0;
    let later = report
        .trace
        .iter()
        .filter(|event| frames.contains(&event.time.0));
    let moves = |event: &&KernelEvent| matches!(event.what, KernelEventKind::Migrate { .. });
    assert_eq!(
        later.filter(moves).count(),
        0,
        "a worker was sent to the other CPU"
    );
}

/// A thread that computes beside a frame is no reason to leave a worker in its waker's way: whether the
/// frame's threads have the larger share or the same, it is better off beside strangers.
#[test]
fn workers_are_steered_beside_others() {
    let run = |steering, help: Option<SchedParams>, pieces| {
        let scene = Scene {
            placement: Placement::Pack,
            steering,
            help,
            hogs: 4,
        };
        let (times, _, counts) = frames_of(&scene, 60, pieces);
        (times, counts.steered)
    };
    let nice = || Some(SchedParams::nice(-10));
    let (with, steered) = run(true, nice(), 200);
    assert!(median(&with) < Nanos::from_micros(2_200) && steered > 0);
    let (without, steered) = run(false, nice(), 200);
    assert!(median(&without) > Nanos::from_micros(3_800) && steered == 0);
    // How the frames of one length fall together with the hogs' slices decides too much about one run.
    let lengths = (192..=214).step_by(2);
    let ratios = lengths.map(|pieces| {
        let (with, steered) = run(true, None, pieces);
        let (without, _) = run(false, None, pieces);
        assert!(steered > 0, "{pieces}");
        mean(&with).0 as f64 / mean(&without).0 as f64
    });
    let ratios: Vec<f64> = ratios.collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!(mean < 0.85, "{mean}: {ratios:?}");
}

/// A worker that a hog keeps waiting gets its turn when the hog's slice is over, not at the next tick: the
/// kernel is asked to look. Without other threads it is not asked. (Without nudges these frames take 5.8 ms.)
#[test]
fn a_worker_that_does_not_start_is_nudged() {
    let run = |placement, hogs| {
        let scene = Scene {
            placement,
            steering: true,
            hogs,
            ..Scene::default()
        };
        let (times, _, counts) = frames_of(&scene, 120, 200);
        (mean(&times), counts.nudged)
    };
    let (mean, nudged) = run(Placement::Mainline, 4);
    assert!(
        mean < Nanos::from_micros(4_000) && nudged > 0,
        "{mean}, {nudged}"
    );
    for placement in [Placement::Mainline, Placement::Pack] {
        assert_eq!(run(placement, 0).1, 0, "{placement:?}");
    }
}

/// Frames of 26 pieces of 5 us, back to back, beside this many hogs, in order of their lengths.
fn short_frames(steering: bool, policy: WaitPolicy, hogs: u32) -> Vec<Nanos> {
    const FRAMES: usize = 4_000;
    let machine = Machine::named("vm-2").expect("it is in the library");
    let mut times = Vec::new();
    let config = SimConfig::on(machine, "eevdf-6.18", 1);
    let report = Sim::run(config, |sim| {
        let end = Nanos::from_secs(20);
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in 0..hogs {
            let (its, is_over) = (sim.clone(), Arc::clone(&is_over));
            let hog = move || {
                while its.time() < end && !is_over.load(Relaxed) {
                    its.charge(Nanos::from_micros(100));
                }
            };
            let started = sim.spawn_with(ThreadSpec::default(), Attr::default(), Box::new(hog));
            drop(started.expect("the machine takes it"));
        }
        let builder = Builder::with_platform(sim.clone()).workers(1);
        let js = builder.wait_policy(policy).steering(steering);
        let js = js.build().unwrap();
        for _ in 0..FRAMES {
            let begin = sim.time();
            let frame = js.frame("frame", Duration::from_nanos(1));
            js.parallel_for(0..26, Grain::Items(1), |part, cx| {
                cx.work(Nanos::from_micros(5 * part.len() as u64));
            });
            drop(frame);
            times.push(sim.time() - begin);
        }
        is_over.store(true, Relaxed);
        assert!(sim.time() < end, "the hogs were there until now");
    });
    report.expect_finished();
    times.sort_unstable();
    times
}

/// Goal: a mask is no trap. One other thread computes, and one of two CPUs is left to the job system: a
/// worker that its mask keeps on the other one would lose it in the middle of a piece, and the frame would
/// last until the next tick. Method: short frames without a pause, under two policies of waiting; without
/// steering, which has hardly any such frames; one thread alone takes 130 us.
#[test]
fn a_worker_is_not_kept_beside_a_busy_thread() {
    let alone = Nanos::from_micros(130);
    for policy in [WaitPolicy::Adaptive, WaitPolicy::Passive] {
        let (with, without) = (
            short_frames(true, policy, 1),
            short_frames(false, policy, 1),
        );
        let long = |times: &[Nanos]| times.iter().filter(|&&time| time.0 > 2 * alone.0).count();
        assert!(
            long(&without) * 1_000 <= without.len(),
            "{policy:?}: {}",
            long(&without)
        );
        assert!(
            long(&with) * 200 <= with.len(),
            "{policy:?}: {}",
            long(&with)
        );
        let (with, without) = (mean(&with), mean(&without));
        let most = Nanos(without.0 * 102 / 100);
        assert!(
            with <= most && with <= alone,
            "{policy:?}: {with}, {without}"
        );
    }
}

/// Goal: where nothing else runs, the mask stays, and frames are as short as two CPUs make them. Method: the
/// same frames without hogs.
#[test]
fn a_worker_that_gets_on_keeps_its_mask() {
    for (policy, most) in [(WaitPolicy::Adaptive, 70), (WaitPolicy::Passive, 80)] {
        let with = short_frames(true, policy, 0);
        let mean = mean(&with);
        assert!(mean <= Nanos::from_micros(most), "{policy:?}: {mean}");
    }
}
