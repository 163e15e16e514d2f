//! What held waits up, on recordings whose facts are known.

use crate::{by, json, list, ns, of_causes, of_runner, who};

const RUNNABLE: [&str; 4] = ["preempted", "wake_latency", "busy_wait_stolen", "no_core"];

/// Goal: the Pathfinder's inversion is found by name. Method: the known figures of the recording.
#[test]
fn the_lock_inversion_is_named() {
    let report = json("local-pathfinder-nopi.ftrace.txt.gz", &[]);
    assert_eq!(
        (&report["format"], &report["cpus"]),
        (&"ftrace".into(), &2.into())
    );
    let worst = &list(&report, "waits")[0];
    assert_eq!(
        (&worst["thread"], &worst["name"]),
        (&"high-bus".into(), &"lock bus".into())
    );
    let near = |got: u64, expected: u64| got.abs_diff(expected) <= 10_000;
    assert!(near(ns(worst, "duration_ns"), 10_590_000), "{worst}");
    assert!(
        near(of_runner(&report, worst, "mid-comms"), 8_470_000),
        "{worst}"
    );
    let held = of_causes(&report, worst, "low-holder", &["running"]);
    assert!((2_095_000..2_115_000).contains(&held), "{held}");
    let inversion = list(&report, "inversions")
        .iter()
        .find(|one| one["wait"] == 0)
        .unwrap();
    assert_eq!(inversion["kind"], "lock");
    for (key, value) in [
        ("waiter", "high-bus"),
        ("holder", "low-holder"),
        ("runner", "mid-comms"),
    ] {
        assert_eq!(who(&report, &inversion[key])["thread"], value);
    }
    assert!(list(inversion, "remedies").contains(&"priority_inheritance".into()));
    let priorities = &inversion["priorities"];
    assert_eq!(
        (&priorities["waiter"], &priorities["runner"]),
        (&49.into(), &79.into())
    );
}

/// Goal: with priority inheritance no wait is longer than the critical section, and no thread is inverted by
/// a lock. Method: the same program with such a mutex; the longest wait is known to be 3.08 ms.
#[test]
fn with_priority_inheritance_there_is_none() {
    let report = json("local-pathfinder-pi.ftrace.txt.gz", &[]);
    let worst = &list(&report, "waits")[0];
    assert!(ns(worst, "duration_ns") < 3_200_000, "{worst}");
    let inversions = list(&report, "inversions");
    assert!(
        inversions.iter().all(|one| one["kind"] != "lock"),
        "{inversions:?}"
    );
}

/// Goal: a busy wait is recognised. Method: frame 5 of the program that spins: its main thread waits for the
/// worker, which is runnable behind others and behind the main thread itself.
#[test]
fn a_busy_wait_is_seen() {
    let trace = "local-spin.ftrace.txt.gz";
    let report = json(trace, &["--thread", "ui-main", "--slice", "wait for job"]);
    let waits = list(&report, "waits");
    let worst = &waits[0];
    assert_eq!(
        (&worst["thread"], &worst["name"]),
        (&"ui-main".into(), &"wait for job".into())
    );
    let runnable = of_causes(&report, worst, "worker", &RUNNABLE);
    assert!(runnable * 10 > ns(worst, "duration_ns") * 9, "{worst}");
    assert!(of_runner(&report, worst, "ui-main") > 50_000_000, "{worst}");
    let inversion = list(&report, "inversions").iter();
    let mut busy = inversion.filter(|one| one["wait"] == 0 && one["kind"] == "busy_wait");
    let busy = busy.next().expect("an inversion by a busy wait");
    let name = |key| &who(&report, &busy[key])["thread"];
    assert_eq!([name("waiter"), name("holder")], ["ui-main", "worker"]);
    assert!(list(busy, "remedies").contains(&"park".into()));
}

/// Goal: the account of a frame agrees with Perfetto's critical path, and sums exactly. Method: frame 15 of
/// the program with condition variables, whose figures Perfetto's trace processor gave.
#[test]
fn a_frame_is_accounted_for() {
    let report = json("local-futex.ftrace.txt.gz", &["--slice", "frame 15"]);
    let [frame] = list(&report, "waits") else {
        panic!("{}", report["waits"]);
    };
    assert_eq!(
        (&frame["name"], ns(frame, "duration_ns") / 100_000),
        (&"frame 15".into(), 3_359)
    );
    let near = |got: u64, millis: f64, within: f64| (got as f64 / 1e6 - millis).abs() <= within;
    assert!(
        near(of_causes(&report, frame, "worker", &RUNNABLE), 330.4, 0.05),
        "{frame}"
    );
    assert!(
        near(
            of_causes(&report, frame, "worker", &["running"]),
            4.04,
            0.01
        ),
        "{frame}"
    );
    assert!(
        near(
            of_causes(&report, frame, "ui-main", &["running"]),
            1.52,
            0.01
        ),
        "{frame}"
    );
}

/// Goal: in every trace the causes of every wait sum exactly to its length, and what is in the way of each
/// cause sums to it. Method: traces of every kind, as JSON.
#[test]
fn causes_sum_exactly() {
    for trace in [
        "catapult-android41-dualcore.systrace.txt.gz",
        "local-futex.ftrace.txt.gz",
        "local-futex.perf-sched-script.txt.gz",
        "local-pathfinder-nopi.ftrace.txt.gz",
        "local-spin.ftrace.txt.gz",
        "ms-android12-emulator-a.pftrace.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
        "tracecompass-atrace-youtube.txt.gz",
        "tracecompass-desktop-critical-path.ftrace.txt",
        "trappy-hmp8-a.report.txt.gz",
    ] {
        let report = json(trace, &[]);
        for wait in list(&report, "waits") {
            let causes = list(wait, "causes");
            let sum: u64 = causes.iter().map(|cause| ns(cause, "ns")).sum();
            assert_eq!(
                (sum, ns(wait, "sum_ns")),
                (ns(wait, "duration_ns"), sum),
                "{trace}: {wait}"
            );
            for cause in causes {
                let shares: u64 = by(cause).iter().map(|share| ns(share, "ns")).sum();
                let is_told = !by(cause).is_empty();
                assert!(!is_told || shares == ns(cause, "ns"), "{trace}: {cause}");
            }
        }
    }
}
