//! What a job and a loop cost more from C than from Rust: `cargo bench -p paceline-capi --bench cost`.
//!
//! Each round does the same work by both, one after the other, and they take turns at being first. So what is
//! said is the difference within a round, in the median of the rounds, with its quartiles: what else the
//! machine does comes to both. There are no workers: this thread makes jobs, and then runs them.
//!
//! `cargo bench -p paceline-capi --bench cost -- instructions` counts instead of timing, with valgrind: this
//! program runs under it with two numbers of batches, and what the further batches add is divided by what is
//! in them. It says the same on a machine that is busy.

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::zeroed;
use std::process::Command;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use paceline::{Builder, Grain, JobSystem};
use paceline_c::pl_status::PL_OK;
use paceline_c::*;

/// Jobs of a batch: few enough to stay in the caches.
const JOBS: usize = 512;
/// Loops of a batch, and the items of each.
const LOOPS: usize = 256;
const ITEMS: usize = 64;
const ROUNDS: usize = 4001;
const WARM_UP: usize = 200;
/// No batch takes so long.
const LONG: Duration = Duration::from_secs(60);

unsafe extern "C-unwind" fn job(_: *mut pl_context, data: *mut c_void) {
    // SAFETY: `data` is the counter of `main`, and all runs on one thread.
    unsafe { *data.cast::<u64>() += 1 };
}

unsafe extern "C-unwind" fn part(_: *mut pl_context, begin: usize, end: usize, data: *mut c_void) {
    // SAFETY: as above.
    unsafe { *data.cast::<u64>() += black_box(end - begin) as u64 };
}

/// The functions as C calls them: through a pointer, not inlined here.
type Schedule = unsafe extern "C" fn(*mut pl_system, *const pl_job_desc, *mut pl_job) -> pl_status;
type ParallelFor = unsafe extern "C" fn(*mut pl_system, *const pl_loop_desc) -> pl_status;

/// The counter, for closures that may go to other threads.
#[derive(Clone, Copy)]
struct Counter(*mut u64);

// SAFETY: there is one thread: the job systems have no workers.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

impl Counter {
    fn add(self, count: usize) {
        // SAFETY: as above.
        unsafe { *self.0 += count as u64 };
    }
}

fn c_system() -> *mut pl_system {
    let desc = pl_system_desc {
        size: size_of::<pl_system_desc>(),
        no_workers: 1,
        // SAFETY: zero is a value of each field.
        ..unsafe { zeroed() }
    };
    let mut system = null_mut();
    // SAFETY: the description is right.
    assert_eq!(unsafe { pl_system_create(&desc, &mut system) }, PL_OK);
    system
}

/// Nanoseconds for each of so many.
fn timed(count: usize, work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// Makes jobs and runs them: nanoseconds to make one, and to make and run one.
fn jobs_from_rust(js: &JobSystem, counter: Counter) -> [f64; 2] {
    let made = timed(JOBS, || {
        for _ in 0..JOBS {
            black_box(js.job("job").schedule(move |_| counter.add(1)));
        }
    });
    let ran = timed(JOBS, || {
        black_box(js.pump(LONG));
    });
    [made, made + ran]
}

fn jobs_from_c(system: *mut pl_system, counter: Counter) -> [f64; 2] {
    let schedule: Schedule = black_box(pl_schedule);
    let made = timed(JOBS, || {
        for _ in 0..JOBS {
            let desc = pl_job_desc {
                size: size_of::<pl_job_desc>(),
                name: c"job".as_ptr(),
                body: Some(job),
                data: counter.0.cast(),
                // SAFETY: zero is a value of each field.
                ..unsafe { zeroed() }
            };
            let mut made = 0;
            // SAFETY: the description is right, and the counter outlives the job.
            let status = unsafe { schedule(system, black_box(&desc), &mut made) };
            assert_eq!(status, PL_OK);
            black_box(made);
        }
    });
    let ran = timed(JOBS, || {
        // SAFETY: the job system was made.
        let status = unsafe { pl_pump(system, LONG.as_nanos() as u64, null_mut()) };
        assert_eq!(status, PL_OK);
    });
    [made, made + ran]
}

fn loops_from_rust(js: &JobSystem, counter: Counter) -> f64 {
    timed(LOOPS, || {
        for _ in 0..LOOPS {
            js.parallel_for(0..ITEMS, Grain::Auto, |part, _| {
                counter.add(black_box(part.len()));
            });
        }
    })
}

fn loops_from_c(system: *mut pl_system, counter: Counter) -> f64 {
    let parallel_for: ParallelFor = black_box(pl_parallel_for);
    timed(LOOPS, || {
        for _ in 0..LOOPS {
            let desc = pl_loop_desc {
                size: size_of::<pl_loop_desc>(),
                name: c"loop".as_ptr(),
                body: Some(part),
                data: counter.0.cast(),
                count: ITEMS,
                // SAFETY: zero is a value of each field.
                ..unsafe { zeroed() }
            };
            // SAFETY: the description is right, and the counter outlives the loop.
            assert_eq!(unsafe { parallel_for(system, black_box(&desc)) }, PL_OK);
        }
    })
}

/// The quartiles of some numbers.
fn quartiles(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| numbers[(numbers.len() - 1) * quarter / 4])
}

fn say(what: &str, bound: &str, rounds: &[(f64, f64)]) {
    let of = |which: fn(&(f64, f64)) -> f64| quartiles(rounds.iter().map(which).collect());
    let ([_, rust, _], [_, c, _]) = (of(|round| round.0), of(|round| round.1));
    let [low, more, high] = of(|round| round.1 - round.0);
    println!(
        "{what:<20} {rust:>8.1} {c:>8.1} {more:>8.1} {:>16} {bound:>8}",
        format!("{low:.1} to {high:.1}")
    );
}

/// The times of all rounds.
fn time(js: &JobSystem, system: *mut pl_system, counted: Counter) {
    let (mut made, mut ran, mut loops) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let (rust, c, rust_loop, c_loop);
        if round % 2 == 0 {
            (rust, c) = (jobs_from_rust(js, counted), jobs_from_c(system, counted));
            (rust_loop, c_loop) = (loops_from_rust(js, counted), loops_from_c(system, counted));
        } else {
            c = jobs_from_c(system, counted);
            rust = jobs_from_rust(js, counted);
            c_loop = loops_from_c(system, counted);
            rust_loop = loops_from_rust(js, counted);
        }
        if round >= WARM_UP {
            made.push((rust[0], c[0]));
            ran.push((rust[1], c[1]));
            loops.push((rust_loop, c_loop));
        }
    }
    println!("ns for each           from Rust   from C     more     (quartiles)  at most");
    say("job, made", "", &made);
    say("job, made and run", "10", &ran);
    say("loop of 64 items", "50", &loops);
}

/// What valgrind counts, and how many of it are in a batch.
const COUNTED: [(&str, usize); 4] = [
    ("jobs-from-rust", JOBS),
    ("jobs-from-c", JOBS),
    ("loops-from-rust", LOOPS),
    ("loops-from-c", LOOPS),
];
/// Batches of the shorter run under valgrind; the longer one has twice as many.
const BATCHES: usize = 10;

/// Makes and runs so many batches of something of [`COUNTED`].
fn batches(what: &str, batches: usize, js: &JobSystem, system: *mut pl_system, counted: Counter) {
    for _ in 0..batches {
        match what {
            "jobs-from-rust" => drop(black_box(jobs_from_rust(js, counted))),
            "jobs-from-c" => drop(black_box(jobs_from_c(system, counted))),
            "loops-from-rust" => drop(black_box(loops_from_rust(js, counted))),
            "loops-from-c" => drop(black_box(loops_from_c(system, counted))),
            other => panic!("there is no '{other}' to count"),
        }
    }
}

/// The instructions of this program with so many batches.
fn instructions(what: &str, batches: usize) -> f64 {
    let this = std::env::current_exe().expect("this program has a path");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(this).args([what, &batches.to_string()]);
    let ended = valgrind.output().expect("valgrind is installed");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "valgrind failed: {said}");
    let collected = said.split("Collected :").nth(1);
    let collected = collected.and_then(|rest| rest.split_whitespace().next());
    let count = collected.and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("valgrind does not say what it counted: {said}"))
}

fn count() {
    let each = COUNTED.map(|(what, in_batch)| {
        let more = instructions(what, 2 * BATCHES) - instructions(what, BATCHES);
        more / (BATCHES * in_batch) as f64
    });
    println!("instructions          from Rust   from C     more");
    let rows = ["job, made and run", "loop of 64 items"];
    for (row, both) in rows.iter().zip(each.chunks(2)) {
        let (rust, c) = (both[0], both[1]);
        println!("{row:<20} {rust:>8.0} {c:>8.0} {:>8.0}", c - rust);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Cargo adds a word of its own.
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| *word != "--bench")
        .collect();
    if words == ["instructions"] {
        return count();
    }
    let js = Builder::new().workers(0).build().expect("it can be made");
    let (system, mut counter) = (c_system(), 0);
    let counted = Counter(&raw mut counter);
    let all = match words[..] {
        [] => {
            time(&js, system, counted);
            2 * (WARM_UP + ROUNDS) * (JOBS + LOOPS * ITEMS)
        }
        [what, number] => {
            let number = number.parse().expect("a number of batches");
            batches(what, number, &js, system, counted);
            let is_loop = what.starts_with("loops");
            number * if is_loop { LOOPS * ITEMS } else { JOBS }
        }
        _ => panic!("say nothing, or 'instructions'"),
    };
    assert_eq!(counter, all as u64, "each job and each item ran once");
    // SAFETY: nothing else calls.
    assert_eq!(unsafe { pl_system_destroy(system) }, PL_OK);
}
