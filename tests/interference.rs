//! Goal: a job system notices that other threads want its CPUs, does what helps and nothing that makes it
//! worse, and goes back to what it was when they are gone.
//! Method: frames on simulated machines whose kernel counts exactly what threads waited. Hogs that go before
//! our threads or share with them come after a second and end later; the same frames without the rule, which
//! comes with following the machine, are the oracle for what is worse.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use event::{Event, EventKind, Interfered, MemorySink, Nanos, Resized};
use paceline::{Builder, Grain, JobSystem, Stats};
use platform::{Platform, ThreadSpec};
use policy::{Attr, Discipline};
use sim::{Machine, Sim, SimConfig};

const PERIOD: Nanos = Nanos(16_666_667);

const FROM: Nanos = Nanos::from_secs(1);
const TO: Nanos = Nanos::from_secs(4);

/// Threads that compute without end: their number and discipline.
#[derive(Clone, Copy)]
struct Hogs(u32, Discipline);

impl Hogs {
    fn start(self, sim: &Sim) {
        for number in 0..self.0 {
            let (its, name) = (sim.clone(), format!("hog {number}"));
            // Real-time threads each on a CPU of their own.
            let spec = ThreadSpec {
                name,
                mask: self.1.is_realtime().then(|| (number..=number).collect()),
                ..ThreadSpec::default()
            };
            let attr = Attr {
                discipline: self.1,
                priority: u8::from(self.1.is_realtime()),
                ..Attr::default()
            };
            let hog = move || {
                its.sleep_until(FROM);
                while its.time() < TO {
                    its.charge(Nanos::from_millis(1));
                }
            };
            let started = sim.spawn_with(spec, attr, Box::new(hog));
            drop(started.expect("the machine takes it"));
        }
    }
}

/// The measurements of a run.
#[derive(Default)]
struct Run {
    lasted: Vec<Nanos>,
    /// By frame: how many workers there were to be after it.
    workers: Vec<usize>,
    decided: Vec<(Interfered, usize)>,
    events: Vec<Event>,
    stats: Stats,
}

impl Run {
    fn mean(&self) -> f64 {
        let sum: u64 = self.lasted.iter().map(|nanos| nanos.0).sum();
        sum as f64 / self.lasted.len() as f64
    }

    fn decided(&self) -> Vec<Interfered> {
        self.decided.iter().map(|(what, _)| *what).collect()
    }
}

/// Those of each verdict about decisions that hang on single frames.
const SEEDS: RangeInclusive<u64> = 1..=16;
/// Those of a share of runs: about three in four keep fewer workers, and of 16 that is sometimes not two in
/// three, by chance alone.
const SHARE_SEEDS: RangeInclusive<u64> = 1..=96;

/// Six seconds of frames of 8 ms of work, on `cpus` CPUs of a machine, with hogs from 1 s to 4 s.
fn run(seed: u64, machine: &str, cpus: u32, follow: bool, hogs: Hogs) -> Run {
    let machine = Machine::named(machine).expect("it is in the library");
    let (sink, log) = MemorySink::new();
    let mut run = Run::default();
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", seed), |sim| {
        let builder = Builder::with_platform(sim.clone()).sink(Arc::new(sink));
        let builder = builder.workers(cpus as usize - 1).cpus((0..cpus).collect());
        let js = builder.follow_machine(follow).build().unwrap();
        hogs.start(&sim);
        for number in 1..=360 {
            sim.sleep_until(Nanos(number * PERIOD.0));
            let begin = sim.time();
            frame(&js);
            run.lasted.push(sim.time() - begin);
            run.workers.push(js.workers());
        }
        let found = js.interference();
        assert_eq!((found.is_noticed, found.most_workers), (false, None));
        let decided = found.decisions.iter();
        run.decided = decided.map(|one| (one.what, one.workers)).collect();
        run.stats = js.stats();
    });
    report.expect_finished();
    run.events = log.drain();
    run
}

fn frame(js: &JobSystem<Sim>) {
    let frame = js.frame("frame", Duration::from(PERIOD));
    let done = AtomicU64::new(0);
    js.parallel_for(0..160, Grain::Items(1), |part, cx| {
        cx.work(Nanos::from_micros(50 * part.len() as u64));
        done.fetch_add(part.len() as u64, Relaxed);
    });
    drop(frame);
    assert_eq!(done.load(Relaxed), 160, "each piece runs once");
}

/// Goal: where others go before ours, there are fewer workers for a while, then all to see, and all again
/// when the others have gone; no piece is lost and frames do not get longer. Method: eight CPUs of which
/// real-time threads take four, with many seeds. The windows that are compared differ by a few percent, so
/// some runs see no gain from fewer workers and restore them: at most one in three.
#[test]
fn workers_give_way_to_those_that_go_first_and_come_back() {
    use Interfered::{Fewer, Kept, Noticed, Over, Probed, Restored};
    let hogs = Hogs(4, Discipline::RoundRobin);
    let (mut kept, mut ratios) = (0, 0.0);
    for seed in SHARE_SEEDS {
        let with = run(seed, "ryzen-5800x", 8, true, hogs);
        let without = run(seed, "ryzen-5800x", 8, false, hogs);
        let decided = with.decided();
        assert_eq!(decided[..2], [Noticed, Fewer], "seed {seed}");
        assert_eq!(decided.last(), Some(&Over), "seed {seed}");
        // Not in the second without hogs; all at the end, which is 2 s after them.
        assert_eq!((with.workers[59], with.workers[359]), (7, 7), "seed {seed}");
        if decided.contains(&Kept) {
            kept += 1;
            assert!(decided.contains(&Probed), "seed {seed}: {decided:?}");
            assert!(few(&with) >= 64, "seed {seed}: {:?}", with.workers);
            let (with, without) = (with.mean(), without.mean());
            assert!(with <= without * 1.01, "seed {seed}: {with} {without}");
        } else {
            assert!(decided.contains(&Restored), "seed {seed}: {decided:?}");
        }
        ratios += with.mean() / without.mean();
        assert!(without.decided.is_empty() && without.workers.iter().all(|&count| count == 7));
    }
    let runs = SHARE_SEEDS.count();
    assert!(kept * 3 >= runs * 2, "{kept} of {runs} keep fewer workers");
    let ratio = ratios / runs as f64;
    assert!(
        ratio <= 1.0,
        "frames take {ratio} of what they take without"
    );
}

/// Goal: where others share with ours, nothing is lost by the rule: one worker stays beside two hogs for each
/// CPU, and many are back after one try. Method: the machine of `frames --load 4`, and eight CPUs.
#[test]
fn workers_that_share_stay() {
    use Interfered::{Fewer, Kept, Noticed, Over, Restored};
    let hogs = Hogs(4, Discipline::Fair);
    let (with, without) = (
        run(1, "vm-2", 2, true, hogs),
        run(1, "vm-2", 2, false, hogs),
    );
    assert_eq!(with.decided, [(Noticed, 1), (Over, 1)]);
    assert!(with.workers.iter().all(|&count| count == 1));
    assert!(
        with.mean() <= without.mean() * 1.01,
        "{} {}",
        with.mean(),
        without.mean()
    );
    assert!(
        with.stats.waited_ns > with.stats.ran_ns / 4,
        "{:?}",
        with.stats
    );
    assert!(with.stats.preempted > 60 && without.stats.preempted == 0);

    let mut tried = 0;
    for seed in SEEDS {
        let many = run(seed, "ryzen-5800x", 8, true, Hogs(16, Discipline::Fair));
        let decided = many.decided();
        assert_eq!(decided.first(), Some(&Noticed), "seed {seed}");
        assert_eq!(decided.last(), Some(&Over), "seed {seed}");
        assert!(!decided.contains(&Kept), "seed {seed}: {decided:?}");
        let has_tried = decided.contains(&Fewer);
        assert_eq!(has_tried, decided.contains(&Restored), "seed {seed}");
        // A try has one or two windows of 16 frames.
        let frames = if has_tried { 16..=34 } else { 0..=0 };
        assert!(
            frames.contains(&few(&many)),
            "seed {seed}: {:?}",
            many.workers
        );
        tried += usize::from(has_tried);
    }
    assert!(tried * 2 >= SEEDS.count(), "{tried} runs try fewer");
}

/// Frames after which there were fewer workers than seven.
fn few(run: &Run) -> usize {
    run.workers.iter().filter(|&&count| count < 7).count()
}

/// Goal: decisions are in the recording, with their reasons. Method: the events of a run, beside the job
/// system's own answer; a machine without other threads, where there are none.
#[test]
fn decisions_are_events() {
    let run = run(1, "ryzen-5800x", 8, true, Hogs(4, Discipline::RoundRobin));
    let of = |kind: EventKind| run.events.iter().filter(move |event| event.kind == kind);
    let told: Vec<_> = of(EventKind::Interference)
        .map(|event| {
            let what = Interfered::from_code(event.arg >> 32).expect("a decision");
            let (waited, switches) = (event.job >> 32, event.job & u64::from(u32::MAX));
            assert!(waited <= 1000 && switches <= 1_000_000, "{event:?}");
            if what == Interfered::Noticed {
                assert!(waited >= 50 && switches >= 500, "{event:?}");
            }
            (what, (event.arg & u64::from(u32::MAX)) as usize)
        })
        .collect();
    assert_eq!(told, run.decided);
    let resized = of(EventKind::Resized).map(|event| Resized::from_code(event.arg >> 32));
    let resized: Vec<_> = resized.collect();
    let changes = [Interfered::Fewer, Interfered::Restored, Interfered::Probed];
    let changed = told.iter().filter(|(what, _)| changes.contains(what));
    assert_eq!(resized, vec![Some(Resized::Interference); changed.count()]);
    assert_eq!(run.stats.resizes, resized.len() as u64);

    let alone = self::run(1, "ryzen-5800x", 8, true, Hogs(0, Discipline::Fair));
    assert!(alone.decided.is_empty(), "{:?}", alone.decided);
    assert_eq!(alone.stats.delayed, 0);
}
