//! Quotas of CPU time: the documented behaviour of Linux's CFS bandwidth control (`sched-bwc.rst`) is that of
//! the simulated kernel.

use event::{KernelEventKind, Nanos};
use paceline_sim::scenario::{Scenario, run};
use paceline_sim::{Machine, QuotaUse, SimConfig, SimReport};

const POLICIES: [&str; 3] = ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"];

fn scenario(text: &str) -> Scenario {
    let head = "about = \"a test\"\nmachine = \"any\"\npolicy = \"any\"\n";
    Scenario::parse("test", &format!("{head}{text}")).expect("it is a scenario")
}

/// Runs a scenario on CPUs without costs, with ticks of 1 ms.
fn on(cpus: usize, policy: &str, text: &str) -> (SimReport, QuotaUse) {
    let scenario = scenario(text);
    let mut machine = Machine::ideal(cpus);
    machine.kernel.tick = Nanos::from_millis(1);
    let mut config = SimConfig::on(machine, policy, 1);
    config.trace = true;
    config.checks = true;
    config.until = scenario.until.unwrap_or(config.until);
    config.quota = scenario.cpu_quota();
    let report = run(&scenario, config).report;
    assert_eq!(report.violation, None, "{policy}");
    let quota = report.quota.unwrap_or_default();
    (report, quota)
}

fn ran(report: &SimReport) -> u64 {
    let all = report.threads.iter();
    all.map(|thread| thread.spent.run.0).sum::<u64>() / 1_000_000
}

fn hogs(count: usize, more: &str) -> String {
    format!(
        "until = \"1 s\"\n{more}\n[[thread]]\nname = \"hog\"\ncount = {count}\nrepeat = \"forever\"\n\
         phases = [{{ work = \"10 ms\" }}]\n"
    )
}

/// Goal: a group gets the time of its quota and no more, and is throttled in each period in which it wants
/// more. Method: a table of CPUs, hogs and quotas, a second each, under each fair policy; the time on CPUs
/// may be off by a tick of each CPU.
#[test]
fn a_group_gets_its_quota() {
    let table = [
        (2, 2, 1.5, 1500, true),
        (2, 2, 0.5, 500, true),
        (2, 4, 1.0, 1000, true),
        (4, 3, 2.0, 2000, true),
        (2, 2, 2.0, 2000, false),
        (2, 1, 1.5, 1000, false),
        (4, 2, 3.0, 2000, false),
    ];
    for policy in POLICIES {
        for (cpus, threads, quota, expected, is_throttled) in table {
            let text = hogs(threads, &format!("[quota]\ncpus = {quota:?}"));
            let (report, used) = on(cpus, policy, &text);
            let case = format!("{policy}: {threads} hogs on {cpus} CPUs with {quota}: {used:?}");
            let ran = ran(&report);
            assert!(ran.abs_diff(expected) <= cpus as u64, "{case}: {ran} ms");
            assert_eq!(used.periods, 10, "{case}");
            let throttled = if is_throttled { 10 } else { 0 };
            assert_eq!(used.throttled_periods, throttled, "{case}");
            assert_eq!(used.throttled > Nanos::ZERO, is_throttled, "{case}");
        }
    }
}

/// Goal: a throttled group runs at the beginning of each period and not at its end. Method: two hogs with 1.5
/// of 2 CPUs: in each period both CPUs run for 75 ms and then stand still for 25, give or take a slice and a
/// tick.
#[test]
fn periods_begin_with_running() {
    for policy in POLICIES {
        let (report, used) = on(
            2,
            policy,
            &hogs(2, "[quota]\nperiod = \"100 ms\"\ncpus = 1.5"),
        );
        let mut stops: Vec<u64> = Vec::new();
        for event in &report.trace {
            if let KernelEventKind::Switch {
                prev: Some(_),
                next: None,
                ..
            } = event.what
            {
                stops.push(event.time.0 / 1_000_000);
            }
        }
        assert_eq!(stops.len(), 20, "{policy}: {stops:?}");
        let within = |stop: &u64| (68..=82).contains(&(stop % 100));
        assert!(stops.iter().all(within), "{policy}: {stops:?}");
        // 10 periods of 25 ms on 2 CPUs.
        let throttled = used.throttled.0 / 1_000_000;
        assert!(throttled.abs_diff(500) <= 4, "{policy}: {throttled} ms");
        for thread in &report.threads {
            assert!(
                thread.spent.sleep == Nanos::ZERO,
                "{policy}: throttled is not asleep"
            );
        }
    }
}

/// Goal: only the group is throttled. Method: a hog with a quarter of a CPU beside one without a quota on one
/// CPU, and a real-time thread of the group, which has no quota.
#[test]
fn others_are_left_alone() {
    let text = "until = \"1 s\"\n[quota]\ncpus = 0.25\nthreads = [\"rationed\", \"urgent\"]\n\
        [[thread]]\nname = \"rationed\"\nrepeat = \"forever\"\nphases = [{ work = \"10 ms\" }]\n\
        [[thread]]\nname = \"free\"\nrepeat = \"forever\"\nphases = [{ work = \"10 ms\" }]\n\
        [[thread]]\nname = \"urgent\"\ndiscipline = \"fifo\"\npriority = 1\nrepeat = \"forever\"\n\
        phases = [{ work = \"1 ms\" }, { sleep = \"4 ms\" }]\n";
    for policy in POLICIES {
        let (report, used) = on(1, policy, text);
        let run = |number: usize| report.threads[number].spent.run.0 / 1_000_000;
        assert!(run(0).abs_diff(250) <= 2, "{policy}: {}", run(0));
        assert_eq!(run(2), 200, "{policy}");
        assert_eq!(run(0) + run(1) + run(2), 1000, "{policy}: nothing is lost");
        assert_eq!(used.throttled_periods, 10, "{policy}");
    }
}

/// Goal: threads that sleep, move, change their locks and end are never lost, and a run that cannot go on is
/// still found. Method: many short sleepers on few CPUs that go away and come back, with a mutex; then two
/// that wait for ever.
#[test]
fn nobody_is_lost() {
    let text = "until = \"20 s\"\n[quota]\nperiod = \"20 ms\"\ncpus = 0.7\n\
        [[thread]]\nname = \"a\"\ncount = 6\nrepeat = 50\n\
        phases = [{ lock = \"m\" }, { work = [\"50 us\", \"2 ms\"] }, { unlock = \"m\" }, \
                  { work = \"1 ms\" }, { sleep = [\"10 us\", \"3 ms\"] }]\n\
        [[change]]\nat = \"95 ms\"\noffline = [1]\n[[change]]\nat = \"201 ms\"\nonline = [1]\n\
        [[change]]\nat = \"315 ms\"\noffline = [0]\n[[change]]\nat = \"402 ms\"\nonline = [0]\n";
    for policy in POLICIES {
        let (report, used) = on(3, policy, text);
        assert!(used.throttled_periods > 10, "{policy}: {used:?}");
        let report = report.expect_finished();
        let charged: u64 = report.threads.iter().map(|thread| thread.charged.0).sum();
        let run: u64 = report.threads.iter().map(|thread| thread.spent.run.0).sum();
        assert!(run >= charged, "{policy}: {run} of {charged}");
        let most = used.periods * 14_000_000 + 3 * 5_000_000;
        assert!(run <= most, "{policy}: {run} ns in {used:?}");
    }
    let stuck = "[quota]\ncpus = 0.5\n[[thread]]\nname = \"a\"\ncount = 2\n\
        phases = [{ work = \"80 ms\" }, { take = \"never\" }]\n";
    let (report, _) = on(2, "eevdf-6.18", stuck);
    assert!(report.deadlocked().is_some(), "{report}");
}

/// Goal: the trace says which threads are put aside and when, and each thread's time aside is the one in its
/// report; no thread runs meanwhile, and one that ran leaves its CPU at once. Method: hogs and a sleeper with
/// half a CPU under each fair policy; the events are put together by hand.
#[test]
fn the_trace_says_who_is_put_aside() {
    let text = format!(
        "{}[[thread]]\nname = \"sleeper\"\nrepeat = \"forever\"\n\
         phases = [{{ work = \"2 ms\" }}, {{ sleep = \"8 ms\" }}]\n",
        hogs(2, "[quota]\ncpus = 0.5")
    );
    for policy in POLICIES {
        let (report, _) = on(2, policy, &text);
        let threads = report.threads.len();
        let (mut since, mut aside) = (vec![None; threads], vec![Nanos::ZERO; threads]);
        let mut begun = 0;
        for event in &report.trace {
            match event.what {
                KernelEventKind::Throttle { task, begins: true } => {
                    assert_eq!(since[task.index()].replace(event.time), None, "{policy}");
                    begun += 1;
                }
                KernelEventKind::Throttle { task, .. } => {
                    let begin = since[task.index()].take().expect("it was put aside");
                    aside[task.index()] += event.time - begin;
                }
                KernelEventKind::Switch { prev, next, .. } => {
                    let when = prev.and_then(|prev| since[prev.index()]);
                    assert!(when.is_none_or(|when| when == event.time), "{policy}");
                    assert!(
                        next.is_none_or(|next| since[next.index()].is_none()),
                        "{policy}"
                    );
                }
                _ => {}
            }
        }
        assert!(begun >= 20, "{policy}: {begun}");
        for (number, thread) in report.threads.iter().enumerate() {
            let open = since[number].map_or(Nanos::ZERO, |since| report.now - since);
            assert_eq!(thread.spent.throttled, aside[number] + open, "{policy}");
            assert!(thread.spent.throttled > Nanos::ZERO, "{policy}");
            assert!(thread.spent.throttled <= thread.spent.runnable, "{policy}");
        }
    }
}

/// Goal: the machine names the mistake in a quota. Method: a table of files.
#[test]
fn senseless_quotas_are_refused() {
    let table = [
        ("cpus = 0.0", "at least 1 ms"),
        ("cpus = -1.0", "at least 1 ms"),
        ("cpus = nan", "at least 1 ms"),
        ("cpus = inf", "no machine has that many"),
        ("cpus = 1e300", "no machine has that many"),
        ("cpus = 65536.0", "no machine has that many"),
        ("cpus = 1.0\nperiod = \"2 s\"", "1 ms to 1 s"),
        ("cpus = 1.0\nthreads = [\"nobody\"]", "no thread \"nobody\""),
        ("cpus = 1.0\nthreads = [\"main\"]", "no thread \"main\""),
    ];
    for (quota, expected) in table {
        let head = "about = \"a test\"\nmachine = \"any\"\npolicy = \"any\"\n";
        let text = format!("{head}{}", hogs(1, &format!("[quota]\n{quota}")));
        let error = Scenario::parse("test", &text).expect_err(quota);
        assert!(error.0.contains(expected), "{quota}: {error}");
    }
}
