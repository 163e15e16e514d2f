//! Goal: the job system follows its machine. CPUs that go offline or are rationed retire workers and lose
//! nothing; when they come back, so do the workers.
//! Method: frames on a simulated machine whose CPUs come and go as planned; random programs in which the
//! ration changes all the time, under any order of steps; and the environment, in processes of their own.
//! A real CPU and a real control group are in `hotplug.rs`, a binary of its own: all of the machine feels
//! that.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use event::{Cpu, EventKind, MemorySink, Nanos, Resized};
use paceline::{Builder, Grain, JobSystem};
use platform::{CpuSet, Machine as _, Os, Platform, Quota};
use sim::{Machine, Planned, Sim, SimConfig};

use crate::process::{child, is_child};
use crate::support::{Random, each_seed};

const PERIOD: Nanos = Nanos::from_millis(100);

/// One frame: jobs that depend on each other and a loop. True if all of it ran, once.
fn frame<P: Platform>(js: &JobSystem<P>, number: u64, jobs: u64) -> bool {
    let frame = js.frame("frame", Duration::from_millis(50));
    let sum = Arc::new(AtomicU64::new(0));
    let mut last = None;
    for job in 1..=jobs {
        let sum = sum.clone();
        let body = move |cx: &paceline::Context<'_, P>| {
            cx.work(Nanos::from_micros(200));
            sum.fetch_add(number * job, Relaxed);
        };
        // Every third one depends on the one before.
        let new = frame.job("job");
        let id = match last {
            Some(before) if job % 3 == 0 => new.after(before).schedule(body),
            _ => new.schedule(body),
        };
        last = Some(match last {
            Some(before) => js.combine([before, id]),
            None => id,
        });
    }
    let looped = AtomicU64::new(0);
    js.parallel_for(0..50, Grain::Items(1), |part, cx| {
        cx.work(Nanos::from_micros(20 * part.len() as u64));
        looped.fetch_add(part.len() as u64, Relaxed);
    });
    js.wait(last.expect("a frame has jobs"));
    sum.load(Relaxed) == number * jobs * (jobs + 1) / 2 && looped.load(Relaxed) == 50
}

/// Eight CPUs of which four are away from 3.05 s to 7.05 s. By second: how many workers there were at its
/// end.
fn workers_by_second(follow: bool) -> (Vec<usize>, Vec<(Resized, u64)>) {
    let away = |what: fn(Cpu) -> Planned, at| (4..8).map(move |cpu| (at, what(Cpu(cpu))));
    let (from, to) = (Nanos::from_millis(3_050), Nanos::from_millis(7_050));
    let machine = Machine::named("galaxy-s22-snapdragon").expect("it is in the library");
    let config = SimConfig {
        plan: away(Planned::Offline, from)
            .chain(away(Planned::Online, to))
            .collect(),
        ..SimConfig::on(machine.clone(), "eevdf-6.18", 1)
    };
    let (sink, log) = MemorySink::new();
    let mut workers = Vec::new();
    let report = Sim::run(config, |sim| {
        let builder = Builder::with_platform(sim.clone()).sink(Arc::new(sink));
        let js = builder.follow_machine(follow).build().unwrap();
        for number in 1..=100 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            assert!(frame(&js, number, 40), "frame {number}");
            if number % 10 == 0 {
                workers.push(js.workers());
            }
        }
        assert_eq!(js.stats().resizes, if follow { 2 } else { 0 });
    });
    report.expect_finished();
    let resized = |event: &event::Event| {
        let why = Resized::from_code(event.arg >> 32).expect("a reason");
        (why, event.arg & u64::from(u32::MAX))
    };
    let events = log.drain();
    let resizes = events
        .iter()
        .filter(|event| event.kind == EventKind::Resized);
    (workers, resizes.map(resized).collect())
}

/// Goal: workers go with the CPUs and come back with them, no job and no result is lost, and events say
/// why. Method: as above; with the oracle that a look is due each second, and confirmed.
#[test]
fn workers_go_and_come_back_with_simulated_cpus() {
    let (workers, resizes) = workers_by_second(true);
    // A look is due a second after the last one: that after 3 s sees that they are away, the next one, a
    // tenth of a second later, confirms it; and one after 7 s sees them again.
    assert_eq!(workers, [7, 7, 7, 3, 3, 3, 3, 7, 7, 7]);
    assert_eq!(resizes, [(Resized::Narrower, 3), (Resized::Wider, 7)]);
}

#[test]
fn who_does_not_want_to_follow_the_machine_does_not() {
    let (workers, resizes) = workers_by_second(false);
    assert_eq!((workers, resizes), (vec![7; 10], Vec::new()));
}

/// Goal: whatever the ration does, and whenever, each job runs once, and the number of workers is right
/// when it has settled. Method: a ration that is changed at random between, and in the middle of, batches
/// of jobs, under random orders of steps; a lost wake-up or job is a deadlock there.
#[test]
fn random_rations_lose_nothing() {
    each_seed("live::random_rations_lose_nothing", 150, |seed| {
        let config = SimConfig::new(seed).with_cpus_shown(4);
        let report = Sim::run(config, |sim| random_rations(&sim, seed));
        report.expect_finished();
    });
}

/// Lets a look become due and waits until a worker has had it.
fn have_a_look(sim: &Sim, js: &JobSystem<Sim>) {
    let before = js.stats().looks;
    sim.charge(Nanos::from_millis(1_010));
    js.flush();
    while js.stats().looks == before {
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
    }
}

/// A ration of this many tenths of a CPU.
fn tenths(tenths: u64) -> Option<Quota> {
    Quota::new(10_000 * tenths, 100_000)
}

fn random_rations(sim: &Sim, seed: u64) {
    let mut random = Random::new(seed ^ 0x11fe);
    let mut ration = || match random.below(3) {
        0 => None,
        _ => tenths(1 + random.below(45) as u64),
    };
    let js = Builder::with_platform(sim.clone()).build().unwrap();
    assert_eq!(js.workers(), 3);
    for number in 1..=8 {
        sim.set_quota(ration());
        sim.charge(Nanos::from_millis(if number % 3 == 0 {
            120
        } else {
            1_010
        }));
        let (other, platform) = (ration(), sim.clone());
        let changes = js.schedule(move |_| platform.set_quota(other));
        assert!(frame(&js, number, 6), "round {number}");
        js.wait(changes);
        assert!((1..=3).contains(&js.workers()));
    }
    // Settled: growing takes one look, shrinking two.
    for (quota, workers) in [(None, 3), (tenths(25), 2), (tenths(1), 1), (None, 3)] {
        sim.set_quota(quota);
        (0..2).for_each(|_| have_a_look(sim, &js));
        assert_eq!(js.workers(), workers, "{quota:?}");
        assert_eq!(js.limits().quota, quota);
        assert!(frame(&js, 1, 3), "{quota:?}");
    }
}

/// Goal: a number that was given is respected, and `resize` gives one. Method: a machine of four whose
/// ration shrinks and grows.
#[test]
fn a_number_that_was_given_is_a_ceiling() {
    let report = Sim::run(SimConfig::new(1).with_cpus_shown(4), |sim| {
        let settle = |js: &JobSystem<Sim>, quota| {
            sim.set_quota(quota);
            (0..2).for_each(|_| have_a_look(&sim, js));
            js.workers()
        };
        let js = Builder::with_platform(sim.clone()).workers(3).build();
        let js = js.unwrap();
        assert_eq!(settle(&js, tenths(20)), 2);
        assert_eq!(settle(&js, None), 3);
        js.resize(9).unwrap();
        assert_eq!(settle(&js, tenths(10)), 9, "it was meant that way");
        js.resize(0).unwrap();
        assert_eq!(settle(&js, None), 0);
        assert!(frame(&js, 1, 3));
    });
    report.expect_finished();
}

/// Goal: an idle job system has no look at the machine, and one that is used again after a long time does.
/// Method: ten simulated seconds of nothing.
#[test]
fn nobody_looks_while_there_is_nothing_to_do() {
    let report = Sim::run(SimConfig::new(1).with_cpus_shown(4), |sim| {
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        let looks = || js.stats().looks;
        assert!(frame(&js, 1, 3));
        sim.sleep_until(Nanos::from_secs(10));
        assert_eq!(looks(), 0);
        for expected in [1, 1] {
            assert!(frame(&js, 1, 3));
            // A worker has it when there is nothing else to do.
            sim.sleep_until(sim.time() + Nanos::from_millis(1));
            assert_eq!(looks(), expected);
        }
    });
    report.expect_finished();
}

/// Goal: workers stay on the CPUs they are told to stay on, and CPUs that do not exist are refused in
/// words. Method: workers ask where they are on a simulated machine, steered or not.
#[test]
fn workers_stay_on_the_cpus_they_are_told() {
    let machine = Machine::named("galaxy-s22-snapdragon").expect("it is in the library");
    let config = SimConfig::on(machine.clone(), "eevdf-6.18", 1);
    let report = Sim::run(config, |sim| {
        let told: CpuSet = [5, 6].into_iter().collect();
        let build = |cpus: CpuSet| Builder::with_platform(sim.clone()).cpus(cpus).build();
        let js = build(told.clone()).unwrap();
        assert_eq!(js.workers(), 1, "two CPUs, one for the waiting thread");
        assert_eq!(js.limits().usable(), told);
        js.resize(3).unwrap();
        let stray = Arc::new(AtomicU64::new(0));
        for number in 0..30 {
            sim.sleep_until(Nanos((number + 1) * PERIOD.0));
            let jobs = [0; 6].map(|_| {
                let (stray, told) = (stray.clone(), told.clone());
                js.schedule(move |cx| {
                    cx.work(Nanos::from_millis(1));
                    let cpu = cx.platform().current_cpu().expect("it can say");
                    stray.fetch_add(u64::from(!told.contains(cpu)), Relaxed);
                })
            });
            js.flush();
            // Not by a wait, which would run some of them here.
            sim.sleep_until(Nanos((number + 1) * PERIOD.0 + PERIOD.0 / 2));
            assert!(jobs.iter().all(|&job| js.is_done(job)));
        }
        assert_eq!(stray.load(Relaxed), 0);
        let error = build([8, 9].into_iter().collect())
            .err()
            .expect("no such CPUs");
        assert!(error.to_string().contains("name one of these"), "{error}");
    });
    report.expect_finished();
}

/// Goal: the environment wins, and slips are reported. Method: processes with variables, which report their
/// settings.
#[test]
fn the_environment_says_how_much_of_the_machine_to_use() {
    let first = Os.limits().usable();
    let first = first.iter().next().expect("a CPU").to_string();
    let say = |variables: &[(&str, &OsStr)]| {
        let said = child("live::in_child", variables);
        assert!(said.is_success(), "{said}");
        said.line("built: ").expect("it says so")
    };
    let (workers, cpus) = ("PACELINE_WORKERS", "PACELINE_CPUS");
    assert_eq!(say(&[]), "5 workers");
    assert_eq!(say(&[(workers, "3".as_ref())]), "3 workers");
    let both = [(workers, "auto".as_ref()), (cpus, first.as_ref())];
    assert_eq!(say(&both), "1 workers");
    let bad = say(&[(workers, "some".as_ref())]);
    assert!(bad.starts_with("PACELINE_WORKERS: 'some' is"), "{bad}");
    let bad = say(&[(cpus, "9-1".as_ref())]);
    assert!(bad.starts_with("PACELINE_CPUS: '9-1' is no"), "{bad}");
    let bad = say(&[("PACELINE_PLACEMENT", "anywhere".as_ref())]);
    assert!(
        bad.starts_with("PACELINE_PLACEMENT: 'anywhere' is no"),
        "{bad}"
    );
    let none = say(&[(cpus, "16383".as_ref())]);
    assert!(none.contains("PACELINE_CPUS"), "{none}");
}

#[test]
#[ignore = "run by the test above in processes of their own"]
fn in_child() {
    if !is_child() {
        return;
    }
    match Builder::new().workers(5).build() {
        Ok(js) => println!("built: {} workers", js.workers()),
        Err(error) => println!("built: {error}"),
    }
}
