//! Reading a data set that others may be writing: no lock, and nothing is changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, StringArray};

use super::{ABOUT, About, Kind, PARQUET, read};
use crate::FleetError;
use crate::table::TableName;

/// A data set of traces to be read, as it was when it was opened.
#[derive(Debug)]
pub(crate) struct SetReader {
    path: PathBuf,
    made_with: String,
    /// The names of its parts, in order.
    parts: BTreeSet<String>,
}

impl SetReader {
    /// Looks at what is there.
    ///
    /// # Errors
    /// If it is no data set of traces.
    pub(crate) fn open(path: &Path) -> Result<SetReader, FleetError> {
        let shown = path.display();
        if path.is_file() {
            return Err(FleetError::input(format!(
                "{shown}: is a file; give the folder that `paceline fleet --out` has written"
            )));
        }
        let text = fs::read_to_string(path.join(ABOUT)).map_err(|why| {
            FleetError::input(format!(
                "{shown}: is no data set of traces ({ABOUT}: {why}); give the folder that `paceline fleet \
                 --out` has written"
            ))
        })?;
        let about: About = serde_json::from_str(&text).map_err(|why| {
            FleetError::input(format!("{shown}: its {ABOUT} cannot be read: {why}"))
        })?;
        if about.holds != Kind::Traces {
            return Err(FleetError::input(format!(
                "{shown}: is a data set of simulated runs; only traces can be compared, so give one of them"
            )));
        }
        let folder = path.join(TableName::Traces.word());
        let unreadable =
            |why| FleetError::input(format!("{}: cannot be read: {why}", folder.display()));
        let mut parts = BTreeSet::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            if file.extension().is_some_and(|end| end == PARQUET) && name.starts_with("part-") {
                parts.insert(name.into_owned());
            }
        }
        Ok(SetReader {
            path: path.to_owned(),
            made_with: about.made_with,
            parts,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How its rows were made.
    pub(crate) fn made_with(&self) -> &str {
        &self.made_with
    }

    /// Its parts: all rows of a trace are in one of them, in each table.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(String::as_str)
    }

    /// Hands the rows of a table's part to `each`, some thousand at a time. Only `columns` are read.
    ///
    /// # Errors
    /// If the file cannot be read, and those of `each`.
    pub(crate) fn rows(
        &self,
        part: &str,
        table: TableName,
        columns: &[&str],
        mut each: impl FnMut(&ReadRows<'_>) -> Result<(), FleetError>,
    ) -> Result<(), FleetError> {
        let file = self.path.join(table.word());
        let file = file.join(format!("{part}.{PARQUET}"));
        for batch in read::batches(&file, columns)? {
            let batch = batch.map_err(|why| read::broken(&file, &why))?;
            each(&ReadRows {
                file: &file,
                batch: &batch,
            })?;
        }
        Ok(())
    }
}

/// Some rows that were read.
pub(crate) struct ReadRows<'a> {
    file: &'a Path,
    batch: &'a RecordBatch,
}

impl ReadRows<'_> {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column of texts.
    pub(crate) fn texts(&self, column: &str) -> Result<&StringArray, FleetError> {
        let found = self.batch.column_by_name(column);
        let found = found.and_then(|values| values.as_string_opt::<i32>());
        found.ok_or_else(|| self.lacks(column, "texts"))
    }

    /// A column of whole numbers.
    pub(crate) fn integers(&self, column: &str) -> Result<&Int64Array, FleetError> {
        let found = self.batch.column_by_name(column);
        let found = found.and_then(|values| values.as_primitive_opt::<Int64Type>());
        found.ok_or_else(|| self.lacks(column, "whole numbers"))
    }

    fn lacks(&self, column: &str, of: &str) -> FleetError {
        FleetError::input(format!(
            "{}: has no column `{column}` of {of}; it is of another version, so make the data set again with \
             `paceline fleet`",
            self.file.display()
        ))
    }
}
