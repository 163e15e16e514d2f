//! Goal: on a kernel that packs woken threads onto their waker's CPU a frame is parallel all the same, and
//! on one that does not nothing is done about it.
//! Method: frames at 60 Hz on a simulated machine of two CPUs, under both placements, with steering on and
//! off. Times are virtual: a run is the same on every machine.

use event::{KernelEvent, KernelEventKind, Nanos};
use paceline::{Builder, Grain, JobSystem};
use policy::Placement;
use sim::{Machine, Sim, SimConfig, SimReport};

const PERIOD: Nanos = Nanos(16_666_667);

/// The times of so many frames, each a loop of `pieces` of 20 us. The run is done twice and compared.
fn frames(
    placement: Placement,
    steering: bool,
    count: usize,
    pieces: usize,
) -> (Vec<Nanos>, SimReport) {
    let run = || {
        let machine = Machine::named("vm-2")
            .expect("it is in the library")
            .clone();
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(machine.with_placement(placement), "eevdf-6.18", 1)
        };
        let mut times = Vec::new();
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(1);
            let js = builder.steering(steering).build().unwrap();
            for frame in 0..count as u64 {
                sim.sleep_until(Nanos((frame + 1) * PERIOD.0));
                times.push(one_frame(&sim, &js, pieces));
            }
        });
        (times, report.expect_finished())
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second, "two runs differ");
    first
}

fn one_frame(sim: &Sim, js: &JobSystem<Sim>, pieces: usize) -> Nanos {
    let begin = sim.time();
    let body = |part: std::ops::Range<usize>, cx: &paceline::Context<'_, Sim>| {
        part.for_each(|_| cx.work(Nanos::from_micros(20)));
    };
    let job = js.job("pieces").schedule_for(0..pieces, Grain::Auto, body);
    js.wait(job);
    sim.time() - begin
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

/// Jobs that are over before anybody is in the way start soonest where they are woken.
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
        "somebody was sent to the other CPU"
    );
}
