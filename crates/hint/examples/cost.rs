//! What it costs to publish, and to read, on the machine at hand.
//!
//! `cargo run --release -p paceline-hint --example cost`. Counted exactly, without a clock:
//! `valgrind --tool=callgrind` with `wait`, `run` or `nothing` and the same number of rounds twice.

use std::hint::black_box;
use std::sync::Arc;

use event::Task;
use paceline_hint::{Page, Run, Slot, read_page};
use platform::{Atomic, Lane, Memory, Ordering, Os, Padded, Platform, Thread, ThreadSpec};

const ROUNDS: u64 = 10_000_000;
const PROCESS: u32 = 1;

fn main() {
    let page = Arc::new(Page::<Os>::unshared(255));
    let mut slot = page.slot(Task(1)).expect("there are slots");
    let mut arguments = std::env::args().skip(1);
    if let Some(what) = arguments.next() {
        let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
        let rounds = rounds.unwrap_or(ROUNDS);
        match what.as_str() {
            "wait" => waits(&mut slot, rounds),
            "run" => runs(&mut slot, rounds),
            _ => nothing(rounds),
        }
        return;
    }
    println!("an empty round: {} ns", time(|| nothing(ROUNDS)));
    print_both("", &mut slot);
    let stop = Arc::new(Padded(<Os as Memory>::AtomicU64::new(0)));
    let reader = {
        let (page, stop) = (page.clone(), stop.clone());
        let read = move || {
            while stop.0.load(Ordering::Relaxed) == 0 {
                let known = |_| Some(PROCESS);
                read_page::<Os>(PROCESS, page.words(), &known, &mut |entry| {
                    black_box(entry);
                });
            }
        };
        Os.spawn(ThreadSpec::default(), Box::new(read))
    };
    print_both(", while another thread reads on and on", &mut slot);
    stop.0.store(1, Ordering::Relaxed);
    let reader = reader.expect("there is a thread left");
    reader.join().expect("reading does not panic");
    let slots: Vec<_> = (2..=100).map(|tid| page.slot(Task(tid))).collect();
    let mut slots: Vec<_> = slots.into_iter().flatten().collect();
    for slot in &mut slots {
        slot.publish_wait(&[Task(1), Task(2)]);
    }
    let looks = ROUNDS / 1_000;
    let look = || {
        for _ in 0..looks {
            let known = |_| Some(PROCESS);
            black_box(read_page::<Os>(
                PROCESS,
                page.words(),
                &known,
                &mut |entry| {
                    black_box(entry);
                },
            ));
        }
    };
    let all = time(look) * ROUNDS as f64 / looks as f64;
    println!("a look at a page of 100 threads, 99 of which wait: {all:.0} ns");
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        let ask = || {
            for _ in 0..looks {
                black_box(paceline_hint::is_thread_of(
                    Task(std::process::id()),
                    std::process::id(),
                ));
            }
        };
        let all = time(ask) * ROUNDS as f64 / looks as f64;
        println!("to ask the kernel about a thread: {all:.0} ns");
    }
}

fn print_both(when: &str, slot: &mut Slot<Os>) {
    let wait = time(|| waits(slot, ROUNDS));
    println!("a wait with two threads, said and taken back{when}: {wait} ns");
    let run = time(|| runs(slot, ROUNDS));
    println!("what a thread runs, said and taken back{when}: {run} ns");
}

/// Nanoseconds for each of [`ROUNDS`], in the best of five runs.
fn time(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begin = Os.now();
        run();
        best = best.min((Os.now() - begin).0 as f64 / ROUNDS as f64);
    }
    (best * 100.0).round() / 100.0
}

#[inline(never)]
fn waits(slot: &mut Slot<Os>, rounds: u64) {
    for _ in 0..rounds {
        slot.publish_wait(black_box(&[Task(2), Task(3)]));
        slot.clear_wait();
    }
}

#[inline(never)]
fn runs(slot: &mut Slot<Os>, rounds: u64) {
    for _ in 0..rounds {
        slot.publish_run(black_box(Run {
            lane: Lane::Normal,
            deadline: None,
        }));
        slot.clear_run();
    }
}

#[inline(never)]
fn nothing(rounds: u64) {
    for _ in 0..rounds {
        black_box(&[Task(2), Task(3)]);
    }
}
