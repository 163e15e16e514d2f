//! `paceline diagnose` as its users meet it, on traces with known facts.

mod common;
#[path = "common/guide.rs"]
mod guide;

use std::fs::File;
use std::thread::sleep;
use std::time::Duration;

use common::{fine, paceline};
use event::KernelEventKind;
use serde_json::Value;
use tempfile::TempDir;

fn json(trace: &str, more: &[&str]) -> Value {
    let trace = format!("testdata/traces/{trace}");
    let mut arguments = vec!["diagnose", &trace, "--json"];
    arguments.extend(more);
    serde_json::from_str(&fine(&arguments)).unwrap()
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap()
}

fn ns(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

/// The time of all causes of these kinds with this thread on the path.
fn of_causes(wait: &Value, thread: &str, kinds: &[&str]) -> u64 {
    let is_one = |cause: &&Value| {
        cause["thread"] == thread && kinds.contains(&cause["kind"].as_str().unwrap())
    };
    list(wait, "causes")
        .iter()
        .filter(is_one)
        .map(|cause| ns(cause, "ns"))
        .sum()
}

/// The time that this thread had the CPU while another one could have run.
fn of_runner(wait: &Value, thread: &str) -> u64 {
    let shares = list(wait, "causes")
        .iter()
        .flat_map(|cause| list(cause, "by"));
    shares
        .filter(|share| share["thread"] == thread)
        .map(|share| ns(share, "ns"))
        .sum()
}

/// How long a job of a program's own takes here.
const TAKES: Duration = Duration::from_millis(2);

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
    assert!(near(of_runner(worst, "mid-comms"), 8_470_000), "{worst}");
    let held = of_causes(worst, "low-holder", &["running"]);
    assert!((2_095_000..2_115_000).contains(&held), "{held}");
    let inversion = list(&report, "inversions")
        .iter()
        .find(|one| one["wait"] == 0)
        .unwrap();
    for (key, value) in [
        ("kind", "lock"),
        ("waiter", "high-bus"),
        ("holder", "low-holder"),
        ("runner", "mid-comms"),
    ] {
        assert_eq!(inversion[key], value);
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
            .map(|wait| of_causes(wait, thread, &["throttled"]))
            .sum();
        // A file's times are told apart by a nanosecond where the run's are equal.
        assert!(
            found.abs_diff(expected) < 1_000,
            "{thread}: {found} of {expected} of {reported}"
        );
    }
    let causes = waits.iter().flat_map(|wait| list(wait, "causes"));
    let throttled: Vec<&Value> = causes.filter(|one| one["kind"] == "throttled").collect();
    assert!(throttled.iter().all(|one| one["confidence"] == "known"));
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
    let runnable = of_causes(worst, "worker", &RUNNABLE);
    assert!(runnable * 10 > ns(worst, "duration_ns") * 9, "{worst}");
    assert!(of_runner(worst, "ui-main") > 50_000_000, "{worst}");
    let inversion = list(&report, "inversions").iter();
    let mut busy = inversion.filter(|one| one["wait"] == 0 && one["kind"] == "busy_wait");
    let busy = busy.next().expect("an inversion by a busy wait");
    assert_eq!(
        (&busy["waiter"], &busy["holder"]),
        (&"ui-main".into(), &"worker".into())
    );
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
        near(of_causes(frame, "worker", &RUNNABLE), 330.4, 0.05),
        "{frame}"
    );
    assert!(
        near(of_causes(frame, "worker", &["running"]), 4.04, 0.01),
        "{frame}"
    );
    assert!(
        near(of_causes(frame, "ui-main", &["running"]), 1.52, 0.01),
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
                let by: u64 = list(cause, "by").iter().map(|share| ns(share, "ns")).sum();
                let is_told = !list(cause, "by").is_empty();
                assert!(!is_told || by == ns(cause, "ns"), "{trace}: {cause}");
            }
        }
    }
}

/// Goal: the annotated trace has the original untouched, and the findings. Method: a Perfetto trace, which is
/// copied, and a text, which becomes one; both are read again.
#[test]
fn findings_come_on_top_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [first, second, third] = ["first.pftrace", "second.pftrace", "third.pftrace"].map(path);
    let nopi = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
    fine(&[
        "diagnose",
        nopi,
        "--slice",
        "lock bus",
        "--annotate",
        &first,
    ]);
    fine(&[
        "diagnose",
        &first,
        "--slice",
        "lock bus",
        "--annotate",
        &second,
    ]);
    let [before, after] = [&first, &second].map(|path| std::fs::read(path).unwrap());
    assert!(after.starts_with(&before) && after.len() > before.len());
    let (code, _, err) = paceline(&["diagnose", &first, "--annotate", &first]);
    assert!(code == Some(2) && err.contains("the trace itself"), "{err}");
    // The causes are slices of their own in what was written.
    let found = fine(&[
        "diagnose",
        &second,
        "--slice",
        "low-holder runnable",
        "--annotate",
        &third,
    ]);
    assert!(found.contains("mid-comms"), "{found}");
}

/// Goal: a trace with findings on top is diagnosed as it was without them. Method: a text, which becomes the
/// same Perfetto trace with and without them, and a Perfetto trace; all waits and inversions are the same.
#[test]
fn findings_are_not_explained_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plain, annotated) = (path("plain.pftrace"), path("annotated.pftrace"));
    let futex = "testdata/traces/local-futex.ftrace.txt.gz";
    fine(&["convert", futex, &plain]);
    for (trace, without) in [
        (futex, plain.as_str()),
        ("testdata/traces/ms-android12-emulator-a.pftrace.gz", ""),
    ] {
        let report = |line: &[&str]| -> Value {
            serde_json::from_str(&fine(&[&["diagnose", "--json"], line].concat())).unwrap()
        };
        let first = report(&[trace, "--annotate", &annotated]);
        let before = if without.is_empty() {
            first
        } else {
            report(&[without])
        };
        let after = report(&[&annotated]);
        for key in ["waits", "waits_omitted", "inversions", "losses"] {
            assert!(before[key] == after[key], "{trace}: {key}");
        }
    }
}

/// Goal: the annotated trace is written even if the text is not read to its end, as in `| head`. Method:
/// standard output that is closed.
#[cfg(unix)]
#[test]
fn findings_are_written_though_nobody_reads() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let annotated = folder.path().join("annotated.pftrace");
    let trace = "../../testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command
        .args(["diagnose", trace, "--annotate"])
        .arg(&annotated);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(run.stdout.take());
    run.wait().unwrap();
    let written = std::fs::metadata(&annotated).map_or(0, |file| file.len());
    assert!(written > 10_000, "{written}");
}

/// Goal: of a trace that a program made of its own, each frame and the waits in it are told by name, and
/// nothing is claimed about CPUs, of which only the kernel knows. Method: what the job system's example
/// `trace` does, with jobs that take a while; the text and the JSON.
#[test]
fn a_programs_own_trace_says_what_is_not_known() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("own.pftrace");
    // Without workers the main thread runs it all, whatever else the machine does.
    let js = paceline::Builder::new().workers(0).build().unwrap();
    let trace = js.start_trace(&path).unwrap();
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| sleep(TAKES));
        js.wait(frame.job("draw").after(physics).schedule(|_| sleep(TAKES)));
    }
    assert_eq!(trace.finish().unwrap().lost, 0);

    let path = path.to_str().unwrap();
    let text = fine(&["diagnose", path]);
    for said in [
        "it is not known whether main itself",
        "main itself: not known",
        "0 scheduler events",
        "no scheduler events: it is not known which threads ran",
    ] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
    let report: Value = serde_json::from_str(&fine(&["diagnose", path, "--json"])).unwrap();
    let waits = list(&report, "waits");
    for number in 0..3 {
        let name = format!("update {number}");
        let is_frame = |wait: &&Value| wait["name"] == name.as_str();
        let frame = waits.iter().find(is_frame).unwrap();
        assert!(
            ns(frame, "duration_ns") >= 2 * TAKES.as_nanos() as u64,
            "{frame}"
        );
        let causes = list(frame, "causes");
        let all: u64 = causes.iter().map(|cause| ns(cause, "ns")).sum();
        assert_eq!(all, ns(frame, "duration_ns"), "{frame}");
        for cause in causes {
            let is_of_cpus = ["ran", "preempted", "busy_wait_stolen", "no_core"];
            let kind = cause["kind"].as_str().unwrap();
            assert!(
                !is_of_cpus.contains(&kind),
                "{kind} is not recorded: {frame}"
            );
            let mut by = list(cause, "by").iter();
            assert!(by.all(|share| share["who"] == "unknown"), "{frame}");
        }
        assert!(
            causes.iter().any(|cause| cause["kind"] == "awake"),
            "{frame}"
        );
    }
}

/// Goal: bad input is one line that says what, where, and what to do, with exit code 2. Method: each kind.
#[test]
fn bad_input_is_one_line() {
    let spin = "testdata/traces/local-spin.ftrace.txt.gz";
    for (arguments, parts) in [
        (
            &["no/such/file"][..],
            &["no/such/file", "cannot be read"][..],
        ),
        (&["testdata/traces"], &["testdata/traces", "folder"]),
        (&["README.md"], &["README.md", "no trace"]),
        (
            &["testdata/traces/trappy-hmp8-a.trace.dat.gz"],
            &["trace-cmd report -l -N"],
        ),
        (
            &[spin, "--thread", "ui-mian"],
            &["--thread", "ui-mian", "there are \"ui-main\"", "more"],
        ),
        (&[spin, "--slice", "frme"], &["--slice", "frme", "frame"]),
        (
            &[spin, "--capacity", "0=446,1=no"],
            &["--capacity", "\"1=no\"", "1024"],
        ),
        (
            &[spin, "--annotate", "no/such/folder/f"],
            &["--annotate", "no folder"],
        ),
    ] {
        let (code, out, err) = paceline(&[&["diagnose"], arguments].concat());
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (Some(2), "", 1),
            "{arguments:?}: {err}"
        );
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: {part}: {err}");
        }
    }
}

/// Goal: the guide shows what the program prints. Method: run each command of `docs/diagnose.md` that begins
/// with `$ paceline` and compare the text below it; `…` at the end stands for more lines.
#[test]
fn the_guide_shows_what_is_printed() {
    guide::shows_what_is_printed("docs/diagnose.md", 3);
}
