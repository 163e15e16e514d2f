//! Tests of traces as tables.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::*;
use crate::set::{DataSet, Kind};
use crate::table::Table;
use crate::work::{Done, Watch, run};

fn testdata() -> String {
    format!("{}/../../testdata/traces", env!("CARGO_MANIFEST_DIR"))
}

fn column(table: &Table, name: &str) -> Vec<i64> {
    let batches = table.batches.iter();
    let columns = batches.flat_map(|batch| {
        let column = batch
            .column_by_name(name)
            .unwrap()
            .as_primitive::<Int64Type>();
        column
            .iter()
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>()
    });
    columns.collect()
}

fn texts(table: &Table, name: &str) -> Vec<String> {
    let batches = table.batches.iter();
    let columns = batches.flat_map(|batch| {
        let column = batch.column_by_name(name).unwrap().as_string::<i32>();
        column
            .iter()
            .map(|text| text.unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    });
    columns.collect()
}

/// Stops after so many units.
struct Until(usize, Mutex<usize>);

impl Watch for Until {
    fn reached(&self, done: Done) {
        *self.1.lock().unwrap() = done.units;
    }

    fn is_stopped(&self) -> bool {
        *self.1.lock().unwrap() >= self.0
    }
}

fn fleet(folder: &str, set: &mut DataSet, threads: usize, watch: &dyn Watch) -> usize {
    let options = TraceOptions::default();
    let files = find(folder, None).unwrap().files;
    let files: Vec<_> = files
        .into_iter()
        .filter(|file| !set.has(&file.key))
        .collect();
    let work = |file: &TraceFile| unit_of_file(file, &options);
    let ran = run(&files, Some(threads), set, work, broken_trace, watch);
    ran.unwrap().done.units
}

/// The rows of all tables, in order.
fn all(set: &DataSet) -> Vec<RecordBatch> {
    let tables = TableName::OF_TRACES.iter();
    tables
        .flat_map(|&table| set.table(table).unwrap().batches)
        .collect()
}

/// Goal: every trace of a folder has its row and its causes, a file that is none is a row with its error,
/// and a run that was stopped goes on: the result is that of one run. Method: small traces of every format,
/// on one thread and on three, whole, and stopped after two.
#[test]
fn a_fleet_of_traces_becomes_tables() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces/phone/7");
    fs::create_dir_all(&traces).unwrap();
    for name in [
        "local-futex.ftrace.txt.gz",
        "local-spin.ftrace.txt.gz",
        "catapult-atrace-6cpu-markers.txt.gz",
        "ms-android12-emulator-a.pftrace.gz",
        "README.md",
    ] {
        fs::copy(Path::new(&testdata()).join(name), traces.join(name)).unwrap();
    }
    let below = folder.path().join("traces").to_string_lossy().into_owned();
    let open = |name: &str| DataSet::open(&folder.path().join(name), Kind::Traces, "").unwrap();
    let mut whole = open("whole");
    assert_eq!(fleet(&below, &mut whole, 1, &()), 5);
    let mut cut = open("cut");
    let first = fleet(&below, &mut cut, 1, &Until(2, Mutex::default()));
    assert_eq!(first, 2);
    drop(cut);
    let mut cut = open("cut");
    assert_eq!(fleet(&below, &mut cut, 3, &()), 3);
    assert!(all(&whole) == all(&cut), "the tables differ");

    let table = |name| whole.table(name).unwrap();
    let traces = table(TableName::Traces);
    let errors = texts(&traces, "error");
    let failed: Vec<_> = errors.iter().filter(|error| !error.is_empty()).collect();
    assert_eq!((traces.len(), failed.len()), (5, 1));
    assert!(
        failed[0].contains("README.md") && failed[0].contains("known formats"),
        "{failed:?}"
    );
    assert_eq!(texts(&traces, "trace")[0], "phone/7/README.md");
    assert!(texts(&traces, "again")[0].starts_with("paceline diagnose "));
    // The causes of each wait sum to its length.
    let (waits, causes) = (table(TableName::Waits), table(TableName::Causes));
    let lengths: i64 = column(&waits, "duration_ns").iter().sum();
    assert_eq!(column(&causes, "cause_ns").iter().sum::<i64>(), lengths);
    assert!(lengths > 0 && !table(TableName::Inversions).is_empty());
    let frames = column(&traces, "frames").iter().sum::<i64>();
    assert_eq!(table(TableName::Frames).len() as i64, frames);
}

/// Goal: device and build come from the path, and a sidecar file says otherwise; a wrong one is the error of
/// its trace. Method: three files with no trace in them.
#[test]
fn labels_come_from_paths_and_sidecars() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("s22/7")).unwrap();
    for (name, text) in [
        ("s22/7/a.txt", ""),
        ("s22/7/b.txt", ""),
        ("s22/7/b.txt.labels.json", r#"{"build": "8"}"#),
        ("s22/7/c.txt", ""),
        ("s22/7/c.txt.labels.json", r#"{"bild": "8"}"#),
        (".hidden", ""),
    ] {
        fs::write(at(name), text).unwrap();
    }
    let pattern: LabelPattern = "{device}/{build}/".parse().unwrap();
    let found = find(&folder.path().to_string_lossy(), Some(&pattern)).unwrap();
    let by_pattern = folder
        .path()
        .join("**/*.txt")
        .to_string_lossy()
        .into_owned();
    assert_eq!(find(&by_pattern, Some(&pattern)).unwrap(), found);
    let units = found
        .files
        .iter()
        .map(|file| unit_of_file(file, &TraceOptions::default()));
    let rows = units.map(|unit| unit.rows.into_iter().next().unwrap());
    let table = crate::table::concat(TableName::Traces, rows);
    assert_eq!(texts(&table, "device"), ["s22", "s22", "s22"]);
    assert_eq!(texts(&table, "build"), ["7", "8", "7"]);
    let errors = texts(&table, "error");
    assert!(
        errors[0].contains("is empty") && errors[1].contains("is empty"),
        "{errors:?}"
    );
    assert!(
        errors[2].contains("c.txt.labels.json") && errors[2].contains("bild"),
        "{errors:?}"
    );
}

/// Goal: a panic on one trace is that trace's error. Method: work that panics on one of three.
#[test]
fn a_panic_is_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut set = DataSet::open(&folder.path().join("a"), Kind::Traces, "").unwrap();
    let files = ["a", "b", "c"].map(|key| TraceFile {
        key: key.to_owned(),
        path: key.into(),
        size: 0,
        labels: Labels::default(),
    });
    let work = |file: &TraceFile| {
        assert_ne!(file.key, "b", "not this one");
        broken_trace(file, "fine")
    };
    let ran = run(&files, Some(2), &mut set, work, broken_trace, &());
    assert_eq!(ran.unwrap().done.units, 3);
    let errors = texts(&set.table(TableName::Traces).unwrap(), "error");
    assert!(errors[1].starts_with("panicked: ") && errors[1].contains("not this one"));
    assert_eq!(errors[2], "fine");
}

/// Goal: a place without traces is refused in one line. Method: nothing, an empty folder, a pattern of
/// nothing.
#[test]
fn a_place_without_traces_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_string_lossy().into_owned();
    for given in [&format!("{empty}/none"), &empty, &format!("{empty}/*.gz")] {
        let error = find(given, None).unwrap_err();
        assert!(
            error.is_input() && error.to_string().contains("**/*.pftrace*"),
            "{error}"
        );
    }
}
