//! How many steps a second the simulator takes: four threads that add to one word, and four that lock, park
//! and charge, in orders that look for errors; and threads that count on machines with costs. Prints one line
//! for each; an argument chooses those whose names contain it.
//!
//! On a machine that is not quiet, what valgrind counts says more than a clock:
//! `valgrind --tool=callgrind target/release/examples/sim_speed ryzen`.

use std::sync::Arc;
use std::time::Instant;

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering, Parker, Platform, Thread, ThreadSpec};
use sim::{Machine, Order, Sim, SimConfig};

const RUNS: u64 = 200;

fn adds(sim: Sim) {
    let word = Arc::new(<Sim as Memory>::AtomicU64::new(0));
    with_four_threads(&sim, move || {
        for _ in 0..5_000 {
            word.fetch_add(1, Ordering::Relaxed);
        }
    });
}

fn waits(sim: Sim) {
    let lock = Arc::new(<Sim as Memory>::Lock::new(0u64));
    let parker = Arc::new(sim.parker());
    let theirs = sim.clone();
    with_four_threads(&sim, move || {
        let mine = theirs.parker();
        for round in 0..500 {
            lock.with(|n| {
                *n += 1;
                theirs.now();
            });
            theirs.charge(Nanos(round));
            parker.unpark();
            mine.park(theirs.now() + Nanos(10));
        }
    });
}

fn with_four_threads(sim: &Sim, body: impl Fn() + Clone + Send + 'static) {
    let spawn = |_| {
        sim.spawn(ThreadSpec::default(), Box::new(body.clone()))
            .unwrap()
    };
    let threads: Vec<_> = (0..4).map(spawn).collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// Threads, one to a CPU of a machine with costs, that add to words of their own and now and then to one
/// that all share: steps with the model of cache lines on.
fn counts(sim: Sim) {
    let shared = Arc::new(<Sim as Memory>::AtomicU64::new(0));
    let cpus = sim.topology().effective_parallelism();
    let body = move || {
        let own = <Sim as Memory>::AtomicU64::new(0);
        for step in 0..1_000_000 / cpus {
            let word = if step % 64 == 0 { &*shared } else { &own };
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    let spawn = |_| {
        let spec = ThreadSpec::default();
        sim.spawn(spec, Box::new(body.clone())).unwrap()
    };
    let threads: Vec<_> = (0..cpus).map(spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn main() {
    for (name, program) in [("adds", adds as fn(Sim)), ("waits", waits)] {
        for order in [Order::Random, Order::Pct { depth: 3 }] {
            let config = |seed| SimConfig::new(seed).with_order(order);
            report(&format!("{name} {order:?}"), RUNS, config, program);
        }
    }
    for machine in ["vm-2", "apple-m1", "ryzen-3950x"] {
        let hardware = Machine::named(machine).unwrap();
        let config = |seed| SimConfig::on(hardware.clone(), "eevdf-6.18", seed);
        report(&format!("counts on {machine}"), 5, config, counts);
    }
}

fn report(name: &str, runs: u64, config: impl Fn(u64) -> SimConfig, program: fn(Sim)) {
    if std::env::args()
        .nth(1)
        .is_some_and(|part| !name.contains(&part))
    {
        return;
    }
    let begin = Instant::now();
    let run = |seed| Sim::run(config(seed), program).expect_finished().steps;
    let steps: u64 = (0..runs).map(run).sum();
    let rate = steps as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{name}: {runs} runs, {steps} steps, {rate:.1} million steps a second");
}
