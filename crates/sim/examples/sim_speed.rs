//! How many steps a second the simulated platform takes: four threads that add to one word, and
//! four that lock, park and charge. Prints one line for each program and order.

use std::sync::Arc;
use std::time::Instant;

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering, Parker, Platform, Thread, ThreadSpec};
use sim::{Order, Sim, SimConfig};

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

fn main() {
    for (name, program) in [("adds", adds as fn(Sim)), ("waits", waits)] {
        for order in [Order::Random, Order::Pct { depth: 3 }] {
            let begin = Instant::now();
            let steps: u64 = (0..RUNS)
                .map(|seed| {
                    let config = SimConfig::new(seed).with_order(order);
                    Sim::run(config, program).expect_finished().steps
                })
                .sum();
            let seconds = begin.elapsed().as_secs_f64();
            let rate = steps as f64 / seconds / 1e6;
            println!(
                "{name} {order:?}: {RUNS} runs, {steps} steps, {rate:.1} million steps a second"
            );
        }
    }
}
