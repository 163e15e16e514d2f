//! `paceline fleet` and `paceline sweep` as their users meet them, and their guide.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run in a folder: exit code, standard output, standard error.
fn paceline(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, err) = paceline(folder, arguments);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// A folder with two traces and a file that is none.
fn traces() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("traces/s22/7")).unwrap();
    for name in [
        "local-spin.ftrace.txt.gz",
        "local-futex.ftrace.txt.gz",
        "README.md",
    ] {
        let to = folder.path().join("traces/s22/7").join(name);
        fs::copy(root().join("testdata/traces").join(name), to).unwrap();
    }
    folder
}

/// Goal: a fleet has a row for each file, says what failed and how to repeat it, and goes on with what is
/// new. Method: two traces and a text; then one more trace; then nothing new.
#[test]
fn a_fleet_goes_on_with_what_is_new() {
    let folder = traces();
    let fleet = [
        "fleet",
        "traces",
        "--labels",
        "{device}/{build}/",
        "--out",
        "f.parquet",
        "--json",
    ];
    let one = json(folder.path(), &fleet);
    assert_eq!(
        (&one["before"], &one["added"], &one["failed"]),
        (&0.into(), &3.into(), &1.into())
    );
    assert_eq!(one["tables"]["traces"], 3);
    assert_eq!(one["failures"][0]["key"], "s22/7/README.md");
    let again = one["failures"][0]["again"].as_str().unwrap();
    let again: Vec<&str> = again.split(' ').skip(1).collect();
    let (code, _, err) = paceline(folder.path(), &again);
    assert!(code == 2 && err.contains("known formats"), "{err}");
    let more = folder.path().join("traces/s22/7/more.txt.gz");
    fs::copy(
        root().join("testdata/traces/local-quota.ftrace.txt.gz"),
        &more,
    )
    .unwrap();
    let two = json(folder.path(), &fleet);
    assert_eq!(
        (&two["before"], &two["added"], &two["failed"]),
        (&3.into(), &1.into(), &1.into())
    );
    assert!(two["rows"].as_u64() > one["rows"].as_u64());
    assert_eq!(json(folder.path(), &fleet)["added"], 0);
    // A trace that is another one by now is not passed over.
    fs::write(&more, "").unwrap();
    let (code, _, err) = paceline(folder.path(), &fleet);
    assert!(
        code == 2 && err.contains("more.txt.gz") && err.contains("another name"),
        "{err}"
    );
}

/// Goal: a sweep has each point once, goes on with more seeds, and failed points are rows with the command
/// that repeats them. Method: three seeds, then five; a scenario that deadlocks under some seeds.
#[test]
fn a_sweep_goes_on_with_more_seeds() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sweep = |seeds: &str| {
        let text = format!(
            "scenario = \"galaxy-s22-inversion\"\npolicy = [\"eevdf-6.6\", \"eevdf-6.18\"]\nseed = {seeds}"
        );
        fs::write(at("s.toml"), text).unwrap();
        json(
            folder.path(),
            &[
                "sweep",
                "s.toml",
                "--out",
                "s.parquet",
                "--json",
                "--threads",
                "2",
            ],
        )
    };
    let one = sweep("[1, 2, 3]");
    assert_eq!(
        (&one["tables"]["points"], &one["failed"]),
        (&6.into(), &0.into())
    );
    assert!(one["tables"]["spans"].as_u64() > Some(0));
    let two = sweep("\"1-5\"");
    assert_eq!((&two["before"], &two["added"]), (&6.into(), &4.into()));
    // Two threads that take two locks in different orders.
    let scenario = "\
        about = \"a deadlock\"\nmachine = \"vm-2\"\npolicy = \"eevdf-6.18\"\nuntil = \"1 s\"\n\
        [[thread]]\nname = \"one\"\nphases = [{ lock = \"a\" }, { work = \"1 ms\" }, { lock = \"b\" }, \
        { unlock = \"b\" }, { unlock = \"a\" }]\n\
        [[thread]]\nname = \"two\"\nphases = [{ lock = \"b\" }, { work = \"1 ms\" }, { lock = \"a\" }, \
        { unlock = \"a\" }, { unlock = \"b\" }]\n";
    fs::write(at("dead.toml"), scenario).unwrap();
    fs::write(
        at("d.toml"),
        "scenario = [\"dead.toml\", \"galaxy-s22-inversion\"]\n",
    )
    .unwrap();
    let dead = json(
        folder.path(),
        &["sweep", "d.toml", "--out", "d.parquet", "--json"],
    );
    assert_eq!(
        (&dead["tables"]["points"], &dead["failed"]),
        (&2.into(), &1.into()),
        "{dead}"
    );
    let failure = &dead["failures"][0];
    assert!(
        failure["error"].as_str().unwrap().contains("deadlock"),
        "{failure}"
    );
    let again = failure["again"].as_str().unwrap();
    let again: Vec<&str> = again.split(' ').skip(1).collect();
    let (code, _, err) = paceline(folder.path(), &again);
    assert!(code == 1 && err.contains("deadlock"), "{err}");
}

/// Goal: what cannot be meant is refused in one line, before anything is written. Method: a mistake of each
/// kind.
#[test]
fn mistakes_are_one_line() {
    let folder = traces();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("unknown.toml"), "scenario = \"galaxy-s22-inversio\"").unwrap();
    fs::write(
        at("typo.toml"),
        "scenario = \"galaxy-s22-inversion\"\nsed = 3",
    )
    .unwrap();
    fs::write(
        at("workers.toml"),
        "scenario = \"galaxy-s22-inversion\"\nworkers = 3",
    )
    .unwrap();
    fs::create_dir(at("empty")).unwrap();
    for (arguments, part) in [
        (&["fleet", "none", "--out", "o"][..], "no such folder"),
        (&["fleet", "empty", "--out", "o"], "no traces are there"),
        (&["fleet", "traces", "--out", "traces"], "other files in it"),
        (&["fleet", "traces", "--out", "typo.toml"], "is a file"),
        (
            &["fleet", "traces", "--out", "o", "--labels", "x"],
            "{device}",
        ),
        (&["sweep", "none.toml", "--out", "o"], "none.toml"),
        (
            &["sweep", "unknown.toml", "--out", "o"],
            "galaxy-s22-inversion",
        ),
        (&["sweep", "typo.toml", "--out", "o"], "typo.toml: line 2"),
        (&["sweep", "workers.toml", "--out", "o"], "--workers"),
    ] {
        let (code, out, err) = paceline(folder.path(), arguments);
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (2, "", 1),
            "{err}"
        );
        assert!(err.contains(part), "{arguments:?}: {err}");
        assert!(!at("o").exists(), "{arguments:?}");
    }
    // All of them failed: that is no fleet.
    fs::write(at("empty/a.txt"), "no trace").unwrap();
    let (code, out, err) = paceline(folder.path(), &["fleet", "empty", "--out", "o"]);
    assert!(
        code == 1 && out.contains("1 trace failed") && err.contains("none of 1 trace"),
        "{err}"
    );
}

/// Runs a script in which `paceline` is the command under test.
#[cfg(unix)]
fn shell(folder: &Path, script: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_paceline"));
    let mut paths = vec![program.parent().unwrap().to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut shell = Command::new("sh");
    let output = shell
        .current_dir(folder)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .args(["-ec", script])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {err}");
}

/// Goal: two builds of a fleet are compared: what one lacks has no interval and says so, the files and the
/// JSON have the same rows, and mistakes are one line. Method: the two traces, which are of one build; a data
/// set with itself, builds that there are not, files instead of folders, and files that cannot be written.
#[test]
fn fleets_are_compared() {
    let folder = traces();
    let fleet = |out: &str| {
        let labels = ["--labels", "{device}/{build}/"];
        let arguments = [&["fleet", "traces", "--out", out][..], &labels].concat();
        json(folder.path(), &[&arguments[..], &["--json"]].concat())
    };
    fleet("a");
    fleet("b");
    let compare = [
        "fleet",
        "compare",
        "a",
        "b",
        "--out",
        "c.parquet",
        "--report",
        "c.html",
    ];
    let told = json(folder.path(), &[&compare[..], &["--json"]].concat());
    let rows = told["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert_eq!(told["few"], rows.len());
    for row in rows {
        assert!(row["verdict"] == "few" && row["low_ns"].is_null(), "{row}");
        assert_eq!(row["a_ns"], row["b_ns"]);
    }
    let (code, out, err) = paceline(folder.path(), &compare);
    assert!(code == 0 && out.contains("Too few traces"), "{out}{err}");
    let page = fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(page.contains("What too few traces tell of") && page.contains("b against a"));
    assert!(
        fs::read(folder.path().join("c.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    for (arguments, part) in [
        (&["a"][..], "B.parquet"),
        (&["a", "a"], "with itself"),
        (&["a", "--builds", "7", "7"], "with itself"),
        (
            &["a", "--builds", "7", "8"],
            "has build \"8\"; there are: 7",
        ),
        (&["a", "b", "--device", "pad"], "there are: s22"),
        (&["a", "traces"], "is no data set of traces"),
        (&["a", "c.parquet"], "is a file"),
        (&["a", "b", "--draws", "1"], "100 to 20000"),
        (
            &["a", "b", "--report", "none/c.html"],
            "there is no folder none",
        ),
        (&["a", "b", "--out", "o", "--report", "o"], "--out"),
    ] {
        let arguments = [&["fleet", "compare"][..], arguments].concat();
        let (code, out, err) = paceline(folder.path(), &arguments);
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (2, "", 1),
            "{err}"
        );
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
}

/// Goal: the guide's commands work as they stand, one after the other, and print what it says. Method: each
/// file of the guide is written and each of its commands run, in a folder beside the project's traces.
#[test]
#[cfg(unix)]
fn the_guide_says_what_happens() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(root().join("testdata"), folder.path().join("testdata")).unwrap();
    let guide = fs::read_to_string(root().join("docs/guide/fleet.md")).unwrap();
    let mut ran = 0;
    for block in guide.split("\n```").skip(1).step_by(2) {
        let (first, text) = block.split_once('\n').unwrap();
        if let Some(name) = first.strip_prefix("toml title=") {
            fs::write(folder.path().join(name), text).unwrap();
        }
        if first == "sh" && text.starts_with("for ") {
            shell(folder.path(), text);
            ran += 1;
        }
        let Some(shown) = text.strip_prefix("$ ").filter(|_| first == "console") else {
            continue;
        };
        let (command, expected) = shown.split_once('\n').unwrap_or((shown, ""));
        let Some(command) = command.strip_prefix("paceline ") else {
            continue;
        };
        let quotes = command.split('\'').enumerate();
        let words: Vec<&str> = quotes
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            })
            .collect();
        let (code, out, err) = paceline(folder.path(), &words);
        // Of a comparison something that grew is a result.
        let is_result = command.starts_with("fleet compare") && err.contains("grew beyond chance");
        assert_eq!(code, i32::from(is_result), "{command}: {err}");
        match expected.trim_end().strip_suffix('…') {
            Some(beginning) => assert!(out.starts_with(beginning), "{command}: {out}"),
            None => assert_eq!(out.trim_end(), expected.trim_end(), "{command}"),
        }
        ran += 1;
    }
    assert!(ran >= 6, "{ran}");
}
