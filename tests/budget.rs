//! Goal: the cost of a job is bounded. At most three read-modify-writes and one full fence for a job that is
//! not traced, from its scheduling to its end; none of either for a join or a block of a loop that no other
//! thread asks for.
//!
//! Method: a job system without workers on a counted platform: everything happens on this thread and is
//! counted exactly. Each measurement is of the third of three equal runs; slots, labels and places in queues
//! are warm then. The figures in the comments are measured.
//!
//! A slot in flight costs four more read-modify-writes per 31 jobs when jobs are made and run in bursts
//! longer than the two magazines of a thread slot (62 slots): the thread that makes jobs pops a full one and
//! pushes an empty one, and the thread that ends them does it the other way round.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::{Builder, Context, Grain, JobSystem};
use platform::{Os, Platform};
use testkit::{Counted, Counts};

use crate::support::allocations;

const JOBS: u64 = 1_000;
/// More than any test needs: nothing here is timed.
const LONG: Duration = Duration::from_secs(1_000);

fn system() -> JobSystem<Counted<Os>> {
    let builder = Builder::with_platform(Counted(Os)).workers(0);
    builder.build().expect("it needs no threads")
}

/// The counts of the third run.
fn measure(what: &str, mut run: impl FnMut()) -> Counts {
    // One copy of it: labels are known by their addresses, and a copy made by the compiler may have others.
    let run: &mut dyn FnMut() = std::hint::black_box(&mut run);
    run();
    run();
    let ((), counts) = Counted::during(run);
    println!("{what}: {counts:?} for {JOBS}");
    counts
}

#[track_caller]
fn assert_within(counts: Counts, rmws: u64, full_fences: u64) {
    assert!(counts.rmws <= rmws * JOBS, "{counts:?}");
    assert!(counts.full_fences <= full_fences * JOBS, "{counts:?}");
    // A lock is a read-modify-write or two that is not counted as such: none per job.
    assert!(counts.locks <= 1, "{counts:?}");
    assert_eq!((counts.parks, counts.unparks), (0, 0), "{counts:?}");
}

fn schedule<P: Platform>(js: &JobSystem<P>) {
    js.job("counted").schedule(|_| ());
}

/// Measured: 3 and 1: the ticket taken from the inbox, the claim, the links closed; the fence between the
/// ticket and the look for idle workers.
#[test]
fn a_job_from_outside() {
    let js = system();
    let counts = measure("from outside, one at a time", || {
        for _ in 0..JOBS {
            schedule(&js);
            assert!(js.poll());
        }
    });
    assert_within(counts, 3, 1);
}

/// Measured: 3.124 and 1; as above, and the magazines.
#[test]
fn a_burst_from_outside() {
    let js = system();
    let counts = measure("from outside, all at once", || {
        (0..JOBS).for_each(|_| schedule(&js));
        assert_eq!(js.pump(LONG), JOBS as usize);
    });
    assert_within(counts, 3, 1);
}

/// Measured: 2.125 and 1: a thread takes from its own deque without one.
#[test]
fn jobs_from_inside_a_job() {
    let js = system();
    let counts = measure("from inside a job", || {
        // The job that makes them is one of them.
        js.job("maker").schedule(|cx| {
            for _ in 1..JOBS {
                cx.job("counted").schedule(|_| ());
            }
        });
        assert_eq!(js.pump(LONG), JOBS as usize);
    });
    assert_within(counts, 3, 1);
}

/// Measured: 1.127 and 1: no job can depend on a job of a scope, so it has no links to close, and it is
/// subtracted from the scope's count together with others.
#[test]
fn jobs_of_a_scope() {
    let js = system();
    let counts = measure("in a scope", || {
        js.scope(|s| (0..JOBS).for_each(|_| s.spawn(|_| ())));
    });
    assert_within(counts, 2, 1);
}

/// Measured: one load each.
#[test]
fn joins_that_nobody_asks_for() {
    fn tree<P: Platform>(cx: &Context<'_, P>, leaves: u64) {
        if leaves > 1 {
            let half = leaves / 2;
            cx.join(|cx| tree(cx, half), |cx| tree(cx, leaves - half));
        }
    }
    let js = system();
    // As many joins as leaves, less one.
    let counts = js.enter(|cx| measure("joins", || tree(cx, JOBS + 1)));
    assert_within(counts, 0, 0);
    assert_eq!(counts.stamps, 0, "{counts:?}");
    assert!(counts.loads <= JOBS, "{counts:?}");
    assert_eq!(js.stats().promotions, 0);
}

/// Measured: one load and one stamp a block.
#[test]
fn a_loop_that_nobody_shares() {
    let js = system();
    let blocks = AtomicU64::new(0);
    let mut before = 0;
    let counts = measure("a loop", || {
        before = blocks.load(Ordering::Relaxed);
        js.parallel_for(0..JOBS as usize, Grain::Items(1), |part, cx| {
            blocks.fetch_add(1, Ordering::Relaxed);
            cx.work(event::Nanos(part.len() as u64));
            // Longer than a block should take, so that there are many.
            part.for_each(|_| (0..20_000).for_each(|i| _ = std::hint::black_box(i)));
        });
    });
    let blocks = blocks.load(Ordering::Relaxed) - before;
    println!("{blocks} blocks");
    assert!(blocks >= 100, "{blocks} blocks are too few to tell");
    assert_eq!((counts.rmws, counts.full_fences), (0, 0), "{counts:?}");
}

/// Goal: after `warm_up` the calls of a thread that must not be held up are as the table there says: nothing
/// is allocated, no lock is taken, and a quiet job wakes no thread and costs no fence. Method: on a thread of
/// its own, beside a worker that sleeps, each call once for its name, and then counted, also the first time
/// that many jobs are live.
#[test]
fn calls_after_a_warm_up() {
    const LIVE: usize = 200;
    let builder = Builder::with_platform(Counted(Os)).workers(1);
    let js = builder.build().expect("there is a thread for it");
    let counted = |what: &str, jobs: usize, call: &dyn Fn()| {
        let ((), counts) = Counted::during(|| {
            let ((), allocated) = allocations::during(|| (0..jobs).for_each(|_| call()));
            assert_eq!(allocated, 0, "{what}");
        });
        println!("{what}: {counts:?} for {jobs}");
        assert_eq!(counts.locks, 0, "{what}: {counts:?}");
        counts
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            js.warm_up(2 * LIVE);
            let gate = js.event("gate");
            let quiet = || _ = js.job("quiet").quiet().schedule(|_| ());
            let held = || _ = js.job("held").after(&gate).quiet().run(|_| [0_u64; 8]);
            let loud = || _ = js.job("loud").schedule(|_| ());
            let asks = || _ = js.is_done(&gate);
            let counters = || _ = js.stats();
            let calls: [(&str, &dyn Fn()); 5] = [
                ("quiet", &quiet),
                ("held", &held),
                ("loud", &loud),
                ("asks", &asks),
                ("counters", &counters),
            ];
            for (_, call) in calls {
                call();
            }
            for (what, call) in calls {
                let counts = counted(what, LIVE, call);
                if what == "quiet" {
                    assert_eq!((counts.unparks, counts.full_fences), (0, 0), "{counts:?}");
                }
            }
            let ((), allocated) = allocations::during(|| gate.complete());
            assert_eq!(allocated, 0);
            counted("flush", 1, &|| js.flush());
        });
    });
}
