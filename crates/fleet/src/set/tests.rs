//! Tests of data sets.

use super::*;
use crate::table::{Rows, Value};

/// A trace of this name with `losses` rows of losses.
fn unit(key: &str, losses: u64) -> Unit {
    let null = Value::Null;
    let mut traces = Rows::new(TableName::Traces);
    let mut values = vec![key.into(), null, null, Value::from(key.len())];
    values.extend([null; 14]);
    traces.push(&values);
    let mut rows = Rows::new(TableName::Losses);
    for count in 0..losses {
        rows.push(&[key.into(), null, null, "gaps".into(), count.into()]);
    }
    Unit {
        key: key.to_owned(),
        size: Some(key.len() as u64),
        error: None,
        rows: vec![rows, traces],
    }
}

fn part(units: &[(&str, u64)]) -> Part {
    let units = units.iter().map(|(key, losses)| unit(key, *losses));
    Part::new(Kind::Traces, units.collect()).unwrap()
}

fn open(path: &Path) -> DataSet {
    DataSet::open(path, Kind::Traces, "test").unwrap()
}

/// Goal: what was committed is there when the data set is opened again, in the order of keys, and a part
/// that comes twice is there once. Method: two parts, the second one twice, one of them out of order.
#[test]
fn parts_are_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    {
        let mut set = open(&path);
        assert!(set.is_empty());
        assert!(set.commit(&part(&[("m", 2), ("b", 1)])).unwrap());
        assert!(set.commit(&part(&[("c", 0)])).unwrap());
        assert!(!set.commit(&part(&[("c", 0)])).unwrap());
    }
    let set = open(&path);
    assert_eq!(
        (set.len(), set.size_of("b"), set.has("x")),
        (3, Some(1), false)
    );
    let traces = set.table(TableName::Traces).unwrap();
    let losses = set.table(TableName::Losses).unwrap();
    assert_eq!((traces.len(), losses.len()), (3, 3));
    let keys = arrow_array::cast::AsArray::as_string::<i32>(traces.batches[0].column(0));
    let keys: Vec<_> = keys.iter().flatten().collect();
    assert_eq!(keys, ["b", "c", "m"]);
}

/// Goal: a run that was interrupted between the files of a part leaves nothing of it. Method: a data set in
/// which one leading file is missing, and one file is not whole.
#[test]
fn what_is_not_complete_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    open(&path).commit(&part(&[("a", 2)])).unwrap();
    let lost = part(&[("b", 5)]);
    let before = path.join("losses").join(format!("{}.parquet", lost.name()));
    {
        let mut set = open(&path);
        set.commit(&lost).unwrap();
    }
    fs::remove_file(path.join("traces").join(format!("{}.parquet", lost.name()))).unwrap();
    let half = path.join("waits/part-0.part");
    fs::write(&half, "PAR1").unwrap();
    assert!(before.exists());
    let mut set = open(&path);
    assert!(!before.exists() && !half.exists());
    assert_eq!((set.len(), set.has("b")), (1, false));
    assert_eq!(set.table(TableName::Losses).unwrap().len(), 2);
    assert!(set.commit(&lost).unwrap());
    assert_eq!(set.table(TableName::Losses).unwrap().len(), 7);
}

/// Goal: equal units make equal files, in whatever order they come. Method: one part from both ends; what
/// was sent by another process is the same.
#[test]
fn a_part_is_a_function_of_its_units() {
    let one = part(&[("a", 3), ("b", 1), ("c", 0)]);
    let other = part(&[("c", 0), ("b", 1), ("a", 3)]);
    assert_eq!((one.files(), one.name()), (other.files(), other.name()));
    let units = one.keys().iter().map(|key| (key.clone(), Some(1)));
    let files = one
        .files()
        .iter()
        .map(|(table, bytes)| (table.word().to_owned(), bytes.clone()));
    let files: Vec<_> = files.collect();
    let sent = Part::received(Kind::Traces, units.collect(), (7, 0), files.clone()).unwrap();
    assert_eq!((sent.files(), sent.name()), (one.files(), one.name()));
    assert!(Part::received(Kind::Points, Vec::new(), (0, 0), files).is_err());
}

/// Goal: nothing is written over, and rows made in different ways are not mixed; the line says what to do.
/// Method: a file, a folder with something else, another kind, another way, two writers.
#[test]
fn what_is_not_this_data_set_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path, kind, way: &str| {
        let error = DataSet::open(path, kind, way).unwrap_err();
        assert!(error.is_input(), "{error}");
        error.to_string()
    };
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(refused(&file, Kind::Traces, "").contains("is a file"));
    assert!(refused(folder.path(), Kind::Traces, "").contains("other files in it"));
    let path = folder.path().join("a.parquet");
    let set = open(&path);
    assert!(refused(&path, Kind::Points, "test").contains("a data set of traces"));
    assert!(refused(&path, Kind::Traces, "else").contains("made with \"test\""));
    assert!(refused(&path, Kind::Traces, "test").contains("writes this data set"));
    drop(set);
    open(&path);
}

/// Goal: a file that is no Parquet file is named, and nothing is lost. Method: bytes in place of one.
#[test]
fn a_broken_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    drop(open(&path));
    let file = path.join("traces/part-0.parquet");
    fs::write(&file, "nonsense").unwrap();
    let error = DataSet::open(&path, Kind::Traces, "test")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("part-0.parquet") && error.contains("remove it"),
        "{error}"
    );
    assert!(file.exists());
}
