//! `--annotate`: the trace again, with the findings on top.

use serde_json::Value;

use crate::common::{fine, paceline};

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
