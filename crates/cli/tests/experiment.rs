//! `paceline experiment` as its users meet it: the list, tables and claims, JSON, files, exit codes.
//!
//! The findings of experiments are tested in their own modules.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn paceline(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.arg("experiment").args(arguments).output().unwrap()
}

/// Runs it as it should, and gives its standard output.
fn fine(arguments: &[&str]) -> String {
    let run = paceline(arguments);
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        (run.status.code(), err.as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    String::from_utf8(run.stdout).unwrap()
}

/// Goal: bad usage ends with exit code 2, nothing on standard output, and one line that helps. Method: one of
/// each kind.
#[test]
fn bad_usage_is_one_line_and_exit_code_2() {
    for (line, part) in [
        (&["vitual-slice"][..], "are virtual-slice, "),
        (&["virtual-slice", "--all"], "--all"),
        (&["virtual-slice", "--sim", "--real"], "--real"),
        (
            &["virtual-slice", "--plots", "no/such/folder"],
            "make it first",
        ),
        (&["--all", "--doc", "Cargo.toml"], "make it first"),
        (&["virtual-slice", "--set", "slice=1"], "there are: unit, "),
        (&["virtual-slice", "--set", "unit=long"], "unit is 1 ms"),
        (&["--all", "--set", "unit=2"], "--set"),
        (&["virtual-slice", "--real", "--sensitivity"], "--real"),
    ] {
        let run = paceline(line);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{line:?}: {err}");
        assert_eq!((run.stdout.len(), err.lines().count()), (0, 1), "{err}");
        assert!(err.contains(part), "{line:?}: {err}");
    }
}

/// Goal: without a name there is a list, as with --list. Method: both, and as JSON.
#[test]
fn without_a_name_there_is_a_list() {
    let out = fine(&[]);
    assert_eq!(out, fine(&["--list"]));
    assert!(
        out.contains("virtual-slice") && out.contains("source 003"),
        "{out}"
    );
    let list: Value = serde_json::from_str(&fine(&["--json"])).unwrap();
    let names = list["experiments"].as_array().unwrap().iter();
    let mut names = names.map(|experiment| experiment["name"].as_str().unwrap());
    assert!(names.all(|name| out.contains(name)));
    // Whether it has a part for the machine at hand, which `cargo xtask vm` asks.
    let nothing_here = |name: &str| {
        let all = list["experiments"].as_array().unwrap();
        let it = all.iter().find(|it| it["name"] == name).unwrap();
        it["nothing_here"].clone()
    };
    assert_eq!(nothing_here("priority-inversion"), Value::Null);
    assert_eq!(nothing_here("wait-for"), "the policy is a kernel's");
}

/// Goal: a run says the same in words and as an object with the documented keys, twice the same, and writes
/// its pictures and its page. Method: the quickest experiment, in all forms.
#[test]
fn a_run_in_all_its_forms() {
    let line = ["virtual-slice", "--quick", "--sim"];
    let out = fine(&line);
    assert!(
        out.contains("ok      004-a") && out.contains("not so  004-e"),
        "{out}"
    );
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let as_json = [&line[..], &["--json", "--plots", path, "--doc", path]].concat();
    let (once, again) = (fine(&as_json), fine(&as_json));
    assert_eq!(once, again);
    let report: Value = serde_json::from_str(&once).unwrap();
    for key in [
        "name", "source", "machine", "policy", "tables", "rows", "claims", "notes",
    ] {
        assert!(report.get(key).is_some(), "{key} is missing in {once}");
    }
    for claim in report["claims"].as_array().unwrap() {
        for key in ["id", "text", "claimed", "got", "unit", "ok", "note"] {
            assert!(claim.get(key).is_some(), "{key} is missing in {claim}");
        }
        assert!(out.contains(claim["id"].as_str().unwrap()), "{claim}");
    }
    assert_eq!(report["claims"][0]["got"], 9.0);
    assert_eq!(report["rows"][0]["switches"], 9.0);
    assert_eq!(report["tables"][0]["title"], report["rows"][0]["table"]);
    let columns = report["tables"][0]["columns"].as_array().unwrap();
    assert!(
        columns
            .iter()
            .all(|name| report["rows"][0].get(name.as_str().unwrap()).is_some())
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("virtual-slice-schedules.svg").contains("</svg>"));
    let page = read("virtual-slice.md");
    for part in [
        "Does a slice made of what a task promises",
        "## What was only chosen",
        "nothing of it was varied",
        "004-e",
        "**contradicted**",
        "virtual-slice-frames.svg",
        "boot flags",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
}

/// Goal: with --sensitivity a claim says in how many settings it holds, each run in a process of its own,
/// and depends on what turns it over. Method: the quickest experiment; a claim that hangs on nothing, one
/// that hangs on values and holds, and one that a value turns over.
#[test]
fn what_was_only_chosen_is_varied() {
    let out = fine(&[
        "rtos-priorities",
        "--quick",
        "--sim",
        "--sensitivity",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let claims = report["claims"].as_array().unwrap();
    let of = |id: &str| claims.iter().find(|claim| claim["id"] == id).unwrap();
    assert_eq!(
        (&of("003-m")["settings"], &of("003-m")["ok"]),
        (&1.into(), &true.into())
    );
    let holds = of("003-i");
    assert_eq!(
        (&holds["settings"], &holds["holds_in"]),
        (&8.into(), &8.into())
    );
    assert_eq!(of("003-p")["verdict"], "depends");
    assert_eq!(report["sensitivity"], true);
}
