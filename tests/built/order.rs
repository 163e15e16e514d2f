//! Goal: a graph that begins jobs in the order of what hangs on them does so, at any time and on any thread;
//! it allocates nothing for it; and what holds up the rest is helped with first. Method: simulated threads,
//! on which bodies take exactly their time, and the times at which bodies began and ended; random graphs,
//! judged by their edges and times alone.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event::Nanos;
use paceline::{Builder, BuiltGraph, Grain, GraphNode, JobSystem, Lane};
use platform::{Os, Platform};
use sim::{Machine, Sim, SimConfig};
use testkit::Counted;

use crate::support::{Random, allocations, each_seed};

/// Jobs with their times, each after some of those before it.
struct Jobs {
    times: Vec<u64>,
    after: Vec<Vec<usize>>,
}

/// When a body ran, and which it was.
#[derive(Clone, Copy)]
struct Ran {
    begin: u64,
    end: u64,
    job: usize,
}

impl Jobs {
    fn random(random: &mut Random) -> Jobs {
        let count = 5 + random.below(40);
        let edges = *random.pick(&[2, 5, 15]);
        let mut jobs = Jobs {
            times: Vec::new(),
            after: Vec::new(),
        };
        for job in 0..count {
            jobs.times.push(10_000 + 1_000 * random.below(200) as u64);
            let after = (0..job).filter(|_| random.chance(edges));
            jobs.after.push(after.collect());
        }
        jobs
    }

    /// The time of each job and of the longest way behind it.
    fn ahead(&self) -> Vec<u64> {
        let mut ahead = self.times.clone();
        for job in (0..self.times.len()).rev() {
            for &before in &self.after[job] {
                ahead[before] = ahead[before].max(self.times[before] + ahead[job]);
            }
        }
        ahead
    }

    /// Runs the graph until the order is learned, and once more.
    fn run(&self, sim: &Sim, workers: usize) -> Vec<Ran> {
        let builder = Builder::with_platform(sim.clone()).workers(workers);
        let js = builder.build().unwrap();
        let ran: Arc<Mutex<Vec<Ran>>> = Arc::default();
        let mut graph = js.graph("jobs");
        let mut nodes: Vec<GraphNode> = Vec::new();
        for (job, &time) in self.times.iter().enumerate() {
            let after = self.after[job].iter().map(|&before| nodes[before]);
            let after: Vec<_> = after.collect();
            let (sim, ran) = (sim.clone(), ran.clone());
            nodes.push(graph.job("job").after_all(after).run(move |cx| {
                let begin = sim.time().0;
                cx.work(Nanos(time));
                let end = sim.time().0;
                ran.lock().unwrap().push(Ran { begin, end, job });
            }));
        }
        let mut graph = graph.build();
        graph.critical_first(true);
        for _ in 0..6 {
            ran.lock().unwrap().clear();
            graph.run(&mut ());
        }
        ran.lock().unwrap().clone()
    }

    /// The jobs that began although one of which more hangs had been ready for a while.
    fn out_of_turn(&self, ran: &[Ran], a_while: u64) -> usize {
        let ahead = self.ahead();
        let mut by_job = vec![None; self.times.len()];
        for ran in ran {
            by_job[ran.job] = Some(*ran);
        }
        let by_job: Vec<Ran> = by_job.into_iter().map(|ran| ran.unwrap()).collect();
        let ready = |job: usize| {
            let ends = self.after[job].iter().map(|&before| by_job[before].end);
            ends.max().unwrap_or(0)
        };
        // Times within a sixteenth of each other may count as equal.
        let is_passed_over = |one: &Ran, other: usize| {
            let less = ahead[one.job] + ahead[one.job] / 16 < ahead[other];
            less && ready(other) + a_while < one.begin && one.begin < by_job[other].begin
        };
        let jobs = 0..self.times.len();
        by_job
            .iter()
            .filter(|one| jobs.clone().any(|other| is_passed_over(one, other)))
            .count()
    }
}

/// Goal: on one thread, and on several, no job goes before one of which more hangs. Method: random graphs. On
/// one thread no time may pass between; on several a thread may have chosen already, and a worker takes one
/// job in 61 from elsewhere.
#[test]
fn no_job_goes_before_one_of_which_more_hangs() {
    let (jobs, out_of_turn) = (AtomicUsize::new(0), AtomicUsize::new(0));
    each_seed("built::order::no_job_goes_before", 300, |seed| {
        let mut random = Random::new(seed ^ 0x0dde_0000);
        let graph = Jobs::random(&mut random);
        let workers = random.below(4);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let (told, graph) = (ran.clone(), Arc::new(graph));
        let again = graph.clone();
        let machine = Machine::named("ryzen-5800x").expect("it is in the library");
        let config = SimConfig::on(machine, "eevdf-6.18", seed);
        let report = Sim::run(config, move |sim| {
            *told.lock().unwrap() = again.run(&sim, workers);
        });
        report.expect_finished();
        let ran = ran.lock().unwrap();
        let a_while = if workers == 0 { 0 } else { 5_000 };
        let found = graph.out_of_turn(&ran, a_while);
        assert!(workers > 0 || found == 0, "{found} jobs, seed {seed}");
        jobs.fetch_add(graph.times.len(), Relaxed);
        out_of_turn.fetch_add(found, Relaxed);
    });
    let (jobs, out_of_turn) = (jobs.into_inner(), out_of_turn.into_inner());
    println!("{out_of_turn} of {jobs} jobs began out of turn");
    assert!(out_of_turn * 61 <= jobs, "{out_of_turn} of {jobs}");
}

/// Goal: a job that holds up the rest gets helpers for its loop before others are begun. Method: a chain of
/// loops and one long job, beside as much other work, on four simulated threads: within a tenth of the least
/// time. If helpers come when there is nothing else to do, there is nothing left to do beside the last job.
#[test]
fn a_loop_that_holds_up_the_rest_is_helped_with() {
    const LOOPS: usize = 4;
    const PIECES: usize = 40;
    const SINGLES: usize = 80;
    const PIECE: Nanos = Nanos(40_000);
    let machine = Machine::named("ryzen-5800x").expect("it is in the library");
    let times: Arc<Mutex<Vec<u64>>> = Arc::default();
    let told = times.clone();
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", 1), move |sim| {
        let js = Builder::with_platform(sim.clone()).workers(3).build();
        let js = js.unwrap();
        let mut graph = js.graph("frame");
        let first = graph.job("first").run(|cx| cx.work(PIECE));
        for _ in 0..SINGLES {
            let single = graph.job("single").after(first);
            single.run(|cx| cx.work(Nanos(2 * PIECE.0)));
        }
        let mut last = first;
        for _ in 0..LOOPS {
            last = graph.job("loop").after(last).run(|cx| {
                cx.parallel_for(0..PIECES, Grain::Auto, |part, cx| {
                    cx.work(Nanos(PIECE.0 * part.len() as u64));
                });
            });
        }
        let last = graph.job("last").after(last);
        last.run(|cx| cx.work(Nanos(PIECE.0 * PIECES as u64)));
        let mut graph = graph.build();
        graph.critical_first(true);
        for _ in 0..30 {
            let begin = sim.time();
            graph.run(&mut ());
            told.lock().unwrap().push((sim.time() - begin).0);
        }
    });
    report.expect_finished();
    let mut times = times.lock().unwrap().split_off(10);
    times.sort_unstable();
    let least = (LOOPS * PIECES + PIECES + 2 * SINGLES) as u64 * PIECE.0 / 4;
    let median = times[times.len() / 2] as f64 / least as f64;
    println!("{median:.3} of the least time");
    assert!(median <= 1.1, "{median:.3}");
}

/// Goal: a frame that waits for a run has the ready jobs of the run go before frame jobs that come later.
/// Method: a worker is held while the thread of the frame waits and is in the middle of one job of the run;
/// frame jobs become ready; then the worker goes on. What it begins first.
#[test]
fn a_frame_that_waits_raises_the_ready_jobs_of_a_run() {
    let log: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let told = log.clone();
    let report = Sim::run(SimConfig::new(1), move |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(1);
        let js = Arc::new(builder.build().unwrap());
        let mut graph = js.graph("frame");
        let begun = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let (begun, told) = (begun.clone(), told.clone());
            graph.job("node").run(move |cx| {
                begun.fetch_add(1, Relaxed);
                told.lock().unwrap().push("node");
                cx.work(Nanos::from_micros(500));
            });
        }
        let mut graph = graph.build();
        graph.critical_first(true);
        (0..4).for_each(|_| graph.run(&mut ()));
        begun.store(0, Relaxed);
        let (held, seen, frames) = (Arc::new(AtomicUsize::new(0)), begun.clone(), told.clone());
        let holds = held.clone();
        js.schedule(move |cx| {
            holds.store(1, Relaxed);
            while seen.load(Relaxed) == 0 {
                cx.work(Nanos::from_micros(5));
            }
            for _ in 0..3 {
                let frames = frames.clone();
                let job = cx.job("other").lane(Lane::Frame);
                job.schedule(move |_| frames.lock().unwrap().push("other"));
            }
            frames.lock().unwrap().clear();
        });
        while held.load(Relaxed) == 0 {
            sim.sleep_until(sim.time() + Nanos::from_micros(5));
        }
        let started = js.start(graph, Box::new(()));
        js.in_lane(Lane::Frame, || drop(started.wait()));
    });
    report.expect_finished();
    let log = log.lock().unwrap();
    assert_eq!((log.first(), log.len()), (Some(&"node"), 6), "{log:?}");
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn fan<P: Platform>(js: &JobSystem<P>, width: usize) -> BuiltGraph<'static, (), P> {
    let mut graph = js.graph("fan");
    let first = graph.job("first").run(|_| spin(Duration::from_micros(20)));
    for _ in 0..width {
        let wide = graph.job("wide").after(first);
        wide.run(|_| spin(Duration::from_micros(20)));
    }
    graph.build()
}

/// Goal: the order costs two locks a job at most and no allocation, and nothing at all when it is switched
/// off again. Method: a job system without workers, on which everything is counted exactly.
#[test]
fn the_order_costs_two_locks_a_job() {
    const WIDTH: usize = 50;
    let js = Builder::with_platform(Counted(Os)).workers(0).build();
    let js = js.unwrap();
    let mut graph = fan(&js, WIDTH);
    let counted = |graph: &mut BuiltGraph<'static, (), _>| {
        for _ in 0..5 {
            graph.run(&mut ());
        }
        Counted::during(|| allocations::during(|| graph.run(&mut ())))
    };
    let ((_, before), plain) = counted(&mut graph);
    graph.critical_first(true);
    let ((_, allocated), ranked) = counted(&mut graph);
    graph.critical_first(false);
    let ((_, after), again) = counted(&mut graph);
    println!("{plain:?}, in order {ranked:?}, switched off {again:?}");
    assert_eq!((before, allocated, after), (0, 0, 0));
    let locks = 2 * (WIDTH as u64 + 1);
    assert!((1..=locks).contains(&ranked.locks), "{ranked:?}");
    assert_eq!((plain.locks, again.locks), (0, 0));
    assert_eq!(plain.rmws, again.rmws);
}

/// Goal: the order is that of the times of late. Method: two chains on one simulated thread, of which first
/// the one and later the other takes longer; which first job began first in each run.
#[test]
fn the_order_follows_the_times() {
    const RUNS: usize = 60;
    let began: Arc<Mutex<Vec<usize>>> = Arc::default();
    let told = began.clone();
    let report = Sim::run(SimConfig::new(1), move |sim| {
        let js = Builder::with_platform(sim).workers(0).build().unwrap();
        let run = Arc::new(AtomicUsize::new(0));
        let mut graph = js.graph("chains");
        for chain in 0..2_usize {
            let told = told.clone();
            let first = graph.job("first").run(move |cx| {
                told.lock().unwrap().push(chain);
                cx.work(Nanos(50_000));
            });
            let run = run.clone();
            graph.job("second").after(first).run(move |cx| {
                let is_long = (run.load(Relaxed) < RUNS / 2) == (chain == 0);
                cx.work(Nanos(if is_long { 200_000 } else { 20_000 }));
            });
        }
        let mut graph = graph.build();
        graph.critical_first(true);
        for number in 0..RUNS {
            run.store(number, Relaxed);
            graph.run(&mut ());
        }
    });
    report.expect_finished();
    let first: Vec<usize> = began.lock().unwrap().chunks(2).map(|run| run[0]).collect();
    println!("{first:?}");
    assert!(first[2..RUNS / 2].iter().all(|&chain| chain == 0));
    assert!(first[RUNS - 10..].iter().all(|&chain| chain == 1));
}
