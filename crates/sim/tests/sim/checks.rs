//! Goal: the invariants of a simulated machine are checked, and hold. Method: scenarios with every sort of
//! wait under every policy, checked after each decision and run twice; and one that starves a task on
//! purpose.

use std::sync::Arc;

use event::Nanos;
use paceline_sim::scenario::{Scenario, run};
use paceline_sim::{Machine, Outcome, SimConfig};

const MIXED: &str = r#"
    about = "every sort of wait"
    machine = "vm-2"
    policy = "eevdf-6.18"
    until = "400 ms"
    inheriting-mutexes = ["m"]

    [[thread]]
    name = "hog"
    count = 3
    priority = 3
    repeat = "forever"
    phases = [{ work = ["1 ms", "9 ms"] }, { sleep = ["100 us", "2 ms"] }]

    [[thread]]
    name = "locker"
    count = 2
    nice = 3
    priority = 2
    repeat = "forever"
    phases = [{ lock = "m" }, { work = ["100 us", "2 ms"] }, { unlock = "m" }, { sleep = ["100 us", "3 ms"] }]

    [[thread]]
    name = "sender"
    priority = 2
    repeat = "forever"
    phases = [
        { send = "q" }, { post = "s" }, { work = ["10 us", "1 ms"] }, { set = "f" }, { period = "2 ms" },
    ]

    [[thread]]
    name = "receiver"
    nice = -5
    priority = 1
    repeat = "forever"
    phases = [{ receive = "q" }, { take = "s" }, { wait = { flag = "f", by = "park" } }, { work = "50 us" }]

    [[thread]]
    name = "poller"
    priority = 3
    repeat = "forever"
    phases = ["yield", { work = "100 us" }, { sleep = "1 ms" }]
"#;

/// The same threads in the same order of priorities, each with one of its own.
fn with_unique_priorities(mixed: &Scenario) -> Scenario {
    let mut scenario = mixed.clone();
    scenario.threads.clear();
    for plan in &mixed.threads {
        for copy in 0..plan.count {
            let mut one = plan.clone();
            one.name = format!("{} {copy}", plan.name);
            one.count = 1;
            one.priority = 10 * plan.priority + scenario.threads.len() as u8;
            scenario.threads.push(one);
        }
    }
    scenario
}

/// Every policy that does not explore, with the priorities of the table above, keeps its promises on every
/// seed; the same seed gives the same run, another one a different run.
#[test]
fn every_policy_keeps_its_promises() {
    let scenario = Scenario::parse("mixed", MIXED).unwrap();
    let policies = policy::CATALOGUE.iter().map(|entry| entry.name);
    for policy in policies.filter(|name| !name.starts_with("random") && !name.starts_with("pct")) {
        let scenario = match policy {
            "rtos-unique" => with_unique_priorities(&scenario),
            _ => scenario.clone(),
        };
        let mut hashes = Vec::new();
        for seed in 0..8 {
            for machine in ["vm-2", "galaxy-s22-exynos"] {
                let machine = Arc::new(Machine::named(machine).unwrap().clone());
                let config = SimConfig {
                    until: scenario.until.unwrap(),
                    checks: true,
                    ..SimConfig::on(machine, policy, seed)
                };
                let first = run(&scenario, config.clone());
                let text = format!("{policy} {}", first.report);
                assert_eq!(first.report.violation, None, "{text}");
                assert_eq!(first.report.outcome, Outcome::TimeUp, "{text}");
                assert!(first.report.events > 100, "{text}");
                let second = run(&scenario, config);
                assert_eq!(first, second, "{text}");
                hashes.push(first.report.trace_hash);
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert!(
            hashes.len() >= 14,
            "{policy}: {} different runs of 16",
            hashes.len()
        );
    }
}

/// A thread that waits too long for its CPU is named. Under FIFO a thread of less priority waits as long as
/// the others go on.
#[test]
fn starvation_is_named() {
    let text = r#"
        about = "a hog above another one"
        machine = "vm-2"
        policy = "fifo"
        until = "1 s"

        [[thread]]
        name = "above"
        priority = 2
        cpus = [0]
        repeat = "forever"
        phases = [{ work = "40 ms" }, { sleep = "1 us" }]

        [[thread]]
        name = "below"
        priority = 1
        cpus = [0]
        repeat = "forever"
        phases = [{ work = "1 s" }]

        [[thread]]
        name = "lowest"
        priority = 1
        cpus = [0]
        repeat = "forever"
        phases = [{ work = "1 s" }]
    "#;
    let scenario = Scenario::parse("starve", text).unwrap();
    let machine = Arc::new(Machine::named("vm-2").unwrap().clone());
    let config = SimConfig {
        until: scenario.until.unwrap(),
        checks: true,
        starvation: Some(Nanos::from_millis(300)),
        ..SimConfig::on(machine, "fifo", 1)
    };
    let ran = run(&scenario, config.clone());
    let (when, what) = ran.report.violation.expect("it is found");
    assert!(what.contains("(lowest) has waited"), "{what}");
    assert!(when > Nanos::from_millis(300), "{when}");
    let patient = SimConfig {
        starvation: Some(Nanos::from_secs(2)),
        ..config
    };
    assert_eq!(run(&scenario, patient).report.violation, None);
}
