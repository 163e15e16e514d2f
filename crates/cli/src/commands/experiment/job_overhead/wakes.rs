//! Wake-ups: which threads send them, which were for nothing, what batches save, and what it costs not to
//! sleep.

use std::sync::Arc;

use console::Failure;
use event::{KernelEventKind, Left, Nanos, Task};
use paceline::{Builder, Stats, WaitPolicy};
use platform::{Atomic, Memory, Ordering, Padded, Platform, Thread, ThreadSpec};
use sim::sync::Semaphore;
use sim::{Sim, SimConfig, SimReport};
use workload::busy::Busy;

use super::subject::{MACHINE, POLICY, SystemUnderTest, frames, graph};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

/// Pieces that are long enough to tell a worker that ran one from a worker that found none.
const PIECE: Nanos = Nanos::from_micros(5);
const WORKERS: usize = 15;

/// Wake-ups of workers.
#[derive(Clone, Copy, Default)]
struct Wakes {
    by_main: f64,
    by_workers: f64,
    /// Of both: the worker slept again without having run as long as a piece takes.
    useless: f64,
}

impl Wakes {
    fn of(report: &SimReport, frames: f64) -> Wakes {
        let threads = report.threads.len();
        // Of each thread: since when it has been running, and for how long since it was woken.
        let (mut since, mut ran) = (vec![None; threads], vec![Nanos::ZERO; threads]);
        let mut woken = vec![false; threads];
        let (mut by_main, mut by_workers, mut useless) = (0u32, 0u32, 0u32);
        for event in &report.trace {
            match event.what {
                KernelEventKind::Waking {
                    task: Task(task),
                    by,
                    ..
                } if task > 0 => {
                    match by {
                        Some(Task(0)) => by_main += 1,
                        Some(_) => by_workers += 1,
                        None => {}
                    }
                    (woken[task as usize], ran[task as usize]) = (true, Nanos::ZERO);
                }
                KernelEventKind::Switch { prev, state, next } => {
                    if let Some(Task(next)) = next {
                        since[next as usize] = Some(event.time);
                    }
                    let Some(prev) = prev.map(|Task(prev)| prev as usize) else {
                        continue;
                    };
                    if let Some(since) = since[prev].take() {
                        ran[prev] += event.time - since;
                    }
                    let sleeps = matches!(state, Left::Sleeping | Left::Blocked);
                    if sleeps && std::mem::take(&mut woken[prev]) && ran[prev] < PIECE {
                        useless += 1;
                    }
                }
                _ => {}
            }
        }
        Wakes {
            by_main: f64::from(by_main) / frames,
            by_workers: f64::from(by_workers) / frames,
            useless: f64::from(useless) / frames,
        }
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let wakes = sent(effort, findings)?;
    let batches = batches(effort, findings)?;
    let (spinning, parking) = energy(effort, findings)?;
    let [old, _, new, _] = wakes;
    let [single, batched, paceline, _] = batches;
    findings.claims.extend([
        Claim::source(
            "001-q",
            "The main thread wakes fewer workers in 2022.2 than in 2017.3",
            "Job scheduler; 2022.2 job scheduler, below the loop",
        )
        .is(Expect::LessThan(old.by_main), new.by_main, "wake-ups by the main thread a frame")
        .note("signals to workers that are awake wake none and are not counted"),
        Claim::source(
            "001-r",
            "Workers are woken for nothing where others have taken the work",
            "Thread-signaling overhead",
        )
        .is(Expect::MoreThan(0.0), old.useless, "useless wake-ups a frame")
        .note(format!(
            "2017.3, of {:.0}; pieces of {PIECE}, {WORKERS} workers",
            old.by_main + old.by_workers
        )),
        Claim::source(
            "001-s",
            "Scheduling in batches costs the main thread less than signalling each job",
            "Thread-signaling overhead, last paragraphs",
        )
        .is(Expect::LessThan(single.main), batched.main, "ns of the main thread a job")
        .note("a semaphore, as in 2017.3, posted for each job and once for each worker that is useful"),
        Claim::source(
            "001-t",
            "… and wakes fewer workers for nothing",
            "Thread-signaling overhead, last paragraphs",
        )
        .is(Expect::AtMost(single.useless), batched.useless, "useless wake-ups of 32 jobs"),
        Claim::ours(
            "001-w",
            "If no worker is woken while another one looks for work, few are, even if each job is signalled",
        )
        .is(Expect::AtMost(single.sent / 2.0), paceline.sent, "wake-ups of 32 jobs")
        .note("Paceline, flushed after each job, against the semaphore posted for each"),
        Claim::source(
            "001-u",
            "Workers that never sleep drain the battery",
            "Thread-signaling overhead, last but one paragraph; busy waits below",
        )
        .is(Expect::MoreThan(parking.millijoules), spinning.millijoules, "mJ a second, modelled"),
        Claim::source(
            "001-v",
            "… and make the processor hotter, which clocks it down",
            "Thread-signaling overhead, last but one paragraph",
        )
        .is(Expect::MoreThan(parking.degrees), spinning.degrees, "degrees C at the end, modelled")
        .note("the clock was not yet lowered in this time"),
    ]);
    Ok(())
}

fn sent(effort: &Effort, findings: &mut Findings) -> Result<[Wakes; 4], Failure> {
    let count = effort.of(2, 10);
    let wakes = lab::each("wake-ups", &SystemUnderTest::ALL, |&system| {
        let mut done = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(lab::machine(MACHINE), POLICY, effort.seed)
        };
        let graph = graph(PIECE, effort)?;
        let report = Sim::run(config, |sim| {
            done = frames(&sim, system, WORKERS, graph, count, Busy::NONE, || ()).map(drop);
        });
        lab::sound("wake-ups", &report)?;
        done.map(|()| Wakes::of(&report, f64::from(count)))
    })?;
    let title =
        format!("Wake-ups of workers a frame, pieces of {PIECE}, {WORKERS} workers on {MACHINE}");
    let columns = [
        "job system",
        "by the main thread",
        "by workers",
        "for nothing",
    ];
    let mut table = Table::new(title, columns);
    let mut bars = Vec::new();
    for (system, wakes) in SystemUnderTest::ALL.iter().zip(&wakes) {
        table.row([
            system.name().into(),
            wakes.by_main.into(),
            wakes.by_workers.into(),
            wakes.useless.into(),
        ]);
        let by = [
            ("by the main thread", wakes.by_main),
            ("by workers", wakes.by_workers),
        ];
        for (kind, (who, value)) in by
            .into_iter()
            .chain([("for nothing", wakes.useless)])
            .enumerate()
        {
            bars.push(PlotBar {
                name: format!("{}: {who}", system.name()),
                value,
                kind,
            });
        }
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "wakes",
        title: "Wake-ups of workers in a frame".into(),
        picture: PlotShape::Bars {
            unit: "wake-ups a frame",
            bars,
        },
    });
    wakes
        .try_into()
        .map_err(|_| Failure::failed("four job systems"))
}

/// The cost of 32 jobs for the thread that schedules them, with sleeping workers.
#[derive(Clone, Copy)]
struct Batch {
    /// In ns of the main thread, a job.
    main: f64,
    sent: f64,
    useless: f64,
}

/// How 32 jobs get to the workers.
#[derive(Clone, Copy)]
enum Handover {
    /// As in 2017.3: a counter of the jobs there are, and a semaphore that is posted for each job, or …
    Semaphore { batch: bool },
    /// Flushed after each job, or after all of them.
    Paceline { batch: bool },
}

const JOBS: u32 = 32;
const JOB: Nanos = Nanos::from_micros(1);
/// Long enough for all of them, and for workers to fall asleep.
const PAUSE: Nanos = Nanos::from_millis(1);

fn batches(effort: &Effort, findings: &mut Findings) -> Result<[Batch; 4], Failure> {
    let rounds = effort.of(5, 50);
    let ways = [
        (
            "a semaphore",
            "each job",
            Handover::Semaphore { batch: false },
        ),
        (
            "a semaphore",
            "all of them",
            Handover::Semaphore { batch: true },
        ),
        ("paceline", "each job", Handover::Paceline { batch: false }),
        (
            "paceline",
            "all of them",
            Handover::Paceline { batch: true },
        ),
    ];
    let batches = lab::each("batches", &ways, |&(_, _, way)| {
        let mut found = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig::on(lab::machine(MACHINE), POLICY, effort.seed);
        let report = Sim::run(config, |sim| {
            found = match way {
                Handover::Semaphore { batch } => by_semaphore(&sim, batch, rounds),
                Handover::Paceline { batch } => by_paceline(&sim, batch, rounds),
            };
        });
        lab::sound("batches", &report)?;
        found
    })?;
    let title = format!("{JOBS} jobs of {JOB} for {WORKERS} sleeping workers on {MACHINE}");
    let columns = [
        "by",
        "signalled after",
        "main thread, ns a job",
        "wake-ups",
        "for nothing",
    ];
    let mut table = Table::new(title, columns);
    for ((by, after, _), batch) in ways.iter().zip(&batches) {
        table.row([
            (*by).into(),
            (*after).into(),
            batch.main.into(),
            batch.sent.into(),
            batch.useless.into(),
        ]);
    }
    findings.tables.push(table);
    batches.try_into().map_err(|_| Failure::failed("four ways"))
}

/// The data that the threads of [`by_semaphore`] share.
struct SemaphoreShared {
    signal: Semaphore,
    jobs: Padded<Word>,
    is_over: Word,
    wakes: Word,
    useless: Word,
}

type Word = <Sim as Memory>::AtomicU64;

fn by_semaphore(sim: &Sim, batch: bool, rounds: u32) -> Result<Batch, Failure> {
    let word = || Sim::on_own_lines(|| Word::new(0));
    let shared = Arc::new(SemaphoreShared {
        signal: Semaphore::new(sim, 0),
        jobs: Padded(word()),
        is_over: word(),
        wakes: word(),
        useless: word(),
    });
    let workers = (0..WORKERS).map(|number| {
        let (sim_of_worker, shared) = (sim.clone(), shared.clone());
        let spec = ThreadSpec {
            name: format!("worker {number}"),
            ..ThreadSpec::default()
        };
        sim.spawn(spec, Box::new(move || work(&sim_of_worker, &shared)))
    });
    let workers: Result<Vec<_>, _> = workers.collect();
    let workers = workers.map_err(Failure::failed)?;
    let mut spent = Nanos::ZERO;
    for _ in 0..rounds {
        let rest = sim.now() + PAUSE;
        sim.sleep_until(rest);
        let begin = sim.now();
        for _ in 0..JOBS {
            // Release, partner: the Acquire of the thread that takes the job.
            shared.jobs.fetch_add(1, Ordering::Release);
            if !batch {
                shared.signal.post();
            }
        }
        if batch {
            (0..WORKERS.min(JOBS as usize)).for_each(|_| shared.signal.post());
        }
        spent += sim.now() - begin;
    }
    let rest = sim.now() + PAUSE;
    sim.sleep_until(rest);
    // Relaxed, here and below: the workers sleep, and the semaphore orders the end.
    let count = |word: &Word| word.load(Ordering::Relaxed) as f64 / f64::from(rounds);
    let (sent, useless) = (count(&shared.wakes), count(&shared.useless));
    shared.is_over.store(1, Ordering::Relaxed);
    (0..WORKERS).for_each(|_| shared.signal.post());
    for worker in workers {
        worker
            .join()
            .map_err(|_| Failure::failed("a worker panicked"))?;
    }
    Ok(Batch {
        main: spent.0 as f64 / f64::from(rounds * JOBS),
        sent,
        useless,
    })
}

/// The life of a worker: once woken, it takes jobs until there are none.
fn work(sim: &Sim, shared: &SemaphoreShared) {
    loop {
        shared.signal.take();
        if shared.is_over.load(Ordering::Relaxed) != 0 {
            return;
        }
        let mut done = 0;
        while take_one(&shared.jobs) {
            sim.charge(JOB);
            done += 1;
        }
        shared.wakes.fetch_add(1, Ordering::Relaxed);
        shared
            .useless
            .fetch_add(u64::from(done == 0), Ordering::Relaxed);
    }
}

/// A loop with compare-and-swap, as the article says its queue has.
fn take_one(jobs: &Word) -> bool {
    loop {
        let left = jobs.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        // Acquire, partner: the Release of the thread that put it there.
        let taken = jobs.compare_exchange(left, left - 1, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            return true;
        }
    }
}

fn by_paceline(sim: &Sim, batch: bool, rounds: u32) -> Result<Batch, Failure> {
    let js = Builder::with_platform(sim.clone())
        .workers(WORKERS)
        .wait_policy(WaitPolicy::Passive);
    let js = js
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let mut spent = Nanos::ZERO;
    let mut before = Stats::default();
    // The first round starts threads.
    for round in 0..=rounds {
        if round == 1 {
            (spent, before) = (Nanos::ZERO, js.stats());
        }
        let begin = sim.now();
        for _ in 0..JOBS {
            js.job("small").schedule(|cx| cx.work(JOB));
            if !batch {
                js.flush();
            }
        }
        js.flush();
        spent += sim.now() - begin;
        let rest = sim.now() + PAUSE;
        sim.sleep_until(rest);
    }
    let stats = js.stats().since(&before);
    let rounds = f64::from(rounds);
    Ok(Batch {
        main: spent.0 as f64 / rounds / f64::from(JOBS),
        sent: stats.wakes_sent as f64 / rounds,
        useless: stats.wakes_useless as f64 / rounds,
    })
}

/// The energy that frames cost a phone, and its heat.
#[derive(Clone, Copy)]
struct Spent {
    millijoules: f64,
    degrees: f64,
    mhz: f64,
}

fn energy(effort: &Effort, findings: &mut Findings) -> Result<(Spent, Spent), Failure> {
    const PHONE: &str = "galaxy-s22-snapdragon";
    let seconds = effort.of(0.2, 2.0);
    let ways = [("spin", WaitPolicy::Active), ("park", WaitPolicy::Passive)];
    let spent = lab::each("energy", &ways, |&(_, wait)| {
        let mut done = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig::on(lab::machine(PHONE), POLICY, effort.seed);
        let report = Sim::run(config, |sim| done = at_60_hz(&sim, wait, seconds));
        lab::sound("energy", &report)?;
        done.map(|()| spent(&report))
    })?;
    let title = format!("3 workers and 4 ms of jobs at 60 Hz for {seconds} s on {PHONE}, modelled");
    let columns = [
        "idle workers",
        "mJ a second",
        "degrees C at most",
        "mean clock of busy cores, MHz",
    ];
    let mut table = Table::new(title, columns);
    for ((name, _), spent) in ways.iter().zip(&spent) {
        table.row([
            (*name).into(),
            spent.millijoules.into(),
            spent.degrees.into(),
            spent.mhz.into(),
        ]);
    }
    findings.tables.push(table);
    match spent.as_slice() {
        [spinning, parking] => Ok((*spinning, *parking)),
        _ => Err(Failure::failed("two ways")),
    }
}

fn at_60_hz(sim: &Sim, wait: WaitPolicy, seconds: f64) -> Result<(), Failure> {
    const PERIOD: Nanos = Nanos(16_666_667);
    let js = Builder::with_platform(sim.clone())
        .workers(3)
        .wait_policy(wait)
        .build();
    let js = js.map_err(|error| Failure::failed(error.to_string()))?;
    for frame in 1..=(seconds * 60.0) as u64 {
        let jobs = (0..8).map(|_| {
            js.job("work")
                .schedule(|cx| cx.work(Nanos::from_micros(500)))
        });
        let jobs: Vec<_> = jobs.collect();
        js.wait(js.job("frame").after_all(&jobs).schedule(|_| ()));
        sim.sleep_until(Nanos(frame * PERIOD.0));
    }
    Ok(())
}

fn spent(report: &SimReport) -> Spent {
    let clusters = &report.clusters;
    let joules: u64 = clusters.iter().map(|cluster| cluster.microjoules).sum();
    let hottest = clusters
        .iter()
        .filter_map(|cluster| cluster.hottest_millidegrees)
        .max();
    let busy = || clusters.iter().flat_map(|cluster| &cluster.busy);
    let time: f64 = busy().map(|&(_, time)| time.0 as f64).sum();
    let cycles: f64 = busy()
        .map(|&(khz, time)| f64::from(khz) * time.0 as f64)
        .sum();
    Spent {
        millijoules: joules as f64 / 1e3 / report.now.as_secs_f64(),
        degrees: hottest.map_or(f64::NAN, |hottest| hottest as f64 / 1e3),
        mhz: cycles / time / 1e3,
    }
}
