//! The `paceline-bench` command as its users meet it: exit codes, lines, files, JSON.
//!
//! Every test runs the built program and checks its exit code, output and files. Sizes are tiny: nothing here
//! measures, and nothing depends on how fast the machine is.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use common::PROGRAM;

fn command(arguments: &[&str]) -> Command {
    common::command(Path::new(PROGRAM), arguments)
}

/// Runs a command that should succeed, and returns its standard output.
fn fine(arguments: &[&str]) -> String {
    let output = command(arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let out = fine(arguments);
    assert_eq!(out.lines().count(), 1, "one object on one line: {out}");
    serde_json::from_str(&out).unwrap()
}

fn has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "{key} is missing in {object}");
    }
}

/// Checks that the command, with this environment, ends with exit code 2, nothing on standard output, and one
/// line with this part.
fn is_refused(line: &[&str], environment: &[(&str, &str)], part: &str) {
    let mut command = command(line);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{line:?}: {err}");
    assert_eq!((output.stdout.len(), err.lines().count()), (0, 1), "{err}");
    assert!(
        err.starts_with("paceline-bench: ") && err.contains(part),
        "{line:?}: {err}"
    );
}

/// Goal: bad usage and bad input end with exit code 2, nothing on standard output, and one line that says
/// where and what to do. Method: one of each kind, and a part that the line must have.
#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let malformed = file("malformed.md", "no place for a table");
    // The folder of a document's pictures has the name of the document without its ending.
    let malformed_twin = file("twin.md", "");
    file("twin", "");
    for (line, part) in [
        (&["juggle"][..], "spawn"),
        (&["--threads", "1"], "--threads"),
        (&["--what"], "see 'paceline-bench --help'"),
        (&["--doc", "no/such/folder.md"], "make it first"),
        (&["--doc", &malformed_twin], "folder"),
        (&["--readme", "README.md"], "--doc"),
        (&["--doc", "x.md", "--readme", &malformed], "bench:begin"),
    ] {
        is_refused(line, &[], part);
    }
}

/// Goal: bad settings in the environment are bad input, too. Method: an unknown wait policy.
#[test]
fn a_bad_environment_is_bad_input() {
    let sometimes = [("PACELINE_WAIT", "sometimes")];
    is_refused(&["--quick", "join"], &sometimes, "PACELINE_WAIT");
}

/// Goal: the help is data, fits 80 columns, and begins with the program's purpose. Method: both options.
#[test]
fn help_is_data_and_fits() {
    for line in ["--help", "-h"] {
        let help = fine(&[line]);
        let wide = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{line:?}");
        assert!(help.starts_with("Measure Paceline"), "{help}");
        assert!(help.contains("Usage: paceline-bench [OPTIONS]"), "{help}");
    }
}

/// Goal: a benchmark in an environment that changes job systems says so, on standard error and in the report.
/// Row `load` without help has no cases with help. Method: that row in a tiny size.
#[test]
fn a_changed_environment_is_told() {
    let mut command = command(&["--quick", "--json", "--os-help", "none", "load"]);
    let output = command.env("PACELINE_WORKERS", "1").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && err.contains("PACELINE_WORKERS=1 is set"),
        "{err}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        report["environment"],
        serde_json::json!(["PACELINE_WORKERS=1"])
    );
    let results = report["results"].as_array().unwrap().iter();
    let cases: std::collections::BTreeSet<&str> =
        results.filter_map(|one| one["case"].as_str()).collect();
    assert_eq!(
        cases.into_iter().collect::<Vec<_>>(),
        ["CPU time", "mean", "missed", "p99"]
    );
}

/// Goal: every row runs with every peer, gets right results and can be published. Method: all rows at tiny
/// sizes. Each subject of a row has numbers or a reason; the document has its parts and a picture for each
/// row; the front page has its table in the right place.
#[test]
fn every_benchmark_runs() {
    let folder = TempDir::new().unwrap();
    let doc = folder.path().join("performance.md");
    let line = ["--peers", "--quick", "--threads", "2", "--json", "--doc"];
    let readme = folder.path().join("README.md");
    fs::write(
        &readme,
        "above <!-- bench:begin -->old<!-- bench:end --> below",
    )
    .unwrap();
    let files = [doc.to_str().unwrap(), "--readme", readme.to_str().unwrap()];
    let report = json(&[&line[..], &files].concat());
    has_keys(
        &report,
        &["machine", "quiet", "noise", "threads", "results", "targets"],
    );
    let results = report["results"].as_array().unwrap();
    for result in results {
        has_a_number_or_a_reason(result);
    }
    for row in ROWS {
        for subject in ["paceline", "rayon", "chili", "bevy_tasks", "oneTBB"] {
            let is_it = |result: &&Value| result["name"] == row && result["subject"] == subject;
            assert!(
                results.iter().any(|result| is_it(&result)),
                "{row} lacks {subject}"
            );
        }
    }
    let targets = report["targets"].as_array().unwrap();
    assert!(
        targets.iter().all(|target| target["met"].is_null()),
        "tiny sizes are not judged"
    );
    published(&doc);
    let readme = fs::read_to_string(readme).unwrap();
    assert!(readme.starts_with("above ") && readme.ends_with(" below"));
    assert!(
        readme.contains("| spawn, ns per job |") && !readme.contains("old"),
        "{readme}"
    );
}

/// Goal: published figures are replaced by a quiet run of full size, and by no others. Method: a run of tiny
/// sizes, with a document that is there.
#[test]
fn a_page_stays_until_the_next_quiet_run() {
    let folder = TempDir::new().unwrap();
    let doc = folder.path().join("performance.md");
    fs::write(&doc, "figures").unwrap();
    let line = ["spawn", "--quick", "--doc", doc.to_str().unwrap()];
    let output = command(&line).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("it stays: sizes were those of --quick"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&doc).unwrap(), "figures");
}

fn has_a_number_or_a_reason(result: &Value) {
    has_keys(
        result,
        &[
            "name",
            "case",
            "unit",
            "subject",
            "version",
            "threads",
            "median",
            "worst",
            "min",
            "max",
            "n",
            "ratio_to_best_peer",
            "cannot",
        ],
    );
    let has_number = result["median"]
        .as_f64()
        .is_some_and(|median| median >= 0.0);
    assert!(has_number != result["cannot"].is_string(), "{result}");
}

const ROWS: [&str; 10] = [
    "spawn", "join", "for", "slices", "graph", "submit", "frame", "short", "load", "idle",
];

fn published(doc: &Path) {
    let text = fs::read_to_string(doc).unwrap();
    for part in [
        "# Performance",
        "## Machine",
        "## Results",
        "## Targets",
        "## Rules",
        "tiny sizes",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    for row in ROWS {
        let picture = doc.with_extension("").join(format!("{row}.svg"));
        let picture = fs::read_to_string(picture).unwrap();
        assert!(picture.starts_with("<svg") && picture.contains(row));
        assert!(text.contains(&format!("(performance/{row}.svg)")), "{row}");
    }
    let columns = |line: &str| line.matches(" | ").count();
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("| work |"))
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(
        table.len() > 20 && table.iter().all(|line| columns(line) == 6),
        "{table:#?}"
    );
}

/// Goal: one row can be asked for, and without peers there is nothing to compare with. Method: as JSON and as
/// tables.
#[test]
fn rows_can_be_chosen() {
    let report = json(&["--quick", "--json", "join"]);
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert!(results[0]["ratio_to_best_peer"].is_null());
    let tables = fine(&["--quick", "submit"]);
    assert!(
        tables.contains("futex wake") && !tables.contains("fib"),
        "{tables}"
    );
}
