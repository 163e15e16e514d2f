//! Goal: workers that have a core each in the last-level cache of the thread that waits for them stay there,
//! follow it when it moves, and go anywhere while others want these CPUs; the program's own threads may do as
//! before.
//! Method: a simulated desktop of four caches with four cores each, frames of short jobs, the masks that
//! threads have from one half second to the next; and random programs under any order of steps, on a machine
//! where the number of workers decides whether they fit.

use event::Nanos;
use paceline::{Builder, Placement, Role};
use platform::{CpuPlace, CpuSet, Machine, Platform, Thread, ThreadSpec, Topology};
use sim::{Sim, SimConfig};

use super::{on, random_lanes};
use crate::support::each_seed;

const DESKTOP: &str = "ryzen-3950x";
const FIRST: &str = "0-3,16-19";
const SECOND: &str = "4-7,20-23";
const ALL: &str = "0-31";

/// Frames for `length`: 24 jobs every 10 ms.
fn frames(sim: &Sim, js: &paceline::JobSystem<Sim>, length: Nanos) {
    let end = sim.time() + length;
    while sim.time() < end {
        let frame = js.frame("frame", std::time::Duration::from_millis(10));
        let jobs = [0; 24].map(|_| {
            let job = js.job("job");
            job.schedule(|cx| cx.work(Nanos::from_micros(300)))
        });
        for job in jobs {
            js.wait(job);
        }
        drop(frame);
        sim.sleep_until(sim.time() + Nanos::from_millis(7));
    }
}

/// A thread that does nothing but compute on one CPU, for two seconds.
fn hog(sim: &Sim, cpu: u32) -> impl Thread + use<> {
    let inside = sim.clone();
    let body = move || {
        let only = [cpu].into_iter().collect();
        inside.set_mask(inside.thread_id(), &only).unwrap();
        let end = inside.time() + Nanos::from_secs(2);
        while inside.time() < end {
            inside.charge(Nanos::from_micros(500));
        }
    };
    sim.spawn(ThreadSpec::default(), Box::new(body)).unwrap()
}

/// The CPUs that each of three workers may use, each half second, and at last those of the thread that waits.
/// That thread has a role, begins in the first cache and goes to the second one after two seconds; later,
/// for two seconds, others want all of that.
fn masks(placement: Placement) -> (Vec<String>, String) {
    let (mut seen, mut own) = (Vec::new(), String::new());
    let report = Sim::run(on(DESKTOP), |sim| {
        let move_to = |cpus| sim.set_mask(sim.thread_id(), &CpuSet::parse(cpus)).unwrap();
        let builder = Builder::with_platform(sim.clone()).workers(3);
        let js = builder.placement(placement).build().unwrap();
        let _main = js.adopt(Role::Main);
        let mut hogs = Vec::new();
        for half in 1..=26 {
            match half {
                5 => move_to(SECOND),
                15 => {
                    let cpus = CpuSet::parse(SECOND);
                    hogs = cpus.iter().map(|cpu| hog(&sim, cpu)).collect();
                }
                _ => {}
            }
            frames(&sim, &js, Nanos::from_millis(500));
            let masks = [2, 3, 4].map(|worker| sim.allowed(&[worker]).unwrap().to_string());
            let all_alike = masks.iter().all(|mask| *mask == masks[0]);
            seen.push(if all_alike {
                masks[0].clone()
            } else {
                masks.join(" ")
            });
        }
        own = sim.allowed(&[sim.thread_id()]).unwrap().to_string();
        for hog in hogs {
            hog.join().unwrap();
        }
    });
    report.expect_finished();
    (seen, own)
}

/// Goal and method: as above, with and without placement.
#[test]
fn few_workers_follow_who_waits() {
    let (seen, own) = masks(Placement::Classes);
    // A look is due each second, and three find where that thread is now. For a second after the last one
    // that was preempted threads count as such; then comes a pause of two looks, or four if that was too
    // early.
    assert_eq!(seen[..4], [FIRST; 4], "{seen:#?}");
    assert_eq!(seen[11..14], [SECOND; 3], "{seen:#?}");
    assert_eq!(seen[17..20], [ALL; 3], "{seen:#?}");
    assert_eq!(seen[24..], [SECOND; 2], "{seen:#?}");
    assert_eq!(own, SECOND, "as it has said itself");
    let (seen, _) = masks(Placement::Free);
    assert_eq!(seen[..10], [ALL; 10], "{seen:#?}");
}

/// Goal: the report is true: where each thread is, as far as is known now. Method: the same desktop, with as
/// many workers as have room there and with one more.
#[test]
fn it_is_explained() {
    for (workers, expected) in [(3, FIRST), (4, "wherever the kernel puts them")] {
        let report = Sim::run(on(DESKTOP), |sim| {
            let builder = Builder::with_platform(sim).workers(workers);
            let why = builder.build().unwrap().explain();
            let last = why.last().expect("there are sentences");
            assert!(last.contains(expected), "{why:?}");
        });
        report.expect_finished();
    }
}

/// Goal: masks that come and go lose nothing. Method: random programs under random orders of steps, on a
/// machine that is shown as one of two caches with two cores each, with a quota that leaves one worker,
/// which fits beside the thread that waits, or more, which do not.
#[test]
fn masks_that_come_and_go_lose_nothing() {
    each_seed(
        "placement::near::masks_that_come_and_go_lose_nothing",
        100,
        |seed| {
            let place = |cpu| CpuPlace {
                cpu,
                core: cpu,
                cache: cpu / 2,
                ..CpuPlace::default()
            };
            let machine = Topology::new((0..4).map(place).collect(), 4, "two caches".into());
            let config = SimConfig {
                shown: Some(machine),
                ..SimConfig::new(seed)
            };
            Sim::run(config, |sim| random_lanes(&sim, seed)).expect_finished();
        },
    );
}
