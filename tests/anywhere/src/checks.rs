//! The checks: each asserts what it has computed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::{BuildError, Builder, Grain, JobSystem, Tiles};
use platform::{Os, RefusalKind};

/// Runs all checks with the usual number of workers. Returns what the job system says of itself.
///
/// # Panics
/// If one of them fails.
pub fn run() -> String {
    let js = JobSystem::new();
    graph(&js);
    events(&js);
    scopes(&js);
    joins(&js);
    loops(&js);
    waits_in_jobs(&js);
    timeouts(&js);
    frames(&js);
    js.explain().join("\n")
}

/// What holds where no thread can be started, beside all else: a job system with the usual settings has no
/// workers and says why, a number of workers that was asked for is refused, and where the system has no clock
/// the program's is taken.
///
/// # Panics
/// If one of these fails.
pub fn run_without_threads() {
    let js = JobSystem::new();
    assert_eq!(js.workers(), 0);
    let why = js.explain();
    assert!(why[0].starts_with("No workers: "), "{why:?}");
    frames(&js);
    timeouts(&js);
    let is_without_clock = cfg!(all(target_family = "wasm", target_os = "unknown"));
    let frame = js.frame("waits", Duration::from_millis(16));
    waits_in_jobs(&js);
    if is_without_clock {
        let readings = frame.elapsed();
        assert!(
            readings < Duration::from_millis(1),
            "{readings:?}: it waits for a thread"
        );
    }
    drop(frame);
    let refused = Builder::new().workers(1).build();
    let Err(BuildError::Thread(error)) = refused else {
        panic!("a worker was started");
    };
    assert_eq!(error.kind(), RefusalKind::Unsupported);
    assert_eq!(Os::set_clock(clock), is_without_clock);
    if is_without_clock {
        let frame = js.frame("timed", Duration::from_millis(16));
        let elapsed = frame.elapsed();
        assert!(elapsed >= PER_READING, "{elapsed:?} by the program's clock");
    }
}

/// The time that passes with each reading of [`clock`].
const PER_READING: Duration = Duration::from_micros(50);

fn clock() -> Duration {
    static READINGS: AtomicU64 = AtomicU64::new(0);
    let readings = READINGS.fetch_add(1, Ordering::Relaxed);
    PER_READING.saturating_mul(readings as u32)
}

/// A diamond, whose jobs note when they run, and a chain of results.
fn graph(js: &JobSystem) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    };
    let (first, left, right, last) = (note("first"), note("left"), note("right"), note("last"));
    let a = js.job("first").schedule(move |_| first());
    let b = js.job("left").after(a).schedule(move |_| left());
    let c = js.job("right").after(a).schedule(move |_| right());
    let d = js.job("last").after_all([b, c]).schedule(move |_| last());
    js.wait(d);
    let order = order.lock().unwrap();
    assert_eq!((order.len(), order[0], order[3]), (4, "first", "last"));

    let many: Vec<_> = (0..100_u64)
        .map(|i| js.job("square").run(move |_| i * i))
        .collect();
    let sum: u64 = many.into_iter().map(|job| job.wait()).sum();
    assert_eq!(sum, 328_350);
}

/// An event that a job completes, which nothing but a wait for its successor needs.
fn events(js: &JobSystem) {
    let loaded = js.event("loaded");
    let draw = js.job("draw").after(loaded.id()).run(|_| 7);
    js.schedule(move |_| loaded.complete());
    assert_eq!(draw.wait(), 7);
}

fn scopes(js: &JobSystem) {
    let mut parts = [0_usize; 50];
    js.scope(|scope| {
        for (index, part) in parts.iter_mut().enumerate() {
            scope.spawn(move |_| *part = index);
        }
    });
    assert_eq!(parts.iter().sum::<usize>(), 1225);
}

fn joins(js: &JobSystem) {
    fn fibonacci(cx: &paceline::Context<'_>, n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (a, b) = cx.join(|cx| fibonacci(cx, n - 1), |cx| fibonacci(cx, n - 2));
        a + b
    }
    assert_eq!(js.enter(|cx| fibonacci(cx, 16)), 987);
}

fn loops(js: &JobSystem) {
    const ITEMS: usize = 100_000;
    let mut heights = vec![1_u64; ITEMS];
    js.over(&mut heights).for_each(|height| *height += 1);
    let total = js.over(&heights).reduce(|height| *height, |a, b| a + b);
    assert_eq!(total, Some(2 * ITEMS as u64));

    let sum = AtomicU64::new(0);
    js.parallel_for(0..ITEMS, Grain::Auto, |part, _| {
        sum.fetch_add(part.map(|i| i as u64).sum(), Ordering::Relaxed);
    });
    assert_eq!(sum.into_inner(), (ITEMS as u64 - 1) * ITEMS as u64 / 2);

    let area = AtomicU64::new(0);
    let tiles = Tiles {
        width: 100,
        height: 70,
        size: (16, 16),
    };
    js.over(tiles).for_each(|tile| {
        area.fetch_add((tile.x.len() * tile.y.len()) as u64, Ordering::Relaxed);
    });
    assert_eq!(area.into_inner(), 7000);
}

/// A job that waits for a job that it has scheduled, and one that waits for an event that a job completes.
fn waits_in_jobs(js: &JobSystem) {
    let outer = js.job("outer").run(|cx| {
        let inner = cx.job("inner").run(|_| 3);
        inner.wait() + 1
    });
    assert_eq!(outer.wait(), 4);
    let outer = js.job("outer").run(|cx| {
        let loaded = cx.event("loaded");
        let id = loaded.id();
        cx.schedule(move |_| loaded.complete());
        cx.wait(id);
        5
    });
    assert_eq!(outer.wait(), 5);
}

/// A wait for what never happens ends at its time.
fn timeouts(js: &JobSystem) {
    let event = js.event("never");
    let timeout = Duration::from_millis(20);
    let frame = js.frame("timeout", timeout);
    assert!(matches!(js.wait_timeout(event.id(), timeout), Ok(false)));
    let elapsed = frame.elapsed();
    assert!(elapsed >= timeout, "{elapsed:?} of {timeout:?} have passed");
    drop(frame);
    event.complete();
}

/// Frames in time and late, with jobs in them.
fn frames(js: &JobSystem) {
    let before = js.stats();
    for number in 0..5_u64 {
        let frame = js.frame("frame", Duration::from_secs(3600));
        let step = frame.job("step").schedule(|_| ());
        let draw = frame.job("draw").after(step).run(move |_| number);
        assert_eq!(draw.wait(), number);
        assert!(frame.elapsed() > Duration::ZERO);
    }
    drop(js.frame("late", Duration::ZERO));
    let since = js.stats().since(&before);
    assert_eq!((since.frames, since.frames_missed), (6, 1));
    assert_eq!(js.pump(Duration::ZERO), 0, "nothing is left");
}

#[cfg(test)]
mod tests {
    /// Goal: the checks themselves hold where everything else is tested, too. Method: all of them here.
    #[test]
    fn the_checks_hold_on_the_machine_at_hand() {
        let said = super::run();
        assert!(said.contains("worker"), "{said}");
    }
}
