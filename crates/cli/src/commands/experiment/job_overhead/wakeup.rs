//! One wake-up, drawn: from the call that schedules a job to the worker that has run it.

use std::sync::{Arc, Mutex, PoisonError};

use console::Failure;
use event::Nanos;
use paceline::{Builder, WaitPolicy};
use platform::{Atomic, Memory, Ordering, Padded, Platform, Thread, ThreadSpec};
use sim::sync::Semaphore;
use sim::{Sim, SimConfig, SimReport};

use super::subject::{MACHINE, POLICY};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{PieceFill, Plot, PlotLane, PlotPiece, PlotShape};
use crate::commands::experiment::timeline::{Doing, stints};

/// How long the workers have slept: their cores are in the first of their sleep states.
const ASLEEP: Nanos = Nanos::from_micros(60);
/// What is drawn.
const SHOWN: Nanos = Nanos::from_micros(20);
const JOB: Nanos = Nanos::from_micros(1);
/// So small that one worker has run both before the other one is awake.
const SMALL: Nanos = Nanos(300);

/// Jobs for workers that sleep.
#[derive(Clone, Copy)]
struct WakeUpCase {
    name: &'static str,
    jobs: u32,
    job: Nanos,
    by: WakeUpBy,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WakeUpBy {
    /// As in 2017.3, posted after each job, or …
    Semaphore,
    /// … after all of them.
    Batch,
    Paceline,
}

const CASES: [WakeUpCase; 4] = {
    const fn of(name: &'static str, jobs: u32, job: Nanos, by: WakeUpBy) -> WakeUpCase {
        WakeUpCase {
            name,
            jobs,
            job,
            by,
        }
    }
    [
        of("one job", 1, JOB, WakeUpBy::Semaphore),
        of("one job, paceline", 1, JOB, WakeUpBy::Paceline),
        of("two small jobs", 2, SMALL, WakeUpBy::Semaphore),
        of("two in a batch", 2, JOB, WakeUpBy::Batch),
    ]
};

/// From when to when a thread did one thing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Noted {
    /// As in the simulator's report.
    thread: usize,
    begin: Nanos,
    end: Nanos,
}

/// What the threads say of themselves.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Noted>>>);

impl Notes {
    /// Does this, and notes when the calling thread did.
    fn note(&self, sim: &Sim, run: impl FnOnce()) {
        let begin = sim.time();
        run();
        let noted = Noted {
            thread: sim.thread_id() as usize - 1,
            begin,
            end: sim.time(),
        };
        self.all().push(noted);
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Noted>> {
        // Simulated threads take turns: none waits for it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was seen of one case.
struct WakeUpSeen {
    report: SimReport,
    /// The main thread schedules and signals.
    scheduled: Noted,
    jobs: Vec<Noted>,
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seen = lab::each("wake-ups", &CASES, |case| case.run(effort.seed))?;
    let title =
        format!("From a job to its worker on {MACHINE}, whose workers have slept for {ASLEEP}");
    let columns = [
        "jobs",
        "the main thread schedules and signals",
        "until the worker runs",
        "it finds the job",
        "the job",
        "from the call to its end",
        "workers woken",
        "for nothing",
    ];
    let mut table = Table::new(title, columns);
    let mut lanes = Vec::new();
    for (case, seen) in CASES.iter().zip(&seen) {
        table.row(seen.row(case)?);
        lanes.extend(seen.lanes(case));
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "wake-up",
        title: "From the call that schedules a job to the worker that has run it".into(),
        picture: PlotShape::Lanes {
            unit: "µs",
            lanes,
            marks: Vec::new(),
        },
    });
    Ok(())
}

impl WakeUpCase {
    fn run(&self, seed: u64) -> Result<WakeUpSeen, Failure> {
        let (main, jobs) = (Notes::default(), Notes::default());
        let mut done = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig {
            trace: true,
            ..SimConfig::on(lab::machine(MACHINE), POLICY, seed)
        };
        let report = Sim::run(config, |sim| {
            done = match self.by {
                WakeUpBy::Paceline => self.by_paceline(&sim, &main, &jobs),
                _ => self.by_semaphore(&sim, &main, &jobs),
            };
        });
        lab::sound("wake-ups", &report)?;
        done?;
        let scheduled = main.all().first().copied();
        let scheduled = scheduled.ok_or_else(|| Failure::failed("nothing was scheduled"))?;
        let jobs = jobs.all().clone();
        Ok(WakeUpSeen {
            report,
            scheduled,
            jobs,
        })
    }

    fn by_semaphore(&self, sim: &Sim, main: &Notes, jobs: &Notes) -> Result<(), Failure> {
        type Word = <Sim as Memory>::AtomicU64;
        struct Shared {
            left: Padded<Word>,
            is_over: Word,
            signal: Semaphore,
        }
        let word = || Sim::on_own_lines(|| Word::new(0));
        let shared = Arc::new(Shared {
            left: Padded(word()),
            is_over: word(),
            signal: Semaphore::new(sim, 0),
        });
        let length = self.job;
        let workers = (0..2).map(|number| {
            let (its, shared, jobs) = (sim.clone(), shared.clone(), jobs.clone());
            let spec = ThreadSpec {
                name: format!("worker {number}"),
                ..ThreadSpec::default()
            };
            let body = move || loop {
                shared.signal.take();
                // Relaxed: the semaphore orders it.
                if shared.is_over.load(Ordering::Relaxed) != 0 {
                    return;
                }
                while super::batches::take_one(&shared.left) {
                    jobs.note(&its, || its.charge(length));
                }
            };
            sim.spawn(spec, Box::new(body))
        });
        let workers: Result<Vec<_>, _> = workers.collect();
        let workers = workers.map_err(Failure::failed)?;
        sim.sleep_until(sim.now() + ASLEEP);
        main.note(sim, || {
            for _ in 0..self.jobs {
                // Release, partner: the Acquire of the thread that takes the job.
                shared.left.fetch_add(1, Ordering::Release);
                if self.by == WakeUpBy::Semaphore {
                    shared.signal.post();
                }
            }
            if self.by == WakeUpBy::Batch {
                for _ in 0..self.jobs {
                    shared.signal.post();
                }
            }
        });
        sim.sleep_until(sim.now() + ASLEEP);
        // Relaxed: the semaphore orders it.
        shared.is_over.store(1, Ordering::Relaxed);
        for _ in &workers {
            shared.signal.post();
        }
        for worker in workers {
            let ended = worker.join();
            ended.map_err(|_| Failure::failed("a worker panicked"))?;
        }
        Ok(())
    }

    fn by_paceline(&self, sim: &Sim, main: &Notes, jobs: &Notes) -> Result<(), Failure> {
        let js = Builder::with_platform(sim.clone()).workers(2);
        let js = js.wait_policy(WaitPolicy::Passive).build();
        let js = js.map_err(|error| Failure::failed(error.to_string()))?;
        // Threads begin, and so does what is done once.
        js.job("first").schedule(|_| ());
        js.flush();
        sim.sleep_until(sim.now() + ASLEEP);
        let length = self.job;
        main.note(sim, || {
            for _ in 0..self.jobs {
                let (its, jobs) = (sim.clone(), jobs.clone());
                js.job("job")
                    .schedule(move |cx| jobs.note(&its, || cx.work(length)));
            }
            js.flush();
        });
        sim.sleep_until(sim.now() + ASLEEP);
        Ok(())
    }
}

impl WakeUpSeen {
    /// What is drawn: from the call on, in µs.
    fn shown(&self, time: Nanos) -> f64 {
        (time.0 as f64 - self.scheduled.begin.0 as f64) / 1e3
    }

    fn window(&self) -> std::ops::Range<Nanos> {
        self.scheduled.begin..self.scheduled.begin + SHOWN
    }

    /// The workers that were woken: when each had a CPU.
    fn woken(&self) -> Vec<(usize, Nanos)> {
        let window = self.window();
        let all = stints(&self.report).into_iter();
        let starts = all.filter(|stint| {
            stint.thread > 0 && stint.doing != Doing::Ready && window.contains(&stint.begin)
        });
        starts.map(|stint| (stint.thread, stint.begin)).collect()
    }

    fn row(&self, case: &WakeUpCase) -> Result<[Cell; 8], Failure> {
        let missing = || Failure::failed(format!("{}: no worker ran it", case.name));
        let job = *self.jobs.first().ok_or_else(missing)?;
        let woken = self.woken();
        let start = woken.iter().find(|(thread, _)| *thread == job.thread);
        let (_, start) = *start.ok_or_else(missing)?;
        let idle = woken.iter().filter(|(thread, _)| {
            let ran = |job: &Noted| job.thread == *thread;
            !self.jobs.iter().any(ran)
        });
        let main = self.scheduled;
        Ok([
            case.name.into(),
            (main.end - main.begin).into(),
            (start - main.begin).into(),
            (job.begin - start).into(),
            (job.end - job.begin).into(),
            (job.end - main.begin).into(),
            (woken.len() as u64).into(),
            (idle.count() as u64).into(),
        ])
    }

    /// A lane for each thread.
    fn lanes(&self, case: &WakeUpCase) -> Vec<PlotLane> {
        let window = self.window();
        let all = stints(&self.report);
        let lane = |thread: usize| {
            let piece = |begin: Nanos, end: Nanos, name: &str, fill| PlotPiece {
                begin: self.shown(begin.max(window.start)),
                end: self.shown(end.min(window.end)),
                name: name.to_owned(),
                fill,
            };
            let mut pieces = Vec::new();
            for stint in all.iter().filter(|stint| stint.thread == thread) {
                if stint.end <= window.start || stint.begin >= window.end {
                    continue;
                }
                if stint.doing == Doing::Ready {
                    let wakes = piece(stint.begin, stint.end, "wakes", PieceFill::Kind(3));
                    pieces.push(wakes);
                    continue;
                }
                let (inner, name) = match thread {
                    0 => (std::slice::from_ref(&self.scheduled), "signals"),
                    _ => (&self.jobs[..], "runs"),
                };
                let mut since = stint.begin.max(window.start);
                let is_in = |noted: &&Noted| {
                    noted.thread == thread && noted.begin >= stint.begin && noted.end <= stint.end
                };
                for noted in inner.iter().filter(is_in) {
                    pieces.push(piece(since, noted.begin, "finds", PieceFill::Kind(1)));
                    let kind = if thread == 0 { 4 } else { 0 };
                    pieces.push(piece(noted.begin, noted.end, name, PieceFill::Kind(kind)));
                    since = noted.end;
                }
                let name = if thread == 0 { "" } else { "looks" };
                pieces.push(piece(since, stint.end, name, PieceFill::Kind(1)));
            }
            pieces.retain(|piece| piece.end > piece.begin);
            let who = match thread {
                0 => "main thread".to_owned(),
                _ => self.report.threads[thread].name.clone(),
            };
            PlotLane {
                name: format!("{}: {who}", case.name),
                pieces,
                result: String::new(),
            }
        };
        let threads = 0..self.report.threads.len().min(3);
        let lanes = threads.map(lane);
        lanes.filter(|lane| !lane.pieces.is_empty()).collect()
    }
}
