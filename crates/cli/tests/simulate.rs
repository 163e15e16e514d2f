//! `paceline simulate` as its users meet it: exit codes, lines, files, JSON.
//!
//! Runs are small; the simulator's results are tested in its own crate.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command
        .args(arguments)
        .env_remove("PACELINE_WAIT")
        .env("RUST_BACKTRACE", "0");
    command
}

/// Runs a command that should succeed, and gives its standard output.
fn fine(arguments: &[&str]) -> String {
    let run = command(arguments).output().unwrap();
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(0), "{arguments:?}: {err}");
    String::from_utf8(run.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    one_object(&fine(arguments))
}

fn one_object(out: &str) -> Value {
    assert_eq!(out.lines().count(), 1, "one object on one line: {out}");
    serde_json::from_str(out).unwrap()
}

fn has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "{key} is missing in {object}");
    }
}

/// A folder for files, and one of them.
fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The lengths of a file's packets: a Perfetto trace is nothing but fields number 1 of type 2.
fn packets(bytes: &[u8]) -> Vec<usize> {
    let mut rest = bytes;
    let mut lengths = Vec::new();
    while let Some((&tag, after)) = rest.split_first() {
        assert_eq!(tag, 0x0a, "packet {}", lengths.len());
        let end = after.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let digits = after[..=end].iter().rev();
        let length = digits.fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
        rest = &after[end + 1 + length..];
        lengths.push(length);
    }
    lengths
}

/// Goal: bad usage and bad input end with exit code 2, nothing on standard output, and one line that says
/// what there is or what to do. Method: one of each kind, and a part that the line must have.
#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let malformed = file(&folder, "malformed.json", "{\"jobs\": [\n{\"label\": 7}]}");
    let head = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[[thread]]\nname = 'a'\n";
    let mistaken = file(&folder, "mistaken.toml", &format!("{head}nice = 500\n"));
    let unheld = format!("{head}phases = [{{ unlock = 'm' }}]\n");
    let unheld = file(&folder, "unheld.toml", &unheld);
    let line = "me-1 [000] d..2. 5.000001: cpu_frequency: state=1 cpu_id=0\n";
    let text = file(&folder, "text", &format!("# tracer: nop\n{line}{line}"));
    let packed = "../../testdata/traces/local-spin.ftrace.txt.gz";
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(packed);
    let packed = packed.to_str().unwrap().to_owned();
    for (line, part) in [
        (&["simulate"][..], "SCENARIO"),
        (&["simulate", "yeld-poll"], "are yield-poll, "),
        (&["simulate", "no/such.toml"], "no/such.toml"),
        (&["simulate", &malformed], "rt-app file malformed"),
        (&["simulate", &mistaken], "mistaken.toml:6:8: wrong: "),
        (
            &["simulate", &unheld],
            "unheld.toml: thread \"a\": it unlocks",
        ),
        (&["simulate", &text], "text: this is a trace; what it"),
        (&["simulate", &packed], "by --replay "),
        (&["simulate", "barrier", "--machine", "vm-3"], "are vm-2, "),
        (
            &["simulate", "barrier", "--machine", "ideal-0"],
            "ideal-256",
        ),
        (
            &["simulate", "barrier", "--machine", &malformed],
            "malformed.json:1",
        ),
        (
            &["simulate", "barrier", "--policy", "eevdf"],
            "are eevdf-6.6, ",
        ),
        (&["simulate", "barrier", "--seed", "-1"], "--seed"),
        (&["simulate", "barrier", "--workers", "2"], "--workers"),
        (&["simulate", "time-slices", "--workers", "2"], "no program"),
        (
            &["simulate", "time-slices", "--machine", "mcu"],
            "names CPU 1",
        ),
        (
            &["simulate", "rtos-messages", "--policy", "rtos-unique"],
            "policy rtos-unique refuses thread \"B\": priority 4 is taken",
        ),
        (
            // A thread of the program: known only when it is started.
            &["simulate", "job-graph", "--policy", "rtos-unique"],
            "policy rtos-unique refuses thread \"paceline",
        ),
        (
            &["simulate", "barrier", "--trace", "no/such/folder.pftrace"],
            "make it first",
        ),
        (&["simulate", "barrier", "--list"], "--list"),
    ] {
        let run = command(line).output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr),
        );
        assert_eq!(run.status.code(), Some(2), "{line:?}: {err}");
        assert_eq!((&*out, err.lines().count()), ("", 1), "{err}");
        assert!(err.contains(part), "{line:?}: {err}");
    }
}

/// Goal: `--json` is one object with the documented keys, whose numbers agree with each other. Method:
/// frames of the job system beside hogs.
#[test]
fn a_run_as_json() {
    let line = [
        "simulate",
        "oversubscribed",
        "--seed",
        "3",
        "--workers",
        "2",
        "--json",
    ];
    let report = json(&line);
    has_keys(
        &report,
        &[
            "scenario",
            "machine",
            "policy",
            "seed",
            "trace_hash",
            "makespan_ns",
            "events",
            "energy_uj",
            "threads",
            "frame_ns",
            "spans",
            "clusters",
            "quota",
            "waits",
            "inversions",
            "checks",
            "stats",
            "trace",
            "assumed",
            "replay",
            "notes",
        ],
    );
    has_keys(&report["frame_ns"], &["mean", "p50", "p99", "max"]);
    assert_eq!(
        [&report["scenario"], &report["machine"], &report["policy"]],
        ["oversubscribed", "vm-2", "eevdf-6.18"]
    );
    assert_eq!(report["seed"], 3);
    assert!(report["inversions"].is_array() && report["waits"].is_array());
    has_these_threads(&report);
    assert!(number(&report["frame_ns"]["p50"]) <= number(&report["frame_ns"]["max"]));
    assert_eq!(report["spans"][0]["count"], 60);
    assert_eq!(number(&report["stats"]["frames"]), 60);
    for check in report["checks"].as_array().unwrap() {
        has_keys(check, &["name", "ok", "note"]);
        assert_eq!(check["ok"], true, "{check}");
    }
    assert_eq!(report, json(&line), "the same once more");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Hogs, main thread and workers, each with times that fit into the whole.
fn has_these_threads(report: &Value) {
    let threads = report["threads"].as_array().unwrap();
    let names: Vec<&str> = threads
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    let expected = [
        "hog 0",
        "hog 1",
        "hog 2",
        "hog 3",
        "main",
        "paceline 0",
        "paceline 1",
    ];
    assert_eq!(names, expected);
    for (place, thread) in threads.iter().enumerate() {
        assert_eq!(number(&thread["tid"]), place as u64 + 1);
        has_keys(&thread["switches"], &["voluntary", "involuntary"]);
        let times = ["run_ns", "runnable_ns", "sleep_ns"].map(|key| number(&thread[key]));
        assert!(times.iter().sum::<u64>() <= number(&report["makespan_ns"]));
    }
}

/// Goal: the text has what ran, on what, and how much of it is assumed; lists show all there is. Method:
/// words that must be there.
#[test]
fn a_run_for_people() {
    let out = fine(&["simulate", "galaxy-s22-inversion"]);
    for word in [
        "cfs-4.12",
        " values",
        "modelled, not measured",
        "WaitForJobGroupID",
        "involuntary",
        "prime",
        "trace hash ",
    ] {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
    for (list, what, name) in [
        ("--list", "scenarios", "yield-poll"),
        ("--machines", "machines", "thunderx2"),
        ("--policies", "policies", "rustland-333"),
    ] {
        assert!(fine(&["simulate", list]).contains(name));
        let rows = json(&["simulate", list, "--json"])[what].clone();
        let is_it = |row: &&Value| row["name"] == name && row["about"].is_string();
        assert!(
            rows.as_array().unwrap().iter().any(|row| is_it(&row)),
            "{rows}"
        );
    }
}

/// Goal: the lab's first two commands show what the text around them says: an inversion under the policy that
/// the scenario is meant for, and none under another. Method: both lines are there, run, and print what is
/// shown below them.
#[test]
fn the_labs_examples_run() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let text = fs::read_to_string(lab).unwrap();
    let folder = TempDir::new().unwrap();
    let trace = file(&folder, "phone.pftrace", "");
    let mut rest = text.as_str();
    for (line, has_inversion) in [
        ("simulate galaxy-s22-inversion\n", true),
        (
            "simulate galaxy-s22-inversion --policy eevdf-6.18 --trace phone.pftrace\n",
            false,
        ),
    ] {
        let command = format!("cargo run --release -- {line}");
        let (_, after) = rest.split_once(&command).expect(line);
        let shown = after.split("```").nth(2).unwrap();
        let shown = shown.strip_prefix("text\n").expect(line);
        let words = line.split_whitespace();
        let words: Vec<&str> = words
            .map(|word| match word {
                "phone.pftrace" => &trace,
                word => word,
            })
            .collect();
        let out = fine(&words);
        assert!(out.contains(shown), "{line}: {out}");
        assert_eq!(out.contains("busy_wait"), has_inversion, "{line}: {out}");
        rest = after;
    }
}

/// Goal: a written trace lasts as long as the run. Method: what two threads ran, by the run's own account and
/// by the trace, of a scenario that ends while one of them runs.
#[test]
fn a_trace_lasts_until_the_end_of_the_run() {
    let folder = TempDir::new().unwrap();
    let trace = file(&folder, "t.pftrace", "");
    let run = json(&["simulate", "time-slices", "--trace", &trace, "--json"]);
    let read = json(&["diagnose", &trace, "--json"]);
    assert_eq!(read["end_ns"], run["makespan_ns"]);
    let threads = run["threads"].as_array().unwrap();
    assert!(threads.len() > 1);
    for thread in threads {
        let found = read["threads"].as_array().unwrap().iter();
        let found = found.clone().find(|it| it["name"] == thread["name"]);
        assert_eq!(found.unwrap()["running_ns"], thread["run_ns"], "{thread}");
    }
}

/// Goal: `--trace` writes packets and nothing else, with the names of threads, jobs and spans. Method: walk
/// through the file of two frames; and of a scenario without a program.
#[test]
fn traces_are_perfettos() {
    let folder = TempDir::new().unwrap();
    let text = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[[thread]]\nname = 'other thread'\n\
        phases = [{ begin = 'nap' }, { sleep = '1 ms' }, { end = 'nap' }]\n\
        [program]\nkind = 'frames'\ngraph = 'g.json'\nframes = 2\n";
    file(
        &folder,
        "g.json",
        r#"{"jobs": [{"label": "first of all", "us": 30},
                     {"label": "second", "us": 2, "after": ["first of all"]}]}"#,
    );
    let scenario = file(&folder, "s.toml", text);
    let trace = folder.path().join("t.pftrace");
    let report = json(&[
        "simulate",
        &scenario,
        "--trace",
        trace.to_str().unwrap(),
        "--json",
    ]);
    let bytes = fs::read(&trace).unwrap();
    assert!(packets(&bytes).len() > 20);
    assert_eq!(report["trace"]["bytes"], bytes.len());
    assert!(report["trace"]["events"].as_u64() > report["events"].as_u64());
    let has = |word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    for word in [
        "first of all",
        "second",
        "other thread",
        "paceline 0",
        "frame 1",
        "nap",
    ] {
        assert!(has(word), "{word}");
    }
    let trace = trace.to_str().unwrap();
    let report = json(&["simulate", "rtos-messages", "--trace", trace, "--json"]);
    assert_eq!(report["trace"]["events"], report["events"]);
    assert!(packets(&fs::read(trace).unwrap()).len() > 5);
}

/// Goal: `diagnose` reports of the file what `simulate` reports of its run, and every wait has its causes:
/// nothing is unknown. Method: frames of the job system beside hogs, and a scenario without a program.
#[test]
fn traces_are_diagnosed_as_their_runs() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("t.pftrace");
    let trace = trace.to_str().unwrap();
    for (scenario, waits) in [("oversubscribed", 100), ("galaxy-s22-inversion", 1)] {
        let told = json(&["simulate", scenario, "--trace", trace, "--json"]);
        let mut diagnosed = json(&["diagnose", trace, "--json"]);
        // What remedies would be worth, `diagnose` alone says.
        for inversion in diagnosed["inversions"].as_array_mut().unwrap() {
            inversion.as_object_mut().unwrap().remove("gains");
        }
        assert!(told["waits"].as_array().unwrap().len() >= waits);
        for key in ["waits", "inversions"] {
            assert_eq!(told[key], diagnosed[key], "{scenario}: {key}");
        }
        for wait in told["waits"].as_array().unwrap() {
            for cause in wait["causes"].as_array().unwrap() {
                let known = !["unknown", "not_ready"].contains(&cause["kind"].as_str().unwrap());
                assert!(known, "{scenario}: {wait}");
            }
        }
        assert_eq!(diagnosed["losses"], serde_json::json!({}));
    }
}

/// Goal: a recording is simulated where it was made and elsewhere, with its waits as what is measured.
/// Method: the CPU times of the recording come back; on a phone the same waits have other lengths; a text
/// without scheduler events, and a scenario or workers beside the trace, are bad usage.
#[test]
fn a_recording_is_simulated() {
    let trace = "../../testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
    let here = json(&["simulate", "--replay", trace, "--json"]);
    let ran = |report: &Value, name: &str| {
        let mut threads = report["threads"].as_array().unwrap().iter();
        let thread = threads.find(|thread| thread["name"] == name).unwrap();
        thread["run_ns"].as_u64().unwrap()
    };
    let recorded = json(&["diagnose", trace, "--json"]);
    for thread in recorded["threads"].as_array().unwrap() {
        let (name, was) = (thread["name"].as_str().unwrap(), &thread["running_ns"]);
        if ["high-bus", "low-holder", "mid-comms"].contains(&name) {
            let was = was.as_u64().unwrap();
            assert!(ran(&here, name).abs_diff(was) * 25 <= was, "{name}");
        }
    }
    let spans = here["spans"].as_array().unwrap();
    assert_eq!(spans[0]["name"], "lock bus");
    assert_eq!(spans[0]["count"], 29);
    let there = json(&[
        "simulate",
        "--replay",
        trace,
        "--machine",
        "galaxy-s22-exynos",
        "--policy",
        "cfs-4.12",
        "--json",
    ]);
    assert_eq!(there["machine"], "galaxy-s22-exynos");
    assert!(there["spans"][0]["count"].as_u64() > Some(20));
    assert_ne!(there["spans"][0]["max"], spans[0]["max"]);
    for (arguments, part) in [
        (
            vec!["../../testdata/traces/catapult-atrace-6cpu-markers.txt.gz"],
            "no scheduler events",
        ),
        (vec![trace, "galaxy-s22-inversion"], "cannot be used with"),
        (vec![trace, "--workers", "3"], "has no program"),
    ] {
        let mut command = command(&[&["simulate", "--replay"], &arguments[..]].concat());
        let run = command.output().unwrap();
        let error = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

/// Goal: rt-app's files are scenarios, by their ending or by their beginning. Method: one of each, and one
/// that asks for an unsupported feature.
#[test]
fn files_of_rt_app_run() {
    let folder = TempDir::new().unwrap();
    let text = r#"/* video */ { "global": { "duration": 1 },
        "tasks": { "video": { "instance": 2,
                              "run": 2000, "timer": { "ref": "unique", "period": 16667 } } } }"#;
    for name in ["video.json", "video.txt"] {
        let report = json(&["simulate", &file(&folder, name, text), "--json"]);
        assert_eq!(
            (&report["scenario"], &report["machine"]),
            (&"video".into(), &"vm-2".into())
        );
        let run = report["threads"][1]["run_ns"].as_u64().unwrap();
        assert!(
            (118_000_000..125_000_000).contains(&run),
            "60 times 2 ms: {run}"
        );
    }
    let forks = file(
        &folder,
        "forks.json",
        &text.replace("\"run\": 2000", "\"fork\": \"x\""),
    );
    let run = command(&["simulate", &forks]).output().unwrap();
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        (run.status.code(), err.lines().count()),
        (Some(2), 1),
        "{err}"
    );
    assert!(err.contains("\"video\"") && err.contains("fork"), "{err}");
}

/// Goal: body times that were measured here are used there, by label; a file that lacks a label is refused.
/// Method: record two frames of scene raster, then simulate it with and without the recorded costs, on two
/// seeds.
#[test]
fn recorded_costs_are_used() {
    let folder = TempDir::new().unwrap();
    let costs = folder.path().join("c.toml");
    let line = [
        "frames",
        "--scene",
        "raster",
        "--frames",
        "2",
        "--fps",
        "0",
        "--record-costs",
    ];
    fine(&[&line[..], &[costs.to_str().unwrap()]].concat());
    let scenario = |name: &str, more: &str| {
        let text = format!(
            "about = 'x'\nmachine = 'core-i9-12900k'\npolicy = 'eevdf-6.6'\n[program]\nkind = 'frames'\n\
             scene = 'raster'\nframes = 2\nfps = 0\nworkers = 3\n{more}"
        );
        file(&folder, name, &text)
    };
    let own = scenario("own.toml", "");
    let recorded = scenario("recorded.toml", "costs = 'c.toml'");
    let frame = |arguments: &[&str]| {
        let report = json(&[&["simulate", "--json"], arguments].concat());
        report["frame_ns"]["mean"].as_u64().unwrap()
    };
    let [a, b, c] = [&[&own[..]][..], &[&recorded], &[&recorded, "--seed", "2"]].map(frame);
    assert!(a != b && b != c, "{a} {b} {c}");
    assert!(fine(&["simulate", &recorded]).contains("recorded on"));
    let text = fs::read_to_string(&costs).unwrap();
    fs::write(&costs, text.replace("name = \"bin\"", "name = \"pin\"")).unwrap();
    let run = command(&["simulate", &recorded]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(last_line(&run).contains("\"bin\""), "{}", last_line(&run));
}

/// Goal: a bad wait policy in the environment, which simulated job systems take as well, is bad input; a good
/// one is part of the command that does the run again. Method: one of each.
#[test]
fn the_environments_wait_policy_counts() {
    let line = ["simulate", "job-graph", "--workers", "3", "--json"];
    let with = |wait: &str| command(&line).env("PACELINE_WAIT", wait).output().unwrap();
    let bad = with("sometimes");
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        last_line(&bad).contains("PACELINE_WAIT"),
        "{}",
        last_line(&bad)
    );
    let report = one_object(&String::from_utf8(with("passive").stdout).unwrap());
    let replay = report["replay"].as_str().unwrap();
    assert!(
        replay.starts_with("PACELINE_WAIT=passive paceline simulate job-graph "),
        "{replay}"
    );
    assert_ne!(report["trace_hash"], json(&line)["trace_hash"]);
}

fn last_line(run: &Output) -> String {
    let err = String::from_utf8(run.stderr.clone()).unwrap();
    err.lines().last().unwrap().to_owned()
}

/// Goal: a failed check is exit code 1: the report with its threads, a last line with the error, the seed,
/// the command that repeats the run and a trace that can be looked at; standard output has the data all the
/// same. Method: a deadlock, a panic, a step limit, starvation and a program that the time was too short for;
/// the command is run again.
#[test]
fn what_fails_can_be_had_again() {
    let folder = TempDir::new().unwrap();
    let head = "about = 'x'\nmachine = 'ideal-1'\npolicy = 'eevdf-6.18'\n";
    let thread =
        |name: &str, phases: &str| format!("[[thread]]\nname = '{name}'\nphases = [{phases}]\n");
    let deadlock = format!(
        "{head}{}{}",
        thread("a", "{ lock = 'x' }, { sleep = '1 ms' }, { lock = 'y' }"),
        thread("b", "{ lock = 'y' }, { sleep = '1 ms' }, { lock = 'x' }")
    );
    // In files of rt-app this is found only when it happens.
    let panics = r#"{"global": {"duration": 1}, "tasks": {"a": {"loop": 1, "unlock": "x"}}}"#;
    let panics = panics.to_owned();
    let hogs = format!(
        "starvation = '1 ms'\n{}{}count = 3\ncpus = [0]\n",
        head.replace("ideal-1", "vm-2"),
        thread("a", "{ work = '50 ms' }")
    );
    let short =
        format!("until = '20 ms'\n{head}[program]\nkind = 'frames'\nframes = 9\njobs = 20\n");
    let poll = format!(
        "{head}{}",
        thread("a", "{ wait = { flag = 'f', by = 'yield' } }")
    );
    for (name, text, more, check, words) in [
        (
            "deadlock",
            &deadlock,
            &[][..],
            "end",
            &[
                "deadlock",
                "\"a\" waits for mutex \"y\", held by thread \"b\"",
            ][..],
        ),
        ("panics", &panics, &[], "end", &["\"a\" panicked"]),
        (
            "hogs",
            &hogs,
            &["--seed", "5"],
            "kernel",
            &["has waited", "seed 5"],
        ),
        ("short", &short, &[], "program", &["until", " frames"]),
        (
            "poll poll",
            &poll,
            &["--steps", "5000"],
            "end",
            &["5000 steps", "--steps 5000"],
        ),
    ] {
        let path = file(&folder, &format!("{name}.toml"), text);
        let line = [&["simulate", path.as_str(), "--json"], more].concat();
        let last = fails_and_can_be_had_again(&line, check, &folder);
        for word in words {
            assert!(last.contains(word), "{word}: {last}");
        }
    }
}

/// Runs the command twice, the second time as the first one's message says; gives the last line of the
/// message.
fn fails_and_can_be_had_again(line: &[&str], check: &str, folder: &TempDir) -> String {
    let run = command(line).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{line:?}");
    let (err, last) = (String::from_utf8_lossy(&run.stderr), last_line(&run));
    assert!(err.contains("thread 0 \""), "{err}");
    assert!(last.starts_with(&format!("paceline: {check}: ")), "{last}");
    let report = one_object(&String::from_utf8_lossy(&run.stdout));
    let checks = report["checks"].as_array().unwrap();
    assert!(
        checks
            .iter()
            .any(|of| of["name"] == check && of["ok"] == false),
        "{report}"
    );
    let trace = report["trace"]["path"].as_str().unwrap();
    assert!(last.ends_with(trace) && Path::new(trace).starts_with(folder.path()));
    assert!(!packets(&fs::read(trace).unwrap()).is_empty());
    let replay = report["replay"].as_str().unwrap();
    assert!(last.contains(replay), "{last}");
    if cfg!(unix) {
        again(replay, &report["trace_hash"], folder);
    }
    last
}

/// Runs the command that is to do the same, in a shell.
fn again(replay: &str, hash: &Value, folder: &TempDir) {
    let program = env!("CARGO_BIN_EXE_paceline");
    let line = replay.replacen("paceline", &format!("'{program}'"), 1);
    let run = Command::new("sh")
        .args(["-c", &format!("{line} --json")])
        .env("TMPDIR", folder.path())
        .env_remove("PACELINE_WAIT")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{line}");
    let report = one_object(&String::from_utf8_lossy(&run.stdout));
    assert_eq!(&report["trace_hash"], hash, "{line}");
}

/// Goal: a scenario's disturbances reach the run and are said, another seed is another run, and two hogs
/// under RR are shown to run 100 ms at a time. Method: hogs beside stolen CPUs on two seeds, and the
/// library's hogs.
#[test]
fn disturbances_are_asked_for_in_files() {
    let folder = TempDir::new().unwrap();
    let head = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[[thread]]\nname = 'a'\ncount = 3\n\
        phases = [{ work = '30 ms' }]\n";
    let stolen = format!("{head}[perturb]\nstolen-every = '3 ms'\nstolen-max = '1 ms'\n");
    let (quiet, stolen) = (
        file(&folder, "q.toml", head),
        file(&folder, "s.toml", &stolen),
    );
    let makespan = |scenario: &str, seed: &str| {
        number(&json(&["simulate", scenario, "--seed", seed, "--json"])["makespan_ns"])
    };
    assert_eq!(makespan(&quiet, "1"), makespan(&quiet, "2"));
    assert_ne!(makespan(&stolen, "1"), makespan(&stolen, "2"));
    assert!(makespan(&stolen, "1") > makespan(&quiet, "1") + 1_000_000);
    let said = fine(&["simulate", &stolen]);
    let words = "a CPU is gone every 3.000 ms for up to 1.000 ms";
    assert!(said.contains(words), "{said}");
    let turns = fine(&["simulate", "time-slices", "--policy", "rr"]);
    assert_eq!(turns.matches(" 100.000 ms ").count(), 2, "{turns}");
}

/// Goal: a change that would take the last CPU offline is bad input, and says when. Method: both CPUs of two.
#[test]
fn the_last_cpu_stays() {
    let folder = TempDir::new().unwrap();
    let text = "about = 'x'\nmachine = 'vm-2'\npolicy = 'eevdf-6.18'\n[[thread]]\nname = 'a'\n\
        phases = [{ work = '30 ms' }]\n[[change]]\nat = '1 ms'\noffline = [0, 1]\n";
    let run = command(&["simulate", &file(&folder, "off.toml", text)])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    let last = last_line(&run);
    assert!(
        last.contains("at 1.000 ms") && last.contains("--machine"),
        "{last}"
    );
}
