//! Tests of naive waits on the machine at hand and on simulated threads: counts, not times.

use std::sync::Arc;

use event::Nanos;
use platform::{CpuSet, Machine as _, Os, Platform, Polling, Thread, ThreadSpec};
use sim::machine::KernelSpec;
use sim::{Machine, Order, Sim, SimConfig};

use super::*;
use crate::busy::Busy;

const ORDERS: [Order; 3] = [
    Order::Random,
    Order::Pct { depth: 2 },
    Order::Pct { depth: 3 },
];

/// One of each kind for simulated threads; the shortest sleep is longer here, or a run would consist of
/// nothing but sleeps.
const WAITS: [NaiveWait; 7] = [
    NaiveWait::Spin,
    NaiveWait::Pause,
    NaiveWait::Yield,
    NaiveWait::BACKOFF,
    SLEEP,
    NaiveWait::SpinPark(Nanos(2_500)),
    NaiveWait::Park,
];
const SLEEP: NaiveWait = NaiveWait::Sleep(Nanos(900));

/// Runs a program under every order and some seeds, half of them with waits that return early.
fn everywhere(program: impl Fn(Sim)) {
    for order in ORDERS {
        for seed in 0..60 {
            let config = SimConfig::new(seed)
                .with_order(order)
                .with_spurious(seed % 2 == 0);
            Sim::run(config, &program).expect_finished();
        }
    }
}

/// Goal: names on the command line mean the waits. Method: there and back.
#[test]
fn names_go_there_and_back() {
    for wait in NaiveWait::ALL {
        assert_eq!(NaiveWait::named(wait.name()), Some(wait));
        assert!(wait.to_string().starts_with(wait.name()));
    }
    assert_eq!(NaiveWait::named("hope"), None);
    assert_eq!(
        NaiveWait::BACKOFF.to_string(),
        "backoff 1.000 µs to 1.000 ms"
    );
}

/// A thread sets a flag twice, after some work each; the caller waits for the second.
fn wait_for_the_second<P: Polling>(platform: &P, wait: NaiveWait, length: Nanos) -> u64 {
    let flag = Arc::new(Flag::<P>::new(0));
    let (theirs, its_platform) = (Arc::clone(&flag), platform.clone());
    let body = move || {
        for value in [1, 2] {
            its_platform.charge(length);
            theirs.set(value);
        }
    };
    let thread = platform.spawn(ThreadSpec::default(), Box::new(body));
    let in_vain = wait.until(platform, &flag, |value| value == 2);
    assert_eq!(flag.get(), 2);
    thread.unwrap().join().unwrap();
    in_vain
}

/// Goal: each wait ends when the value is there, whatever comes before it, and blocks no other thread.
/// Method: real threads some hundred times; simulated threads in every order, where a wait that misses the
/// value would deadlock or never end.
#[test]
fn every_wait_ends_with_the_value() {
    for wait in NaiveWait::ALL {
        for _ in 0..200 {
            wait_for_the_second(&Os, wait, Nanos::ZERO);
        }
    }
    for wait in WAITS {
        everywhere(|sim| {
            wait_for_the_second(&sim, wait, Nanos(5_000));
            assert!(sim.now() >= Nanos(10_000));
        });
    }
}

/// Goal: sleeps have the length that was asked for, also if a park returns early. Method: simulated
/// time. A flag that is set after 10 us is found by sleeps of 4 us after 12 us and three looks in vain,
/// and by a back-off 1, 2, 4, 4, 4 … after 11 us and four.
#[test]
fn sleeps_are_as_long_as_they_should_be() {
    let backoff = NaiveWait::Backoff {
        first: Nanos(1_000),
        most: Nanos(4_000),
    };
    let sleep = NaiveWait::Sleep(Nanos(4_000));
    for (wait, end, looks) in [(sleep, 12_000, 3), (backoff, 11_000, 4)] {
        everywhere(|sim| {
            assert_eq!(
                wait_for_the_second(&sim, wait, Nanos(5_000)),
                looks,
                "{wait}"
            );
            assert_eq!(sim.now(), Nanos(end), "{wait}");
        });
    }
}

/// Goal: a wait that spins before it parks is in its CPU's way for that long and no longer, and less if the
/// value comes first. Method: one simulated CPU under CFS, 100 ms of work in pieces; without a limit the
/// waiter gets half of the CPU. With 20 ms of the clock it gets half of these.
#[test]
fn a_spin_before_a_park_ends_when_it_should() {
    let kernel = KernelSpec {
        tick: Nanos::from_millis(1),
        ..KernelSpec::default()
    };
    let machine = Arc::new(Machine::ideal(1).with_kernel(kernel));
    let run = |spins: u64| {
        let mut report = None;
        let what = PollBeside {
            work: Nanos::from_millis(100),
            ..beside(NaiveWait::SpinPark(Nanos::from_millis(spins)), 100)
        };
        let config = SimConfig::on(Arc::clone(&machine), "cfs-4.12", 1);
        let run = Sim::run(config, |sim| {
            report = Some(what.run(&sim, Busy::NONE).unwrap())
        });
        run.expect_finished();
        let report = report.expect("it ran");
        (report.elapsed.0 / 1_000_000, report.turns.count())
    };
    assert_eq!(run(0), (100, 1), "no spin is a park");
    let (elapsed, turns) = run(20);
    assert!((106..=114).contains(&elapsed), "{elapsed} ms");
    assert_eq!(turns, 2, "a spin and a park");
    let (elapsed, turns) = run(1_000);
    assert!((185..=212).contains(&elapsed), "{elapsed} ms");
    assert_eq!(turns, 1, "it never parks");
}

/// Goal: a back-off from nothing to nothing still lets time pass. Method: simulated time, in which such
/// a loop would not end.
#[test]
fn a_backoff_of_nothing_ends() {
    let (first, most) = (Nanos::ZERO, Nanos::ZERO);
    everywhere(|sim| {
        wait_for_the_second(&sim, NaiveWait::Backoff { first, most }, Nanos(50));
    });
}

/// Goal: a parked thread looks again when it is told, and never by itself. Method: simulated threads
/// without early returns: it looks in vain once per write that was not the right one, at most.
#[test]
fn a_parked_thread_looks_when_it_is_told() {
    for order in ORDERS {
        for seed in 0..100 {
            let mut in_vain = 0;
            let report = Sim::run(SimConfig::new(seed).with_order(order), |sim| {
                in_vain = wait_for_the_second(&sim, NaiveWait::Park, Nanos(9));
            });
            assert_eq!(report.expect_finished().now, Nanos(18));
            assert!(in_vain <= 2, "{in_vain}");
        }
    }
}

fn beside(wait: NaiveWait, pieces: u32) -> PollBeside {
    PollBeside {
        wait,
        work: Nanos(100_001),
        pieces,
        mask: None,
    }
}

/// Goal: the benchmark of source 002 ends under every wait, computes all its work, and times each yield.
/// Method: on simulated threads the work equals the charges, and the turns cannot take longer than it; loops
/// that never leave user space are one length.
#[test]
fn polling_beside_a_computation_computes_everything() {
    for wait in WAITS {
        everywhere(|sim| {
            let report = beside(wait, 7).run(&sim, Busy::NONE).unwrap();
            assert_eq!(report.elapsed, Nanos(100_001), "{wait}");
            assert_eq!(report.compute.cpu, Some(Nanos(100_001)));
            assert_eq!(report.waiter.cpu, Some(Nanos::ZERO));
            let overrun = Nanos::from_millis(1);
            assert!(
                report.turns.total() <= report.elapsed + overrun,
                "{:?}",
                report.turns
            );
            match wait {
                NaiveWait::Spin | NaiveWait::Pause => assert_eq!(report.turns.count(), 1),
                SLEEP => assert!(report.turns.count() >= 100),
                _ => assert!(report.turns.min() <= report.turns.max()),
            }
        });
    }
}

/// Goal: the same on the machine at hand, with both threads on one CPU as in the source. Method: a short
/// computation under every wait; the counts must be consistent.
#[test]
fn polling_beside_a_computation_runs_on_one_cpu() {
    let busy = Busy::calibrate(&Os);
    for wait in NaiveWait::ALL {
        let what = PollBeside {
            mask: Some(CpuSet::from_iter([Os
                .topology()
                .allowed()
                .iter()
                .next()
                .unwrap()])),
            ..beside(wait, 3)
        };
        let report = what.run(&Os, busy).unwrap();
        assert!(report.elapsed > Nanos::ZERO, "{wait}");
        assert!(report.turns.max() <= report.turns.total(), "{wait}");
    }
}

/// Goal: the answer of source 002 and the newer one: under CFS a yielding waiter takes half of the CPU, as a
/// spinning one does; since yielding forfeits time it takes next to nothing. Method: one simulated CPU with
/// ticks and a yield of 429 ns, 100 ms of work; without a waiter that runs it would take 100 ms.
#[test]
fn what_a_yield_is_worth_depends_on_the_kernel() {
    let kernel = KernelSpec {
        tick: Nanos::from_millis(4),
        yields: Nanos(429),
        clock: Nanos(10),
        ..KernelSpec::default()
    };
    let machine = Arc::new(Machine::ideal(1).with_kernel(kernel));
    let run = |wait, policy| {
        let mut report = None;
        let what = PollBeside {
            work: Nanos::from_millis(100),
            ..beside(wait, 100)
        };
        let config = SimConfig::on(Arc::clone(&machine), policy, 1);
        let run = Sim::run(config, |sim| {
            report = Some(what.run(&sim, Busy::NONE).unwrap())
        });
        run.expect_finished();
        let report = report.expect("it ran");
        (report.elapsed.0 / 1_000_000, report.turns.count())
    };
    for wait in [NaiveWait::Spin, NaiveWait::Pause, NaiveWait::Yield] {
        let (elapsed, _) = run(wait, "cfs-4.12");
        assert!(
            (185..=212).contains(&elapsed),
            "{wait} under CFS: {elapsed} ms"
        );
    }
    let (elapsed, yields) = run(NaiveWait::Yield, "cfs-4.12");
    assert!(yields > 100_000, "{yields} yields in {elapsed} ms");
    let (elapsed, yields) = run(NaiveWait::Yield, "eevdf-6.18");
    assert!(
        elapsed == 100 && (10..1_000).contains(&yields),
        "{yields} yields in {elapsed} ms"
    );
    assert_eq!(run(NaiveWait::Park, "cfs-4.12"), (100, 1));
}

fn barrier(wait: NaiveWait, threads: u64, rounds: u32) -> BarrierLoop {
    BarrierLoop {
        wait,
        work: (0..threads).map(|number| Nanos(number * 1_000)).collect(),
        warm_up: 0,
        rounds,
        masks: Vec::new(),
    }
}

/// Goal: no thread passes the barrier before all have reached it, under every wait, and each round has one
/// last thread. Method: simulated threads; with unequal work that the clock sees, a round takes as long as
/// the slowest thread where waits do not sleep.
#[test]
fn nobody_passes_the_barrier_early() {
    for wait in WAITS {
        everywhere(|sim| {
            let report = barrier(wait, 4, 5).run(&sim, Busy::NONE).unwrap();
            assert_eq!(report.early, 0, "{wait}");
            let last: u64 = report.threads.iter().map(|thread| thread.last).sum();
            assert_eq!((report.threads.len(), last), (4, 5), "{wait}");
            if !matches!(wait, NaiveWait::Backoff { .. } | NaiveWait::Sleep(_)) {
                assert_eq!(report.elapsed, Nanos(15_000), "{wait}");
                assert_eq!(report.threads[3].last, 5, "{wait}");
            }
        });
    }
}

/// Goal: the same on the machine at hand, with more threads than CPUs. Method: as above; the clock is
/// not looked at.
#[test]
fn nobody_passes_the_barrier_early_on_the_machine_at_hand() {
    for wait in NaiveWait::ALL {
        let report = barrier(wait, 3, 20).run(&Os, Busy::NONE).unwrap();
        let last: u64 = report.threads.iter().map(|thread| thread.last).sum();
        assert_eq!((report.early, last), (0, 20), "{wait}");
    }
}

/// Goal: rounds before those that count are run and leave no trace in the results. Method: the same loop with
/// and without them, of threads that park.
#[test]
fn a_warm_up_does_not_count() {
    let run = |warm_up| {
        let what = BarrierLoop {
            warm_up,
            ..barrier(NaiveWait::Park, 4, 5)
        };
        let mut report = None;
        let config = SimConfig::on(Arc::new(Machine::ideal(4)), "eevdf-6.18", 1);
        let ran = Sim::run(config, |sim| {
            report = Some(what.run(&sim, Busy::NONE).unwrap());
        });
        let ended = ran.now;
        ran.expect_finished();
        let report = report.expect("it ran");
        let last: u64 = report.threads.iter().map(|thread| thread.last).sum();
        (ended, report.elapsed, last)
    };
    let (with, without) = (run(7), run(0));
    assert_eq!((with.1, with.2), (without.1, without.2));
    assert_eq!(with.0 - without.0, Nanos(7 * 3_000));
}

/// Goal: no threads and one thread are corners that work. Method: both.
#[test]
fn a_barrier_of_one_is_none() {
    assert_eq!(
        barrier(NaiveWait::Park, 0, 5)
            .run(&Os, Busy::NONE)
            .unwrap()
            .threads,
        []
    );
    let alone = barrier(NaiveWait::Park, 1, 5).run(&Os, Busy::NONE).unwrap();
    assert_eq!((alone.threads[0].last, alone.threads[0].in_vain), (5, 0));
}

/// Goal: if a thread is refused none waits for it for ever, and the error says so. Method: a simulated
/// machine with room for too few threads.
#[test]
fn a_refused_thread_is_an_error() {
    for wait in [NaiveWait::Spin, NaiveWait::Park] {
        let config = SimConfig {
            threads_max: 3,
            ..SimConfig::new(1)
        };
        let report = Sim::run(config, |sim| {
            let error = barrier(wait, 4, 2).run(&sim, Busy::NONE).unwrap_err();
            assert!(error.to_string().contains("threads_max"), "{error}");
        });
        report.expect_finished();
    }
}
