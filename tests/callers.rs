//! Goal: where callers sleep, a worker that spins makes way for them between two looks, and still finds what
//! they hand over; what it calls for that may panic. Method: a worker that never parks tells whenever it
//! makes way, between jobs of which the caller learns by a channel; one that never spins does not tell. On a
//! simulated machine of two CPUs: two workers spin there, and three do not.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, JobSystem, WaitPolicy};
use platform::Platform;
use sim::{Machine, Sim, SimConfig};

/// A bound for what should never happen.
const LONG: Duration = Duration::from_secs(60);

fn pool(policy: WaitPolicy, make_way: impl Fn() + Send + Sync + 'static) -> JobSystem {
    let builder = Builder::new().workers(1).follow_machine(false);
    let builder = builder.wait_policy(policy).callers_sleep(make_way);
    builder.build().unwrap()
}

/// Hands over a job, and waits until it has run.
fn hand_over(js: &JobSystem) {
    let (send, receive) = channel();
    js.schedule(move |_| send.send(42).unwrap());
    assert_eq!(receive.recv_timeout(LONG), Ok(42));
}

#[test]
fn a_worker_that_spins_makes_way() {
    let (made, makes) = sync_channel(1);
    let js = pool(WaitPolicy::Active, move || _ = made.try_send(()));
    for _ in 0..3 {
        // The first may be from before the job.
        for _ in 0..3 {
            makes.recv_timeout(LONG).expect("it makes way");
        }
        hand_over(&js);
    }
    let (made, makes) = sync_channel(1);
    let js = pool(WaitPolicy::Passive, move || _ = made.try_send(()));
    hand_over(&js);
    hand_over(&js);
    drop(js);
    assert!(makes.try_recv().is_err(), "it does not spin");
}

#[test]
fn making_way_may_panic() {
    let (made, makes) = sync_channel(1);
    let js = pool(WaitPolicy::Active, move || {
        let _ = made.try_send(());
        resume_unwind(Box::new("of the hook"));
    });
    for _ in 0..3 {
        makes.recv_timeout(LONG).expect("it makes way");
    }
    hand_over(&js);
    assert!(js.stats().hook_panics > 1);
}

/// How often this many workers make way on two CPUs, between ten jobs that the caller hands over.
fn times(workers: usize) -> u32 {
    let machine = Machine::named("vm-2").expect("it is in the library");
    let times = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&times);
    let report = Sim::run(SimConfig::on(machine, "eevdf-6.18", 1), |sim| {
        let builder = Builder::with_platform(sim.clone()).workers(workers);
        let builder = builder.follow_machine(false);
        let builder = builder.callers_sleep(move || _ = count.fetch_add(1, Ordering::Relaxed));
        let js = builder.build().unwrap();
        for _ in 0..10 {
            js.schedule(|cx| cx.work(Nanos::from_micros(5)));
            sim.charge(Nanos::from_micros(20));
        }
    });
    report.expect_finished();
    times.load(Ordering::Relaxed)
}

#[test]
fn callers_that_sleep_leave_all_cpus_to_workers() {
    assert!(times(2) > 10, "each of two workers has a CPU");
    assert_eq!(times(3), 0, "there are more workers than CPUs");
}
