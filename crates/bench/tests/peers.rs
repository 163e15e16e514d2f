//! oneTBB in `paceline-bench --peers`: its runner (`peers/tbb`), and the command without one or with a bad
//! one.
//!
//! The runner is C++ and need not have been built. Tests that need it then say so and pass. With
//! `PACELINE_TEST_PEERS=all` they fail instead (`cargo xtask test` builds the runner and sets that).

#![cfg(unix)]

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use workload::busy::chain;

use common::{PROGRAM, command};

const RUNNER: &str = "PACELINE_PEER_TBB";
const GREETING: &str = "paceline-peer 1 oneTBB";

/// The runner that `cargo xtask peers` builds; none if it was not built.
fn built() -> Option<PathBuf> {
    let target = Path::new(PROGRAM).parent().and_then(Path::parent).unwrap();
    let path = target.join("peers/paceline-peer-tbb");
    let wanted = std::env::var("PACELINE_TEST_PEERS").is_ok_and(|which| which == "all");
    if !path.is_file() {
        assert!(!wanted, "there is no {}", path.display());
        println!("oneTBB's runner was not built: tested without it");
        return None;
    }
    Some(path)
}

/// Runs `paceline-bench --peers --quick --json` with more arguments.
fn bench(program: impl AsRef<Path>, runner: Option<&Path>, more: &[&str]) -> Output {
    let usual = ["--peers", "--quick", "--threads", "2", "--json"];
    let mut command = command(program.as_ref(), &usual);
    command.args(more).env_remove(RUNNER);
    if let Some(runner) = runner {
        command.env(RUNNER, runner);
    }
    command.output().unwrap()
}

/// The results of oneTBB in the output of a run, which has to succeed.
fn about_tbb(output: &Output) -> Vec<Value> {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = report["results"].as_array().unwrap().iter();
    let about = results.filter(|result| result["subject"] == "oneTBB");
    about.cloned().collect()
}

/// The last line of standard error.
fn last_line(output: &Output) -> String {
    let err = String::from_utf8_lossy(&output.stderr);
    err.lines().last().unwrap_or_default().to_owned()
}

/// A runner that is a script. Another process writes it: a file that this process has open for writing may be
/// open in the child that another test is just starting, and cannot be run until that is over.
fn script(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("runner");
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let status = Command::new("sh")
        .args(["-c", write])
        .arg(&path)
        .arg(text)
        .status();
    assert!(status.unwrap().success());
    path
}

/// Goal: oneTBB takes part in every row, with right results. Method: all rows at tiny sizes. If the runner
/// was not built, each row says so and how to build it.
#[test]
fn every_row_has_onetbb() {
    let built = built();
    let about = about_tbb(&bench(PROGRAM, built.as_deref(), &[]));
    for row in [
        "spawn", "join", "for", "graph", "submit", "frame", "load", "idle",
    ] {
        let mut of_row = about
            .iter()
            .filter(|result| result["name"] == row)
            .peekable();
        assert!(of_row.peek().is_some(), "{row} lacks oneTBB");
        for result in of_row {
            let cannot = result["cannot"].as_str().unwrap_or_default();
            match built {
                Some(_) => assert!(
                    result["median"]
                        .as_f64()
                        .is_some_and(|median| median >= 0.0)
                ),
                None => assert!(cannot.contains("cargo xtask peers"), "{result}"),
            }
            assert_eq!(result["version"].is_string(), built.is_some(), "{result}");
        }
    }
}

/// Goal: without a runner the other subjects are measured, and the report has the reason. Method: a copy of
/// the program without a runner beside it.
#[test]
fn without_a_runner_the_rest_is_measured() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("release/paceline-bench");
    fs::create_dir(program.parent().unwrap()).unwrap();
    // By another process, as in `script`.
    let status = Command::new("cp").arg(PROGRAM).arg(&program).status();
    assert!(status.unwrap().success());
    let about = about_tbb(&bench(program, None, &["join"]));
    assert_eq!(about.len(), 1);
    let cannot = about[0]["cannot"].as_str().unwrap();
    assert!(
        cannot.starts_with("not built: run `cargo xtask peers`"),
        "{cannot}"
    );
}

/// Goal: an unusable runner is a reason, not a failure. Method: a file that is no program, a runner with
/// another greeting, one that ends at once, one with another computation.
#[test]
fn a_runner_of_another_kind_is_a_reason() {
    let folder = TempDir::new().unwrap();
    let wrong_chain = format!("echo {GREETING} 0; read request; echo ok 1; read request");
    for (text, reason) in [
        ("echo hello", "not of this version"),
        ("exit 7", "exit status: 7"),
        (wrong_chain.as_str(), "computes something else"),
    ] {
        let runner = script(&folder, text);
        let about = about_tbb(&bench(PROGRAM, Some(&runner), &["join"]));
        let cannot = about[0]["cannot"].as_str().unwrap();
        assert!(cannot.contains(reason), "{cannot}");
        assert!(
            cannot.ends_with("run `cargo xtask peers` again"),
            "{cannot}"
        );
    }
    let no_program = folder.path().join("text");
    fs::write(&no_program, "text").unwrap();
    let about = about_tbb(&bench(PROGRAM, Some(&no_program), &["join"]));
    assert!(
        about[0]["cannot"]
            .as_str()
            .unwrap()
            .contains("does not start")
    );
}

/// Goal: the name of a missing runner is bad usage. Method: a path to nothing.
#[test]
fn a_runner_that_is_named_must_be_there() {
    let output = bench(PROGRAM, Some(Path::new("no/such/runner")), &["join"]);
    assert_eq!(output.status.code(), Some(2));
    let line = last_line(&output);
    assert!(
        line.contains(RUNNER) && line.contains("no/such/runner"),
        "{line}"
    );
}

/// Goal: a runner that dies or is wrong in the middle ends the command with exit code 1 and one line that
/// says so. Method: scripts that greet, pass the first check, and then exit or give a wrong sum.
#[test]
fn a_runner_that_fails_in_the_middle_is_told() {
    let folder = TempDir::new().unwrap();
    let greet = format!(
        "echo {GREETING} 0; read request; echo ok {}",
        chain(1_000, 42)
    );
    for (then, expected) in [
        (
            "read request; exit 3",
            "join: oneTBB: the runner ended instead of answering \"join\" (exit status: 3)",
        ),
        (
            "read request; echo ok 5 1 1; read request",
            "join: oneTBB: 1 instead of 610",
        ),
        (
            "read request; echo failed: no luck; read request",
            "join: oneTBB: the runner says \"failed: no luck\"",
        ),
    ] {
        let runner = script(&folder, &format!("{greet}; {then}"));
        let output = bench(PROGRAM, Some(&runner), &["join"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert_eq!(last_line(&output), format!("paceline-bench: {expected}"));
    }
}

/// Runs the runner on these lines.
fn ask(runner: &Path, requests: &str) -> (Option<i32>, Vec<String>) {
    let mut child = Command::new(runner)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // A runner that has ended early reads no more.
    let _ = pipe.write_all(requests.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().skip(1).map(str::to_owned).collect();
    (output.status.code(), lines)
}

/// Goal: the runner follows its README. Method: each request at a tiny size; the numbers that do not depend
/// on time are known.
#[test]
fn the_runner_answers_each_request() {
    let Some(runner) = built() else { return };
    let requests = "\
        chain steps=1 seed=1\n\
        spawn threads=2 jobs=10 repeats=1\n\
        join threads=2 n=10 repeats=2\n\
        for threads=2 items=10 steps=1 repeats=2\n\
        load jobs=2 syncs=1\njob 3 5\njob 1 5 0\nsync 0 0\n\
        graph threads=2 first=1 frames=2\n\
        open threads=2\n\
        submit sleep=1000 steps=10 patience=5000000000\n\
        close\n\
        frames threads=2 count=3 warmup=1 period=100000 pieces=4 steps=5 spin=0\n\
        frames threads=2 count=3 warmup=0 period=100000 pieces=4 steps=5 spin=1\n\
        idle threads=2 warmup=2 period=1000 pieces=4 steps=5 settle=1000 length=1000000\n";
    let (code, lines) = ask(&runner, requests);
    assert_eq!(code, Some(0), "{lines:?}");
    let answer = |line: usize| -> Vec<u64> {
        let words = lines[line].strip_prefix("ok").expect(&lines[line]);
        words
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect()
    };
    let counts: Vec<usize> = (0..lines.len()).map(|line| answer(line).len()).collect();
    assert_eq!(counts, [1, 2, 3, 3, 0, 4, 0, 2, 0, 8, 8, 2]);
    assert_eq!(answer(0), [chain(1, 1)]);
    assert_eq!(answer(1)[1], 10);
    assert_eq!(answer(2)[1..], [55, 110]);
    assert_eq!(answer(3)[1..], [45, 90]);
    let sum = (1..=4).fold(0u64, |sum, seed| sum.wrapping_add(chain(5, seed)));
    assert_eq!(answer(9)[1], sum.wrapping_mul(4));
    assert_eq!(answer(10)[1], sum.wrapping_mul(3));
}

/// Goal: the answer to a bad request is one line with the error, and the runner ends with exit code 2.
/// Method: one request of each kind, with a good one behind it.
#[test]
fn a_bad_request_ends_the_runner() {
    let Some(runner) = built() else { return };
    for (request, what) in [
        ("", "an empty line"),
        ("dance", "there is no command \"dance\""),
        ("spawn threads=2 jobs=1", "repeats is missing"),
        (
            "spawn threads=0 jobs=1 repeats=1",
            "threads=0 is not in 1..256",
        ),
        ("join threads=two n=1 repeats=1", "\"two\" is no number"),
        ("join threads=2 n=1 repeats=-1", "\"-1\" is no number"),
        ("join threads=2 threads=2", "threads is given twice"),
        ("join threads", "\"threads\" is not KEY=NUMBER"),
        ("join threads=2 n=1 repeats=1 more=1", "it has no more"),
        ("graph threads=2 first=1 frames=1", "load one first"),
        ("submit sleep=0 steps=0 patience=1", "open a pool first"),
        ("load jobs=1 syncs=0\njob 0 1", "has no pieces"),
        ("load jobs=1 syncs=0\njob 1 1 0", "waits for a later one"),
        ("load jobs=1 syncs=1\njob 1 1\nsync 1 0", "is at no place"),
        ("load jobs=2 syncs=0\njob 1 1\nfoo", "is not a line of job"),
    ] {
        let (code, lines) = ask(&runner, &format!("{request}\nchain steps=1 seed=1\n"));
        assert_eq!((code, lines.len()), (Some(2), 1), "{request}: {lines:?}");
        assert!(lines[0].starts_with("bad request: "), "{}", lines[0]);
        assert!(lines[0].contains(what), "{request}: {}", lines[0]);
    }
}

/// Goal: arguments other than `--version` are bad usage. Method: both.
#[test]
fn the_runner_takes_no_arguments() {
    let Some(runner) = built() else { return };
    let output = |argument| Command::new(&runner).arg(argument).output().unwrap();
    let version = output("--version");
    assert!(version.status.success());
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("oneTBB 20"));
    let bad = output("--help-me");
    assert_eq!((bad.status.code(), bad.stdout.len()), (Some(2), 0));
    assert_eq!(String::from_utf8_lossy(&bad.stderr).lines().count(), 1);
}
