//! Goal: a gang, whose members meet after each stage, is done by the thread that steps it while workers lose
//! their CPUs in the middle of it, and shared before and after.
//! Method: steps of two members on a simulated machine of two CPUs, whose hogs end at some time. Times are
//! virtual: a run is the same on every machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use event::Nanos;
use paceline::{Builder, Context, Group, JobSystem};
use platform::Platform;
use sim::{Machine, Sim, SimConfig};

use crate::support::start_hogs;

const STAGES: usize = 8;
/// What each member computes in a stage.
const PIECE: Nanos = Nanos::from_micros(40);
/// A step by one thread.
const ALONE: Nanos = Nanos(2 * STAGES as u64 * PIECE.0);

/// A step that was made.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Step {
    at: Nanos,
    time: Nanos,
    was_shared: bool,
}

/// Steps until `end`, one after the other, beside so many threads that compute until a time. With `asks` a
/// step is shared if the job system says that it pays, else always.
fn steps(asks: bool, hogs: (usize, Nanos), end: Nanos) -> Vec<Step> {
    let run = || {
        let machine = Machine::named("vm-2").expect("it is in the library");
        let config = SimConfig::on(machine.clone(), "eevdf-6.18", 1);
        let mut steps = Vec::new();
        let report = Sim::run(config, |sim| {
            start_hogs(&sim, hogs.0, Nanos::from_millis(1), hogs.1);
            let js = Builder::with_platform(sim.clone()).workers(1);
            let js = js.build().unwrap();
            let group = js.group("physics");
            while sim.time() < end {
                let at = sim.time();
                let was_shared = !asks || js.groups_are_worth_sharing();
                if was_shared {
                    shared_step(&js, &group);
                } else {
                    sim.charge(ALONE);
                }
                let time = sim.time() - at;
                steps.push(Step {
                    at,
                    time,
                    was_shared,
                });
            }
        });
        report.expect_finished();
        steps
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second, "two runs differ");
    first
}

/// Two members that meet after each stage, by means that the job system does not see.
fn shared_step(js: &JobSystem<Sim>, group: &Group<Sim>) {
    let arrived: Arc<[AtomicUsize; STAGES]> = Arc::default();
    // Pieces of a stage that no member has taken.
    let taken: Arc<[AtomicUsize; STAGES]> = Arc::default();
    let members = [(); 2].map(|()| {
        let (arrived, taken) = (arrived.clone(), taken.clone());
        group.job("solve").schedule(move |cx: &Context<'_, Sim>| {
            for stage in 0..STAGES {
                while taken[stage].fetch_add(1, Relaxed) < 2 {
                    cx.work(PIECE);
                    arrived[stage].fetch_add(1, Relaxed);
                }
                while arrived[stage].load(Relaxed) < 2 {
                    cx.work(Nanos::from_micros(1));
                }
            }
        })
    });
    for member in members {
        group.wait(member);
    }
    js.flush();
}

fn mean(steps: &[Step]) -> Nanos {
    Nanos(steps.iter().map(|step| step.time.0).sum::<u64>() / steps.len() as u64)
}

/// The time that one in a hundred exceeds.
fn p99(steps: &[Step]) -> Nanos {
    let mut times: Vec<Nanos> = steps.iter().map(|step| step.time).collect();
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// (With two hogs for each CPU both CPUs change threads at the same moments here: the members run at the same
/// time, and to share is better. No real machine keeps step like that.)
#[test]
fn a_gang_is_left_alone_beside_hogs() {
    let end = Nanos::from_secs(3);
    for hogs in [1, 2, 3, 5, 7] {
        let [asked, shared] = [true, false].map(|asks| steps(asks, (hogs, end), end));
        let (with, without) = (mean(&asked), mean(&shared));
        assert!(
            with.0 * 100 < without.0 * 95,
            "{hogs} hogs: {with} and {without}"
        );
        let (with, without) = (p99(&asked), p99(&shared));
        assert!(with <= without, "{hogs} hogs: {with} and {without}");
    }
}

#[test]
fn it_is_shared_again_when_the_hogs_are_gone() {
    let (gone, end) = (Nanos::from_secs(2), Nanos::from_secs(12));
    let all = steps(true, (3, gone), end);
    assert!(all.iter().any(|step| !step.was_shared));
    let late = all.partition_point(|step| step.at < end - Nanos::from_secs(1));
    assert!(all[late..].iter().all(|step| step.was_shared));
    assert!(
        mean(&all[late..]).0 * 10 < ALONE.0 * 7,
        "two threads are faster"
    );
}

#[test]
fn where_nothing_is_lost_all_is_shared() {
    let all = steps(true, (0, Nanos(0)), Nanos::from_secs(1));
    assert!(all.iter().all(|step| step.was_shared));
}
