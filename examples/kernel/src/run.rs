//! The frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use paceline::{Builder, JobSystem};

use crate::RunOptions;
use crate::hogs::Hogs;
use crate::idle::CpuTime;
use crate::work;

/// The hogs are on their CPUs when frames begin.
const SETTLE: Duration = Duration::from_millis(700);

/// How long [`calibrate`] looks.
const MEASURED: Duration = Duration::from_secs(2);

/// What became of the frames.
#[derive(Default)]
struct Seen {
    /// From the moment at which each should have begun to its end.
    times: Vec<Duration>,
    /// To its first instruction.
    wakes: Vec<Duration>,
    /// To the beginning of the wait for its job, which a worker had begun by then.
    begun: Vec<Duration>,
    dropped: u32,
}

/// Runs the scene and prints a line.
pub(crate) fn run(options: &RunOptions) -> Result<(), String> {
    let mut builder = Builder::new().hints(options.hints);
    if let Some(workers) = options.workers {
        builder = builder.workers(workers);
    }
    let js = builder.build().map_err(|error| error.to_string())?;
    if options.hints {
        // Whether a scheduler listens.
        println!("{}", js.explain().last().map_or("", |line| line.as_str()));
    }
    let mut hogs = match options.hogs {
        0 => None,
        count => Some(Hogs::start(count)?),
    };
    thread::sleep(SETTLE);
    sleep_to_phase(Duration::from_micros(options.phase));
    let before = hogs.as_mut().map_or(Ok(0), Hogs::done)?;
    let (cpus_before, began) = (CpuTime::now()?, Instant::now());
    let seen = frames(&js, options);
    let (took, cpus) = (began.elapsed(), CpuTime::now()?);
    let after = hogs.map_or(Ok(0), Hogs::end)?;
    print(options, seen);
    println!(
        " hogs {} ms {} idle {}",
        (after - before) / 1000,
        took.as_millis(),
        cpus.idle_permille_since(&cpus_before)
    );
    Ok(())
}

/// Prints how many blocks the hogs do in a millisecond on each CPU.
pub(crate) fn calibrate(count: u32) -> Result<(), String> {
    let cpus =
        thread::available_parallelism().map_err(|error| format!("how many CPUs: {error}"))?;
    let mut hogs = Hogs::start(count)?;
    thread::sleep(SETTLE);
    let (before, began) = (hogs.done()?, Instant::now());
    thread::sleep(MEASURED);
    let (done, took) = (hogs.done()? - before, began.elapsed());
    hogs.end()?;
    let on_each = u128::from(done) * 1_000_000 / took.as_nanos().max(1) / cpus.get() as u128;
    println!("{}", on_each.max(1));
    Ok(())
}

/// Sleeps until the clock shows so much behind a full second.
fn sleep_to_phase(phase: Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let into = Duration::from_nanos(u64::from(now.unwrap_or_default().subsec_nanos()));
    thread::sleep(Duration::from_secs(1) + phase - into);
}

fn frames(js: &JobSystem, options: &RunOptions) -> Seen {
    let micros = |micros: u64| micros * options.blocks / 1_000;
    let (main, job) = (micros(options.main), micros(options.job));
    let period = Duration::from_micros(options.period);
    let mut seen = Seen::default();
    let began = Instant::now();
    let mut number = 1;
    while number <= options.frames {
        let due = began + period * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        seen.wakes.push(due.elapsed());
        let begun = Arc::new(AtomicBool::new(false));
        let (flag, caller) = (Arc::clone(&begun), thread::current());
        let id = js.job("frame").schedule(move |_| {
            flag.store(true, Ordering::Relaxed);
            caller.unpark();
            work::burn(job);
        });
        work::burn(main);
        // A wait would run the job if no worker has begun it.
        while !begun.load(Ordering::Relaxed) {
            thread::park();
        }
        seen.begun.push(due.elapsed());
        js.wait(id);
        seen.times.push(due.elapsed());
        let next = (began.elapsed().as_nanos() / period.as_nanos()) as u32 + 1;
        seen.dropped += next.min(options.frames + 1) - (number + 1).min(next);
        number = next.max(number + 1);
    }
    seen
}

/// Prints what became of the frames: most of a line.
fn print(options: &RunOptions, mut seen: Seen) {
    if options.list {
        for time in &seen.times {
            println!("time {}", time.as_micros());
        }
    }
    for list in [&mut seen.times, &mut seen.wakes, &mut seen.begun] {
        list.sort_unstable();
    }
    let at = |list: &[Duration], share: usize| {
        let index = (list.len() * share).div_ceil(100).max(1) - 1;
        list.get(index).map_or(0, Duration::as_micros)
    };
    let (times, wakes, begun) = (&seen.times, &seen.wakes, &seen.begun);
    print!(
        "result {} phase {} frames {} dropped {} p50 {} p90 {} p99 {} max {} wake99 {} begun50 {} begun99 {}",
        options.label,
        options.phase,
        times.len(),
        seen.dropped,
        at(times, 50),
        at(times, 90),
        at(times, 99),
        at(times, 100),
        at(wakes, 99),
        at(begun, 50),
        at(begun, 99),
    );
}

/// Threads that begin, wait for each other and end.
pub(crate) fn crowd(threads: u32, seconds: u64) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0_u64;
    while Instant::now() < until {
        let started: Result<Vec<_>, _> = (0..threads)
            .map(|_| {
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn(|| work::burn(10))
            })
            .collect();
        let started = started.map_err(|error| format!("cannot start a thread: {error}"))?;
        for thread in started {
            thread.join().map_err(|_| "a thread panicked".to_owned())?;
        }
        rounds += 1;
    }
    println!("crowd {threads} threads, {rounds} times");
    Ok(())
}
