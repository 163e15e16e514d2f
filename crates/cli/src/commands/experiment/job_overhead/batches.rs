//! Jobs one after the other for workers that sleep: what signals cost the thread that schedules them, what
//! batches save, and how many wake-ups are for nothing.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use paceline::{Builder, Stats, WaitPolicy};
use platform::{Atomic, Memory, Ordering, Padded, Platform, Thread, ThreadSpec};
use sim::sync::Semaphore;
use sim::{Sim, SimConfig};

use super::subject::{LINES, MACHINE, POLICY, machine};
use super::wakes::WORKERS;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&WORKERS, &JOBS, &LINES];
const JOBS: ChosenValue = ChosenValue {
    name: "batch",
    about: "jobs that are scheduled one after the other",
    unit: ValueUnit::Of("jobs"),
    chosen: 32.0,
    others: &[2.0, 8.0, 128.0],
    why: "two for each worker",
};

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let [single, batched, chained, paceline, _] = batches(effort, findings)?;
    findings.claims.extend([
        Claim::source(
            "001-h",
            "Workers that wake each other take the cost of signalling off the main thread, from 2021.3 on",
            "2022.2 job scheduler, last paragraph",
        )
        .is(Expect::LessThan(single.main), chained.main, "ns of the main thread a job")
        .note("against a semaphore that is posted for each job, as in 2017.3"),
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
        .is(Expect::AtMost(single.useless), batched.useless, "useless wake-ups of all jobs"),
        Claim::ours(
            "001-w",
            "If no worker is woken while another one looks for work, few are, even if each job is signalled",
        )
        .is(Expect::AtMost(single.sent / 2.0), paceline.sent, "wake-ups of all jobs")
        .note("Paceline, flushed after each job, against the semaphore posted for each"),
    ]);
    Ok(())
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
    /// As in 2021.3: posted for each job, but not while a worker that was woken has found none yet; a
    /// worker that finds one and sees another one wakes the next.
    Chained,
    /// Flushed after each job, or after all of them.
    Paceline { batch: bool },
}

const JOB: Nanos = Nanos::from_micros(1);
/// Long enough for all of them, and for workers to fall asleep.
const PAUSE: Nanos = Nanos::from_millis(1);

fn batches(effort: &Effort, findings: &mut Findings) -> Result<[Batch; 5], Failure> {
    let crew = Crew {
        workers: effort.value(&WORKERS) as usize,
        jobs: effort.value(&JOBS) as u32,
        rounds: effort.of(5, 50),
    };
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
        (
            "a semaphore, workers wake each other",
            "each job",
            Handover::Chained,
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
        let config = SimConfig::on(machine(effort), POLICY, effort.seed);
        let report = Sim::run(config, |sim| {
            found = match way {
                Handover::Semaphore { .. } | Handover::Chained => by_semaphore(&sim, way, crew),
                Handover::Paceline { batch } => by_paceline(&sim, batch, crew),
            };
        });
        lab::sound("batches", &report)?;
        found
    })?;
    let title = format!(
        "{} jobs of {JOB} for {} sleeping workers on {MACHINE}",
        crew.jobs, crew.workers
    );
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
    batches.try_into().map_err(|_| Failure::failed("five ways"))
}

/// Who does how many jobs, and how often.
#[derive(Clone, Copy)]
struct Crew {
    workers: usize,
    jobs: u32,
    rounds: u32,
}

/// The data that the threads of [`by_semaphore`] share.
struct SemaphoreShared {
    /// Whether workers wake each other.
    is_chained: bool,
    /// A worker was woken and has found nothing yet.
    is_woken: Padded<Word>,
    signal: Semaphore,
    jobs: Padded<Word>,
    is_over: Word,
    wakes: Word,
    useless: Word,
}

type Word = <Sim as Memory>::AtomicU64;

fn by_semaphore(sim: &Sim, way: Handover, crew: Crew) -> Result<Batch, Failure> {
    let word = || Sim::on_own_lines(|| Word::new(0));
    let shared = Arc::new(SemaphoreShared {
        is_chained: matches!(way, Handover::Chained),
        is_woken: Padded(word()),
        signal: Semaphore::new(sim, 0),
        jobs: Padded(word()),
        is_over: word(),
        wakes: word(),
        useless: word(),
    });
    let workers = (0..crew.workers).map(|number| {
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
    for _ in 0..crew.rounds {
        let rest = sim.now() + PAUSE;
        sim.sleep_until(rest);
        let begin = sim.now();
        for _ in 0..crew.jobs {
            // Release, partner: the Acquire of the thread that takes the job.
            shared.jobs.fetch_add(1, Ordering::Release);
            match way {
                Handover::Chained => shared.wake_one(),
                Handover::Semaphore { batch: true } => {}
                _ => shared.signal.post(),
            }
        }
        if let Handover::Semaphore { batch: true } = way {
            for _ in 0..crew.workers.min(crew.jobs as usize) {
                shared.signal.post();
            }
        }
        spent += sim.now() - begin;
    }
    let rest = sim.now() + PAUSE;
    sim.sleep_until(rest);
    // Relaxed, here and below: the workers sleep, and the semaphore orders the end.
    let count = |word: &Word| word.load(Ordering::Relaxed) as f64 / f64::from(crew.rounds);
    let (sent, useless) = (count(&shared.wakes), count(&shared.useless));
    shared.is_over.store(1, Ordering::Relaxed);
    (0..crew.workers).for_each(|_| shared.signal.post());
    for worker in workers {
        worker
            .join()
            .map_err(|_| Failure::failed("a worker panicked"))?;
    }
    Ok(Batch {
        main: spent.0 as f64 / f64::from(crew.rounds * crew.jobs),
        sent,
        useless,
    })
}

impl SemaphoreShared {
    /// Wakes a worker, unless one was woken that has found nothing yet.
    fn wake_one(&self) {
        // AcqRel, partner: the store in `work`: whoever finds it set has the other one see the job.
        if self.is_woken.swap(1, Ordering::AcqRel) == 0 {
            self.signal.post();
        }
    }
}

/// The life of a worker: once woken, it takes jobs until there are none.
fn work(sim: &Sim, shared: &SemaphoreShared) {
    loop {
        shared.signal.take();
        if shared.is_over.load(Ordering::Relaxed) != 0 {
            return;
        }
        // Release, partner: the swap in `wake_one`.
        shared.is_woken.store(0, Ordering::Release);
        let mut done = 0;
        while take_one(&shared.jobs) {
            // Relaxed: a hint; the next one looks itself.
            if shared.is_chained && shared.jobs.load(Ordering::Relaxed) > 0 {
                shared.wake_one();
            }
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
pub(super) fn take_one(jobs: &Word) -> bool {
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

fn by_paceline(sim: &Sim, batch: bool, crew: Crew) -> Result<Batch, Failure> {
    let js = Builder::with_platform(sim.clone())
        .workers(crew.workers)
        .wait_policy(WaitPolicy::Passive);
    let js = js
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let mut spent = Nanos::ZERO;
    let mut before = Stats::default();
    // The first round starts threads.
    for round in 0..=crew.rounds {
        if round == 1 {
            (spent, before) = (Nanos::ZERO, js.stats());
        }
        let begin = sim.now();
        for _ in 0..crew.jobs {
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
    let rounds = f64::from(crew.rounds);
    Ok(Batch {
        main: spent.0 as f64 / rounds / f64::from(crew.jobs),
        sent: stats.wakes_sent as f64 / rounds,
        useless: stats.wakes_useless as f64 / rounds,
    })
}
