//! Goal: where CPUs differ, work with a deadline stays on fast ones, slow ones take background jobs and
//! shares of ranges that are so small that no thread waits for them, and nothing is lost when CPUs come and
//! go. Where they do not differ nothing is done. Method: the job system on simulated phones and desktops,
//! whose kernels keep the masks and whose little cores wake up at low frequencies; and random programs under
//! any order of steps.

mod lane;
mod little;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use event::{Cpu, Nanos};
use paceline::{Builder, Context, Grain, JobSystem, Placement, Role, Stats};
use platform::topology::detect;
use platform::{CpuSet, Limits, Machine as _, Platform, Quota, Thread, ThreadSpec, Topology};
use sim::{Machine, Planned, Sim, SimConfig};

use crate::support::{Random, each_seed};

const PERIOD: Nanos = Nanos(16_666_667);
const PHONE: &str = "galaxy-s22-snapdragon";
const LITTLE: std::ops::Range<u32> = 0..4;

fn on(machine: &str) -> SimConfig {
    let machine = Machine::named(machine).expect("it is in the library");
    SimConfig::on(machine, "eevdf-6.18", 1)
}

/// The times of frames with one range each, on a main thread that has its role.
struct Run {
    times: Vec<Nanos>,
    stats: Stats,
    hash: u64,
}

/// Frames of this period, each a range of equal items, with a given work on the fastest CPU. `workers`: their
/// number; all that fit if not given.
fn run_ranges(
    config: SimConfig,
    workers: Option<usize>,
    placement: Placement,
    period: Nanos,
    (frames, items, work): (u64, usize, Nanos),
) -> Run {
    let (mut times, mut stats) = (Vec::new(), Stats::default());
    let report = Sim::run(config, |sim| {
        let mut builder = Builder::with_platform(sim.clone()).placement(placement);
        if let Some(workers) = workers {
            builder = builder.workers(workers);
        }
        let js = builder.build().unwrap();
        let _main = js.adopt(Role::Main);
        for frame in 1..=frames {
            sim.sleep_until(Nanos(frame * period.0));
            let begin = sim.time();
            let done = AtomicU64::new(0);
            js.parallel_for(0..items, Grain::Auto, |part, cx| {
                done.fetch_add(part.len() as u64, Relaxed);
                part.for_each(|_| cx.work(work));
            });
            times.push(sim.time() - begin);
            assert_eq!(done.into_inner(), items as u64, "frame {frame}");
        }
        stats = js.stats();
    });
    let report = report.expect_finished();
    Run {
        times,
        stats,
        hash: report.schedule_hash,
    }
}

/// The CPUs on which jobs with a deadline ran in 30 frames of 24 jobs, and those on which background jobs and
/// all they made did.
fn where_jobs_run(config: SimConfig) -> (CpuSet, CpuSet) {
    let (mut frame, mut background) = (CpuSet::new(), CpuSet::new());
    let report = Sim::run(config, |sim| {
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        let _main = js.adopt(Role::Main);
        let seen = Arc::new([const { AtomicU64::new(0) }; 2]);
        let body = |lane: usize, seen: &Arc<[AtomicU64; 2]>| {
            let seen = seen.clone();
            move |cx: &Context<'_, Sim>| {
                cx.work(Nanos::from_micros(300));
                let cpu = cx.platform().current_cpu().expect("it can say");
                seen[lane].fetch_or(1 << cpu, Relaxed);
            }
        };
        for number in 1..=30 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            let saves = [0; 6].map(|_| {
                let (inner, outer) = (body(1, &seen), body(1, &seen));
                js.job("save").background().schedule(move |cx| {
                    outer(cx);
                    cx.job("part of it").schedule(inner);
                })
            });
            let jobs = [0; 24].map(|_| js.schedule(body(0, &seen)));
            for job in jobs {
                js.wait(job);
            }
            for job in saves {
                js.wait(job);
            }
        }
        let set = |lane: usize| {
            let mask = seen[lane].load(Relaxed);
            (0..64).filter(|cpu| mask & (1 << cpu) != 0).collect()
        };
        (frame, background) = (set(0), set(1));
    });
    report.expect_finished();
    (frame, background)
}

/// Goal: jobs with a deadline stay on fast CPUs, the others run on any, and when only little ones are there
/// everything runs on them. Method: jobs of both lanes on a phone, whole, without its fast CPUs and without
/// its little ones.
#[test]
fn little_cores_take_what_has_no_deadline() {
    let (frame, background) = where_jobs_run(on(PHONE));
    assert_eq!(frame.to_string(), "4-7");
    let little = background.iter().filter(|cpu| LITTLE.contains(cpu));
    assert!(little.count() >= 3, "{background}");
    let without = |cpus: std::ops::Range<u32>| {
        let plan = cpus.map(|cpu| (Nanos::from_millis(1), Planned::Offline(Cpu(cpu))));
        SimConfig {
            plan: plan.collect(),
            ..on(PHONE)
        }
    };
    let (frame, background) = where_jobs_run(without(4..8));
    let all = frame.union(&background);
    assert!(all.iter().all(|cpu| LITTLE.contains(&cpu)), "{all}");
    let (frame, _) = where_jobs_run(without(0..4));
    assert_eq!(frame.to_string(), "4-7");
}

/// Goal: workers follow their classes when CPUs come and go: to the little ones when the others are away,
/// back when they come. Method: a phone whose fast CPUs are away for three seconds; where jobs ran in each
/// half second.
#[test]
fn places_follow_the_machine() {
    let away = |what: fn(Cpu) -> Planned, at| {
        (4..8).map(move |cpu| (Nanos::from_millis(at), what(Cpu(cpu))))
    };
    let config = SimConfig {
        plan: away(Planned::Offline, 2_050)
            .chain(away(Planned::Online, 5_050))
            .collect(),
        ..on(PHONE)
    };
    let mut seen = Vec::new();
    let report = Sim::run(config, |sim| {
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        for half in 1..=16 {
            let mask = Arc::new(AtomicU64::new(0));
            for number in 0..5 {
                sim.sleep_until(Nanos::from_millis(half * 500 + number * 100));
                for _ in 0..12 {
                    let mask = mask.clone();
                    js.schedule(move |cx| {
                        cx.work(Nanos::from_micros(500));
                        mask.fetch_or(1 << cx.platform().current_cpu().unwrap(), Relaxed);
                    });
                }
                js.flush();
                // Not by a wait, which would run some of them here.
                sim.sleep_until(sim.time() + Nanos::from_millis(60));
            }
            seen.push(mask.load(Relaxed));
        }
    });
    report.expect_finished();
    let (fast, little) = (0xf0, 0x0f);
    for (half, &mask) in (1..).zip(&seen) {
        // A look is due each second, and what shrank is confirmed: until then all is possible.
        let expected = match half {
            1..=3 | 13.. => fast,
            7..=9 => little,
            _ => fast | little,
        };
        assert!(
            mask != 0 && mask & !expected == 0,
            "half second {half}: {seen:x?}"
        );
    }
}

/// Goal: a thread with a role is where fast workers are, also when that changes, and where it was without its
/// role; another thread is left alone. Method: a phone whose prime core and one more come after it has
/// adopted, then all fast CPUs go and come back; where both threads may run between looks.
#[test]
fn threads_with_a_role_follow_the_machine() {
    let plan = [
        (1, Planned::Offline as fn(Cpu) -> Planned, 6..8),
        (2_050, Planned::Online, 6..8),
        (4_050, Planned::Offline, 4..8),
        (7_050, Planned::Online, 4..8),
    ];
    let plan = plan.into_iter().flat_map(|(millis, what, cpus)| {
        cpus.map(move |cpu| (Nanos::from_millis(millis), what(Cpu(cpu))))
    });
    let config = SimConfig {
        plan: plan.collect(),
        ..on(PHONE)
    };
    let mut seen = Vec::new();
    let report = Sim::run(config, |sim| {
        sim.sleep_until(Nanos::from_millis(5));
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        let other = {
            let sim = sim.clone();
            move || sim.sleep_until(Nanos::from_millis(10_500))
        };
        let other = sim.spawn(ThreadSpec::default(), Box::new(other)).unwrap();
        // The first thread, the workers, and that one.
        let other_id = 2 + js.workers() as u64;
        let mut note = || {
            let may = |thread| sim.allowed(&[thread]).expect("it lives").to_string();
            seen.push([may(sim.thread_id()), may(other_id)]);
        };
        note();
        let main = js.adopt(Role::Main);
        for second in 1..=10 {
            note();
            for tenth in 0..10 {
                sim.sleep_until(Nanos::from_millis(second * 1_000 - 900 + tenth * 100));
                drop(js.frame("frame", Duration::from_millis(16)));
            }
        }
        drop(main);
        note();
        other.join().unwrap();
    });
    report.expect_finished();
    let main: Vec<&str> = seen.iter().map(|[main, _]| &main[..]).collect();
    // Before the role; at the beginning of each second (looks are at the end of it); after the role.
    let (any, fast) = ("0-7", "4-7");
    assert_eq!(
        main,
        [
            any, any, any, any, fast, fast, any, any, any, fast, fast, any
        ]
    );
    assert!(seen.iter().all(|[_, other]| other == any), "{seen:?}");
}

/// A machine of the test data, of which only these CPUs are online; all that were if none are named.
fn dumped(name: &str, online: Option<&str>) -> Topology {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/topology");
    let archive = format!("{folder}/{name}/fs.tar.gz");
    let mut tree = measure::dump::read(archive.as_ref()).expect("it is an archive");
    if let Some(online) = online {
        tree.put("sys/devices/system/cpu/online", online);
    }
    detect::detect(&tree)
}

/// Three jobs, a second after the last look, and then a wait for the next one.
fn work_until_looked(sim: &Sim, js: &JobSystem<Sim>, ran: &Arc<AtomicU64>) {
    let looks = js.stats().looks;
    sim.charge(Nanos::from_millis(1_010));
    for background in [false, true, false] {
        let (ran, job) = (ran.clone(), js.job("job"));
        let job = if background { job.background() } else { job };
        job.schedule(move |cx| {
            cx.work(Nanos::from_micros(100));
            ran.fetch_add(1, Relaxed);
        });
    }
    js.flush();
    while js.stats().looks == looks {
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
    }
}

/// Goal: a phone that begins with one CPU online comes to use all of it, and to know the classes of the CPUs
/// that it did not see at first; cores that go, a background cpuset and quotas shrink it; nothing is lost on
/// the way. Method: dumps of a phone, one after the other, under a job system that works; its own report
/// after each.
#[test]
fn a_pool_follows_a_sequence_of_dumps() {
    let whole = || dumped("phone-galaxy-s9-global", None);
    let with = |change: fn(&mut Limits)| {
        let mut limits = whole().limits().clone();
        change(&mut limits);
        whole().with_limits(limits)
    };
    let (fast, slow) = (
        "on CPUs 4-7 and take all jobs",
        "on CPUs 0-3 and take background jobs",
    );
    let anywhere = "All of them take all jobs";
    let steps = [
        (
            dumped("phone-galaxy-s9-global", Some("0")),
            1,
            anywhere,
            anywhere,
        ),
        (whole(), 7, fast, slow),
        (dumped("asm-exynos-9810-cores-off", None), 4, "", ""),
        (whole(), 7, fast, slow),
        (
            with(|limits| limits.allowed = CpuSet::parse("0-1")),
            1,
            anywhere,
            anywhere,
        ),
        (
            with(|limits| limits.quota = Quota::new(350_000, 100_000)),
            3,
            fast,
            fast,
        ),
        (dumped("phone-galaxy-s9-global", Some("0-3,6")), 4, "", ""),
        (whole(), 7, fast, slow),
    ];
    let first = SimConfig {
        shown: Some(steps[0].0.clone()),
        ..SimConfig::new(1)
    };
    let report = Sim::run(first, |sim| {
        let js = Builder::with_platform(sim.clone()).build().unwrap();
        let ran = Arc::new(AtomicU64::new(0));
        for (number, (machine, workers, some, other)) in (1..).zip(&steps) {
            sim.show(machine.clone());
            // One to see it, one to confirm it.
            for _ in 0..2 {
                work_until_looked(&sim, &js, &ran);
            }
            let why = js.explain();
            assert_eq!(js.workers(), *workers, "step {number}: {why:?}");
            for text in [some, other] {
                assert!(
                    why.iter().any(|line| line.contains(text)),
                    "step {number}: {why:?}"
                );
            }
        }
        drop(js);
        assert_eq!(ran.load(Relaxed), 6 * steps.len() as u64);
    });
    report.expect_finished();
}

/// Goal: where CPUs are equal, and where the program wants none of it, nothing is done at all. Method: the
/// same run with and without placement is the same run, step by step.
#[test]
fn equal_cpus_are_left_alone() {
    let run = |machine, placement| {
        let what = (4, 2_000, Nanos::from_micros(4));
        run_ranges(on(machine), None, placement, PERIOD, what)
    };
    for machine in ["vm-2", "ryzen-5800x", "ryzen-3950x"] {
        let (classes, free) = (
            run(machine, Placement::Classes),
            run(machine, Placement::Free),
        );
        assert_eq!(
            (classes.hash, classes.stats),
            (free.hash, free.stats),
            "{machine}"
        );
    }
    assert_eq!(run(PHONE, Placement::Free).stats.slow_pieces, 0);
    assert_eq!(run(PHONE, Placement::Classes).stats.slow_pieces, 0);
    assert!(run(PHONE, Placement::LittleCoresInLoops).stats.slow_pieces > 0);
}

/// For finding errors: a machine that is shown as one of two fast CPUs and two slow ones.
fn two_classes(seed: u64) -> SimConfig {
    let halves = vec![
        (CpuSet::parse("0-1"), Some(300)),
        (CpuSet::parse("2-3"), Some(1024)),
    ];
    SimConfig {
        shown: Some(Topology::uniform(4).with_classes(halves)),
        ..SimConfig::new(seed)
    }
}

/// Goal: whatever comes when, jobs of both lanes and ranges run once, on both kinds of workers, while these
/// change. Method: random programs under random orders of steps on a machine that is shown as one of two
/// classes, with a quota that changes how many workers there are of each; a lost wake-up or job is a deadlock
/// there.
#[test]
fn two_kinds_of_workers_lose_nothing() {
    each_seed(
        "placement::two_kinds_of_workers_lose_nothing",
        150,
        |seed| {
            let halves = vec![
                (CpuSet::parse("0-1"), Some(300)),
                (CpuSet::parse("2-3"), Some(1024)),
            ];
            let config = SimConfig {
                shown: Some(Topology::uniform(4).with_classes(halves)),
                ..SimConfig::new(seed)
            };
            let report = Sim::run(config, |sim| random_lanes(&sim, seed));
            report.expect_finished();
        },
    );
}

/// Goal: a background job that slow workers cannot take, because jobs of theirs wait for it, is run by a fast
/// one, also if that slept. Method: such jobs, published by a thread that does not help; a forgotten worker
/// is a deadlock.
#[test]
fn fast_workers_help_when_slow_ones_are_stuck() {
    each_seed(
        "placement::fast_workers_help_when_slow_ones_are_stuck",
        60,
        |seed| {
            let report = Sim::run(two_classes(seed), |sim| {
                let js = Builder::with_platform(sim.clone()).build().unwrap();
                let nap = || sim.sleep_until(sim.time() + Nanos::from_millis(1));
                for _ in 0..3 {
                    let key = js.event("key");
                    let id = key.id();
                    let jobs = [0; 2].map(|_| {
                        js.job("stuck").background().schedule(move |cx| {
                            cx.work(Nanos::from_micros(10));
                            cx.job("after the key").after(id).run(|_| ()).wait();
                        })
                    });
                    nap();
                    let frees = js
                        .job("frees")
                        .background()
                        .schedule(move |_| key.complete());
                    while !jobs.iter().all(|&job| js.is_done(job)) || !js.is_done(frees) {
                        nap();
                    }
                }
            });
            report.expect_finished();
        },
    );
}

fn random_lanes(sim: &Sim, seed: u64) {
    let mut random = Random::new(seed ^ 0x91ace);
    let builder = Builder::with_platform(sim.clone());
    let placement = if seed.is_multiple_of(2) {
        Placement::Classes
    } else {
        Placement::LittleCoresInLoops
    };
    let js = builder.placement(placement).build().unwrap();
    let (ran, mut expected) = (Arc::new(AtomicU64::new(0)), 0);
    for round in 0..6 {
        let quota = [
            None,
            Quota::new(250_000, 100_000),
            Quota::new(150_000, 100_000),
        ];
        sim.set_quota(*random.pick(&quota));
        sim.charge(Nanos::from_millis(if round % 2 == 0 { 1_010 } else { 110 }));
        let mut all = Vec::new();
        for _ in 0..random.below(8) {
            let (ran, inner) = (ran.clone(), ran.clone());
            let mut job = js.job("job");
            if random.chance(50) {
                job = job.background();
            }
            if let Some(&last) = all.last().filter(|_| random.chance(40)) {
                job = job.after(last);
            }
            let makes = random.chance(30);
            expected += 1 + u64::from(makes);
            all.push(if random.chance(25) {
                job.schedule_for(0..200, Grain::Items(1), move |part, cx| {
                    cx.work(Nanos::from_micros(5 * part.len() as u64));
                    if part.contains(&0) {
                        ran.fetch_add(1 + u64::from(makes), Relaxed);
                    }
                })
            } else {
                job.schedule(move |cx| {
                    cx.work(Nanos::from_micros(50));
                    ran.fetch_add(1, Relaxed);
                    if makes {
                        let made = cx.job("made").run(move |_| inner.fetch_add(1, Relaxed));
                        made.wait();
                    }
                })
            });
        }
        for id in all {
            js.wait(id);
        }
    }
    assert_eq!(ran.load(Relaxed), expected);
}
