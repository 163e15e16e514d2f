//! Reading parts back: the keys that are there, and whole tables in order.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::Failed;
use crate::FleetError;
use crate::table::{Table, TableName};

/// The column with the sizes of traces' files.
const SIZE: &str = "size_bytes";

/// The keys in a file of a leading table, and the sizes beside them.
pub(super) fn keys(
    path: &Path,
    table: TableName,
) -> Result<Vec<(String, Option<i64>)>, FleetError> {
    let mut found = Vec::new();
    for batch in batches(path, &[table.key(), SIZE])? {
        let batch = batch.map_err(|why| broken(path, &why))?;
        let keys = batch.column_by_name(table.key());
        let keys = keys.and_then(|keys| keys.as_string_opt::<i32>());
        let keys = keys.ok_or_else(|| broken(path, &"it has no keys"))?;
        let sizes = batch.column_by_name(SIZE);
        let sizes = sizes.and_then(|sizes| sizes.as_primitive_opt::<Int64Type>());
        for row in 0..batch.num_rows() {
            let size = sizes
                .filter(|sizes| !sizes.is_null(row))
                .map(|sizes| sizes.value(row));
            found.push((keys.value(row).to_owned(), size));
        }
    }
    Ok(found)
}

/// How many rows a file has.
pub(super) fn rows(path: &Path) -> Result<u64, FleetError> {
    let file = File::open(path).map_err(|why| FleetError::of_file("read", path, why))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let builder = builder.map_err(|why| broken(path, &why))?;
    let rows = builder.metadata().file_metadata().num_rows();
    u64::try_from(rows).map_err(|why| broken(path, &why))
}

/// The units of a leading table with an error.
pub(super) fn failures(path: &Path, table: TableName) -> Result<Vec<Failed>, FleetError> {
    let mut found = Vec::new();
    let wanted = [table.key(), "error", "again"];
    for batch in batches(path, &wanted)? {
        let batch = batch.map_err(|why| broken(path, &why))?;
        let column = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let columns = wanted.map(column);
        let [Some(keys), Some(errors), Some(again)] = columns else {
            return Err(broken(path, &"it has no keys or no errors"));
        };
        let failed = (0..batch.num_rows()).filter(|&row| !errors.is_null(row));
        found.extend(failed.map(|row| Failed {
            key: keys.value(row).to_owned(),
            error: errors.value(row).to_owned(),
            again: again.value(row).to_owned(),
        }));
    }
    Ok(found)
}

/// All rows of these files by key; those of one key as they are in their file.
pub(super) fn sorted(
    table: TableName,
    files: impl Iterator<Item = PathBuf>,
) -> Result<Table, FleetError> {
    let mut runs: Vec<(String, RecordBatch)> = Vec::new();
    for path in files {
        for batch in batches(&path, &[])? {
            let batch = batch.map_err(|why| broken(&path, &why))?;
            cut_by_key(&batch, &mut runs).ok_or_else(|| broken(&path, &"it has no keys"))?;
        }
    }
    // Stable: a unit is in one file.
    runs.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Table {
        schema: table.schema(),
        batches: in_batches(table, &runs)?,
    })
}

/// The largest batches, but for a unit with more rows.
const BATCH_ROWS: usize = 1 << 16;

/// Puts runs together: batches begin where units do, so equal units make equal batches.
fn in_batches(
    table: TableName,
    runs: &[(String, RecordBatch)],
) -> Result<Vec<RecordBatch>, FleetError> {
    let mut batches = Vec::new();
    let mut open: Vec<&RecordBatch> = Vec::new();
    let mut rows = 0;
    let join = |open: &[&RecordBatch]| {
        let joined = concat_batches(&table.schema(), open.iter().copied());
        joined.map_err(|why| FleetError::failed(format!("table {}: {why}", table.word())))
    };
    for unit in runs.chunk_by(|a, b| a.0 == b.0) {
        let of_unit: usize = unit.iter().map(|(_, batch)| batch.num_rows()).sum();
        if rows > 0 && rows + of_unit > BATCH_ROWS {
            batches.push(join(&open)?);
            open.clear();
            rows = 0;
        }
        open.extend(unit.iter().map(|(_, batch)| batch));
        rows += of_unit;
    }
    if rows > 0 {
        batches.push(join(&open)?);
    }
    Ok(batches)
}

/// Cuts a batch where its key changes.
fn cut_by_key(batch: &RecordBatch, runs: &mut Vec<(String, RecordBatch)>) -> Option<()> {
    let keys = batch.column(0).as_string_opt::<i32>()?;
    let mut begin = 0;
    for row in 1..=keys.len() {
        if row == keys.len() || keys.value(row) != keys.value(begin) {
            runs.push((
                keys.value(begin).to_owned(),
                batch.slice(begin, row - begin),
            ));
            begin = row;
        }
    }
    Some(())
}

/// The batches of a file: of these columns, or of all if none is named.
pub(super) fn batches(
    path: &Path,
    columns: &[&str],
) -> Result<ParquetRecordBatchReader, FleetError> {
    let file = File::open(path).map_err(|why| FleetError::of_file("read", path, why))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let mut builder = builder.map_err(|why| broken(path, &why))?;
    if !columns.is_empty() {
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        builder = builder.with_projection(mask);
    }
    builder.build().map_err(|why| broken(path, &why))
}

pub(super) fn broken(path: &Path, why: &dyn std::fmt::Display) -> FleetError {
    let why = why.to_string().replace(['\n', '\r'], " ");
    FleetError::input(format!(
        "{}: is no whole Parquet file of this data set ({why}); remove it, and its units are done again",
        path.display()
    ))
}
