//! Data sets as Python sees them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleet::{Kind, Part, TableName};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::table::Table;
use crate::{FailedError, apart::apart, failed};

/// A part as it goes from one process to another: what it holds, its units with their sizes, rows, failures,
/// and the Parquet file of each table.
pub(crate) type Sent = (
    String,
    Vec<(String, Option<u64>)>,
    u64,
    usize,
    Vec<(String, Vec<u8>)>,
);

/// A folder of Parquet files that can be continued.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct DataSet(Arc<Mutex<Option<fleet::DataSet>>>);

/// What a data set is of, by its word.
pub(crate) fn kind(word: &str) -> PyResult<Kind> {
    match word {
        "traces" => Ok(Kind::Traces),
        "points" => Ok(Kind::Points),
        _ => Err(PyKeyError::new_err(word.to_owned())),
    }
}

pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Traces => "traces",
        Kind::Points => "points",
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl DataSet {
    /// Opens it, or makes an empty one.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, kind: &str, made_with: String) -> PyResult<DataSet> {
        let kind = self::kind(kind)?;
        let set = apart(py, move || fleet::DataSet::open(&path, kind, &made_with))?;
        let set = set.map_err(|why| failed(&why))?;
        Ok(DataSet(Arc::new(Mutex::new(Some(set)))))
    }

    /// Lets other processes write it.
    fn close(&self) {
        lock(&self.0).take();
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|set| Ok(set.len()))
    }

    /// Whether this unit is complete in it.
    fn has(&self, key: &str) -> PyResult<bool> {
        self.with(|set| Ok(set.has(key)))
    }

    /// The size that the file of this trace had when it was read.
    fn size_of(&self, key: &str) -> PyResult<Option<u64>> {
        self.with(|set| Ok(set.size_of(key)))
    }

    /// How many rows a table has.
    fn rows(&self, table: &str) -> PyResult<u64> {
        self.with(|set| {
            set.rows(named(set.kind(), table)?)
                .map_err(|why| failed(&why))
        })
    }

    /// A whole table, in the order of keys.
    fn table(&self, py: Python<'_>, table: String) -> PyResult<Table> {
        let name = self.with(|set| named(set.kind(), &table))?;
        let shared = self.0.clone();
        let read = apart(py, move || {
            lock(&shared).as_ref().map(|set| set.table(name))
        })?;
        let read = read.ok_or_else(closed)?;
        read.map(Table).map_err(|why| failed(&why))
    }

    /// The units with an error: key, error, and the command that repeats it.
    fn failures(&self) -> PyResult<Vec<(String, String, String)>> {
        let failures = self.with(|set| set.failures().map_err(|why| failed(&why)))?;
        let failures = failures.into_iter();
        Ok(failures
            .map(|one| (one.key, one.error, one.again))
            .collect())
    }

    /// Adds a part that another process has made; whether there was anything new in it.
    fn commit(&self, py: Python<'_>, sent: Sent) -> PyResult<bool> {
        let (of_kind, units, rows, failed_units, files) = sent;
        let part = Part::received(kind(&of_kind)?, units, (rows, failed_units), files);
        let part = part.map_err(|why| failed(&why))?;
        py.detach(|| {
            let mut set = lock(&self.0);
            let set = set.as_mut().ok_or_else(closed)?;
            set.commit(&part).map_err(|why| failed(&why))
        })
    }
}

fn closed() -> PyErr {
    FailedError::new_err("this data set is closed")
}

/// A table of this kind of data set.
fn named(kind: Kind, word: &str) -> PyResult<TableName> {
    let found = kind.tables().iter().find(|table| table.word() == word);
    found
        .copied()
        .ok_or_else(|| PyKeyError::new_err(word.to_owned()))
}

impl DataSet {
    /// The data set, for a thread of its own.
    pub(crate) fn shared(&self) -> Arc<Mutex<Option<fleet::DataSet>>> {
        self.0.clone()
    }

    pub(crate) fn with<R>(&self, ask: impl FnOnce(&fleet::DataSet) -> PyResult<R>) -> PyResult<R> {
        let set = lock(&self.0);
        ask(set.as_ref().ok_or_else(closed)?)
    }
}
