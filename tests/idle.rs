//! Goal: a job system with nothing to do costs nothing, neither when it is new nor after a burst.
//!
//! Method: a process of its own. Its main thread sleeps for two seconds; wake-ups and parks are read before
//! and after, and what the kernel says of all other threads: their time on a CPU, and how often they were
//! switched away from. None of it may be anything. The thread that sleeps is left out, since its own wake-up
//! costs what the machine likes.

use std::thread::sleep;
use std::time::Duration;

use measure::{OtherThreads, Used};
use paceline::{Builder, Grain, JobSystem, Stats};

use crate::process::{child, is_child};

const NOTHING: Duration = Duration::from_secs(2);

/// Until the workers are asleep. A loaded machine may take longer than the first 100 ms to let them get
/// there; the rounds are few, so the checks below find workers that never rest.
fn settle(js: &JobSystem) {
    let mut before = js.stats();
    for _ in 0..10 {
        sleep(Duration::from_millis(100));
        let now = js.stats();
        if now == before {
            return;
        }
        before = now;
    }
}

fn assert_idle(js: &JobSystem, when: &str) {
    settle(js);
    let others = || OtherThreads::now().expect("Linux counts for each thread");
    let (stats, threads) = (js.stats(), others());
    sleep(NOTHING);
    let used = others().since(&threads);
    let happened = js.stats().since(&stats);
    println!("{when}: {used:?} in {NOTHING:?}");
    assert_eq!(happened, Stats::default(), "{when}");
    assert_eq!(used, Used::default(), "{when}");
}

#[test]
fn an_idle_job_system_uses_no_cpu() {
    let output = child("idle::in_child", &[]);
    assert!(output.is_success(), "{output}");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn in_child() {
    if !is_child() {
        return;
    }
    let js = Builder::new().workers(2).build().expect("it can be built");
    assert_idle(&js, "new");
    let jobs = (0..10_000).map(|_| js.schedule(|_| ())).collect::<Vec<_>>();
    for &job in &jobs {
        js.wait(job);
    }
    js.parallel_for(0..1 << 20, Grain::Auto, |part, _| {
        std::hint::black_box(part);
    });
    js.scope(|s| (0..1_000).for_each(|_| s.spawn(|_| ())));
    assert!(js.stats().jobs >= 11_000);
    assert_idle(&js, "after a burst");
}
