//! A quota of CPU time that is used up, in a simulated run.

use std::fs::File;

use event::KernelEventKind;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fine, paceline};
use crate::{list, ns, of_causes};

/// A program that may use half a CPU: `ui` waits for `worker` all the time, and two hogs use the quota up.
const QUOTA: &str = r#"
about = "a test"
machine = "vm-2"
policy = "eevdf-6.18"

[quota]
cpus = 0.5

[[thread]]
name = "hog"
count = 2
repeat = 40
phases = [{ work = "10 ms" }]

[[thread]]
name = "ui"
repeat = 60
phases = [{ post = "go" }, { take = "done" }]

[[thread]]
name = "worker"
repeat = 60
phases = [{ take = "go" }, { work = "3 ms" }, { post = "done" }]
"#;

/// When a thread was put aside, and until when, as the events of a written trace say.
fn put_aside(trace: &str, name: &str) -> Vec<(u64, u64)> {
    let recording = trace::read::read(File::open(trace).unwrap(), trace).unwrap();
    let is_it = |thread: &&trace::Thread| thread.name == name;
    let it = recording.threads.iter().find(is_it).unwrap().task;
    let mut times = recording.kernel.iter().filter_map(|event| {
        let of_it = matches!(event.what, KernelEventKind::Throttle { task, .. } if task == it);
        of_it.then_some(event.time.0)
    });
    let mut spans = Vec::new();
    while let (Some(from), Some(until)) = (times.next(), times.next()) {
        spans.push((from, until));
    }
    spans
}

/// How long two threads were put aside at the same time.
fn both(one: &[(u64, u64)], other: &[(u64, u64)]) -> u64 {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs
        .map(|(a, b)| a.1.min(b.1).saturating_sub(a.0.max(b.0)))
        .sum()
}

/// Goal: in a simulated run it is known which thread was put aside by a quota, and for how long: as
/// `simulate` reports. Method: all of the worker's time, and nearly all of its waiter's, is in waits of the
/// waiter. While both are put aside (the worker after its post), that keeps the waiter from going on.
#[test]
fn a_simulated_quota_is_known() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scenario, trace) = (path("quota.toml"), path("run.pftrace"));
    std::fs::write(&scenario, QUOTA).unwrap();
    let run = fine(&["simulate", &scenario, "--json", "--trace", &trace]);
    let run: Value = serde_json::from_str(&run).unwrap();
    let report = fine(&["diagnose", &trace, "--json", "--thread", "ui"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let waits = list(&report, "waits");
    for thread in ["ui", "worker"] {
        let reported = list(&run, "threads").iter();
        let mut reported = reported.filter(|one| one["name"] == thread);
        let reported = ns(reported.next().unwrap(), "throttled_ns");
        let aside = put_aside(&trace, thread);
        let all: u64 = aside.iter().map(|(from, until)| until - from).sum();
        assert!(
            all.abs_diff(reported) < 1_000,
            "{thread}: {all}, {reported}"
        );
        let overlap = match thread {
            "worker" => both(&aside, &put_aside(&trace, "ui")),
            _ => 0,
        };
        let expected = reported - overlap;
        let found = waits.iter();
        let found: u64 = found
            .map(|wait| of_causes(&report, wait, thread, &["throttled"]))
            .sum();
        // A file's times are told apart by a nanosecond where the run's are equal.
        assert!(
            found.abs_diff(expected) < 1_000,
            "{thread}: {found} of {expected} of {reported}"
        );
    }
    let causes = waits.iter().flat_map(|wait| list(wait, "causes"));
    let throttled: Vec<&Value> = causes.filter(|one| one["kind"] == "throttled").collect();
    // What is known does not say so.
    assert!(throttled.iter().all(|one| one["confidence"].is_null()));
    let all: u64 = throttled.iter().map(|one| ns(one, "ns")).sum();
    assert!(all > 500_000_000, "{all}");
    let inversions = list(&report, "inversions").iter();
    let throttled: Vec<&Value> = inversions
        .filter(|one| one["kind"] == "throttled")
        .collect();
    assert_eq!(throttled.iter().map(|one| ns(one, "ns")).sum::<u64>(), all);
    assert_eq!(list(throttled[0], "remedies"), ["raise_quota", "fit_quota"]);
    let (_, text, _) = paceline(&["diagnose", &trace, "--thread", "ui"]);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    assert!(text.contains("the CPU quota was used up"), "{text}");
    let inverted = "a CPU quota kept worker from running while ui waited for it";
    assert!(text.contains(inverted), "{text}");
}
