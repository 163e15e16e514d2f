//! What a job and a loop cost more from C than from Rust: `cargo bench -p paceline-capi --bench cost`.
//!
//! Each round does the same work by both, one after the other, and they take turns at being first. So what is
//! said is the difference within a round, in the median of the rounds, with its quartiles: what else the
//! machine does comes to both. There are no workers: this thread makes jobs, and then runs them.

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::zeroed;
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

fn main() {
    let js = Builder::new().workers(0).build().expect("it can be made");
    let (system, mut counter) = (c_system(), 0);
    let counted = Counter(&raw mut counter);
    let (mut made, mut ran, mut loops) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let (rust, c, rust_loop, c_loop);
        if round % 2 == 0 {
            (rust, c) = (jobs_from_rust(&js, counted), jobs_from_c(system, counted));
            (rust_loop, c_loop) = (loops_from_rust(&js, counted), loops_from_c(system, counted));
        } else {
            c = jobs_from_c(system, counted);
            rust = jobs_from_rust(&js, counted);
            c_loop = loops_from_c(system, counted);
            rust_loop = loops_from_rust(&js, counted);
        }
        if round >= WARM_UP {
            made.push((rust[0], c[0]));
            ran.push((rust[1], c[1]));
            loops.push((rust_loop, c_loop));
        }
    }
    let all = 2 * (WARM_UP + ROUNDS) * (JOBS + LOOPS * ITEMS);
    assert_eq!(counter, all as u64, "each job and each item ran once");
    println!("ns for each           from Rust   from C     more     (quartiles)  at most");
    say("job, made", "", &made);
    say("job, made and run", "10", &ran);
    say("loop of 64 items", "50", &loops);
    // SAFETY: nothing else calls.
    assert_eq!(unsafe { pl_system_destroy(system) }, PL_OK);
}
