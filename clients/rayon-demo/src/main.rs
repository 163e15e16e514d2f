//! Programs in rayon's words. `rayon-demo STEPS` runs each of them for so many steps and prints a line for
//! each: its name, a digest of what it computed, and the time of every step in nanoseconds.
//!
//! The digest does not depend on the threads: two builds of this program are compared by it.

mod life;
mod nbody;
mod numbers;
mod sorting;
mod tree;

use std::time::Instant;

/// A program: what one step does. It returns something of what it computed.
type Step = Box<dyn FnMut() -> u64>;

fn main() {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok());
    let Some(steps @ 1..) = steps else {
        eprintln!("usage: rayon-demo STEPS (a number of steps for each program, at least 1)");
        std::process::exit(2);
    };
    let programs: [(&str, Step); 7] = [
        ("join", Box::new(tree::fibonacci)),
        ("quicksort", Box::new(sorting::quicksort)),
        ("par_sort", Box::new(sorting::by_rayon)),
        ("nbody", nbody::program()),
        ("life", life::program()),
        ("scope", Box::new(tree::scopes)),
        ("sums", Box::new(numbers::sums)),
    ];
    for (name, mut step) in programs {
        // The first step finds threads that have not begun, and memory that was never touched.
        let mut digest = step();
        let times = (0..steps).map(|_: u32| {
            let begin = Instant::now();
            digest = digest.rotate_left(7) ^ step();
            begin.elapsed().as_nanos().to_string()
        });
        let times: Vec<String> = times.collect();
        println!("{name} {digest:016x} {}", times.join(" "));
    }
}
