//! The article's `Add`: a loop with compare-and-swap, against fetch_add and a sum for each thread.

use std::sync::{Arc, Mutex, PoisonError};

use console::Failure;
use event::Nanos;
use platform::{Atomic, Memory, Ordering, Padded, Platform, Thread, ThreadSpec};
use sim::{Sim, SimConfig};

use super::subject::{MACHINE, POLICY, machine};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Line, Plot, PlotShape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SumMethod {
    CompareAndSwap,
    FetchAdd,
    OwnSums,
}

impl SumMethod {
    const ALL: [SumMethod; 3] = [
        SumMethod::CompareAndSwap,
        SumMethod::FetchAdd,
        SumMethod::OwnSums,
    ];

    fn name(self) -> &'static str {
        match self {
            SumMethod::CompareAndSwap => "compare-and-swap loop",
            SumMethod::FetchAdd => "fetch_add",
            SumMethod::OwnSums => "a sum for each thread",
        }
    }
}

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The time of an addition on one thread while others add, too; and how often a compare-and-swap failed, of
/// each addition.
struct Cost {
    nanos: f64,
    failed: f64,
}

fn add<M: Memory>(way: SumMethod, shared: &M::AtomicU64, own: &M::AtomicU64) -> u64 {
    match way {
        // Relaxed: a sum orders nothing.
        SumMethod::FetchAdd => drop(shared.fetch_add(1, Ordering::Relaxed)),
        SumMethod::OwnSums => own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
        SumMethod::CompareAndSwap => {
            let mut failed = 0;
            loop {
                let old = shared.load(Ordering::Relaxed);
                let swap =
                    shared.compare_exchange(old, old + 1, Ordering::Relaxed, Ordering::Relaxed);
                match swap {
                    Ok(_) => return failed,
                    Err(_) => failed += 1,
                }
            }
        }
    }
    0
}

fn cost(way: SumMethod, threads: usize, additions: u64, effort: &Effort) -> Result<Cost, Failure> {
    type Word = Padded<<Sim as Memory>::AtomicU64>;
    let word = || -> Word { Padded(Sim::on_own_lines(|| <Sim as Memory>::AtomicU64::new(0))) };
    // By thread. They take turns on one OS thread, so no thread ever waits for the lock.
    let took = Arc::new(Mutex::new(Vec::new()));
    let (mut sum, mut failed) = (0, 0);
    let config = SimConfig::on(machine(effort), POLICY, effort.seed);
    let report = Sim::run(config, |sim| {
        let shared: Arc<Word> = Arc::new(word());
        let own: Arc<Vec<Word>> = Arc::new((0..threads).map(|_| word()).collect());
        let failures = Arc::new(word());
        let start = Nanos::from_millis(1);
        let adders = (0..threads).map(|number| {
            let (shared, own, failures) = (shared.clone(), own.clone(), failures.clone());
            let (its_sim, took) = (sim.clone(), took.clone());
            let spec = ThreadSpec {
                name: format!("adder {number}"),
                ..ThreadSpec::default()
            };
            let body = move || {
                its_sim.sleep_until(start);
                let begin = its_sim.now();
                let mut failed = 0;
                for _ in 0..additions {
                    failed += add::<Sim>(way, &shared, &own[number]);
                }
                let length = (its_sim.now() - begin).0 as f64;
                took.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(length);
                failures.fetch_add(failed, Ordering::Relaxed);
            };
            sim.spawn(spec, Box::new(body))
        });
        let adders: Vec<_> = adders.collect();
        for adder in adders.into_iter().flatten() {
            // A thread that panics ends the run, and the report says so.
            let _ = adder.join();
        }
        let read = |word: &Word| word.load(Ordering::Relaxed);
        sum = read(&shared) + own.iter().map(read).sum::<u64>();
        failed = read(&failures);
    });
    lab::sound("sums", &report)?;
    if sum != additions * threads as u64 {
        return Err(Failure::failed(format!(
            "{} lost additions: {sum}",
            way.name()
        )));
    }
    let took = took.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Cost {
        nanos: lab::mean(&took) / additions as f64,
        failed: failed as f64 / sum as f64,
    })
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let additions = effort.of(1_000, 20_000);
    let all: Vec<(usize, SumMethod)> = THREADS
        .into_iter()
        .flat_map(|threads| SumMethod::ALL.map(|way| (threads, way)))
        .collect();
    let costs = lab::each("sums", &all, |&(threads, way)| {
        cost(way, threads, additions, effort)
    })?;
    let columns = [
        "threads",
        "compare-and-swap loop, ns",
        "failed, of each",
        "fetch_add, ns",
        "a sum for each thread, ns",
    ];
    let title =
        format!("The time of an addition on a thread of {MACHINE}, {additions} for each thread");
    let mut table = Table::new(title, columns);
    for (threads, costs) in THREADS.iter().zip(costs.chunks(SumMethod::ALL.len())) {
        let [swap, fetch, own] = costs else { continue };
        table.row([
            (*threads as u64).into(),
            swap.nanos.into(),
            swap.failed.into(),
            fetch.nanos.into(),
            own.nanos.into(),
        ]);
    }
    findings.tables.push(table);
    let line = |way: SumMethod| Line {
        name: way.name().to_owned(),
        points: all
            .iter()
            .zip(&costs)
            .filter(|((_, other), _)| *other == way)
            .map(|((threads, _), cost)| (*threads as f64, cost.nanos))
            .collect(),
    };
    findings.plots.push(Plot {
        file: "sums",
        title: "The time of an addition to one sum, for each thread".into(),
        picture: PlotShape::Lines {
            x: "threads",
            y: "ns",
            lines: SumMethod::ALL.map(line).into(),
            level: None,
        },
    });
    let of = |threads, way| {
        let found = all
            .iter()
            .zip(&costs)
            .find(|(trial, _)| **trial == (threads, way));
        found.map_or(f64::NAN, |(_, cost)| cost.nanos)
    };
    findings.claims.extend(claims(&of));
    Ok(())
}

const PLACE: &str = "Compare-and-swap overhead, the example Add";

fn claims(of: &dyn Fn(usize, SumMethod) -> f64) -> Vec<Claim> {
    let mut claims = claims_of_the_loop(of);
    claims.extend(claims_of_others(of));
    claims
}

fn claims_of_the_loop(of: &dyn Fn(usize, SumMethod) -> f64) -> Vec<Claim> {
    vec![
        Claim::source(
            "001-l",
            "The more threads loop, the longer it takes each",
            PLACE,
        )
        .is(
            Expect::MoreThan(of(8, SumMethod::CompareAndSwap)),
            of(32, SumMethod::CompareAndSwap),
            "ns an addition, 32 threads",
        )
        .note("against 8 threads"),
        Claim::source(
            "001-m",
            "One thread leaves the loop at a time: additions are serialised",
            PLACE,
        )
        .is(
            Expect::AtLeast(32.0),
            of(32, SumMethod::CompareAndSwap) / of(1, SumMethod::CompareAndSwap),
            "times one thread's time",
        )
        .note(format!(
            "32 threads; one after the other it would be 32 times at least; fetch_add takes {:.0} times",
            of(32, SumMethod::FetchAdd) / of(1, SumMethod::FetchAdd)
        )),
        Claim::source(
            "001-n",
            "Moving the line costs much more than the addition",
            PLACE,
        )
        .is(
            Expect::AtLeast(5.0),
            of(2, SumMethod::CompareAndSwap) / of(1, SumMethod::CompareAndSwap),
            "times one thread's time, 2 threads",
        )
        .or_else("two threads of neighbouring cores; across groups of cores it is more"),
    ]
}

/// Additions without a loop.
fn claims_of_others(of: &dyn Fn(usize, SumMethod) -> f64) -> Vec<Claim> {
    vec![
        Claim::source(
            "001-o",
            "Wait-free algorithms let all threads go on",
            "Compare-and-swap overhead, second paragraph",
        )
        .is(
            Expect::LessThan(of(32, SumMethod::CompareAndSwap)),
            of(32, SumMethod::FetchAdd),
            "ns an addition by fetch_add, 32 threads",
        ),
        Claim::source(
            "001-oa",
            "… but are not always the fastest",
            "Compare-and-swap overhead, second paragraph",
        )
        .beyond(
            "one sum cannot show it: 001-o says which is the faster here, and the article names no case in \
             which a wait-free one is slower",
        ),
        Claim::ours(
            "001-p",
            "A sum for each thread costs the same for any number of threads",
        )
        .is(
            Expect::AtMost(3.0),
            of(32, SumMethod::OwnSums) / of(1, SumMethod::OwnSums),
            "times one thread's time",
        )
        .note("two threads share a core from 17 on"),
    ]
}
