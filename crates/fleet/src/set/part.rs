//! Parts: the rows of several units as Parquet files, in memory.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use sha2::{Digest, Sha256};

use super::Kind;
use crate::FleetError;
use crate::table::{Rows, TableName};

/// The rows of one unit.
pub struct Unit {
    /// Its key.
    pub key: String,
    /// Of a trace, the size of its file.
    pub size: Option<u64>,
    /// The error in its row.
    pub error: Option<String>,
    /// Its rows, those of a table together.
    pub rows: Vec<Rows>,
}

impl Unit {
    /// About how many bytes its rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(Rows::bytes).sum()
    }
}

/// The rows of several units as Parquet files, in memory: what one machine sends to another.
#[derive(Clone, Debug)]
pub struct Part {
    kind: Kind,
    keys: Vec<String>,
    sizes: Vec<Option<i64>>,
    failed: usize,
    rows: u64,
    /// The leading one last.
    files: Vec<(TableName, Vec<u8>)>,
}

impl Part {
    /// The rows of these units, in the order of their keys: equal for equal units.
    ///
    /// # Errors
    /// If Parquet refuses what it is given, which it does for no rows that [`Rows`] takes.
    pub fn new(kind: Kind, mut units: Vec<Unit>) -> Result<Part, FleetError> {
        units.sort_by(|a, b| a.key.cmp(&b.key));
        let failed = units.iter().filter(|unit| unit.error.is_some()).count();
        let keys = units.iter().map(|unit| unit.key.clone()).collect();
        let sizes = units.iter().map(|unit| unit.size.map(|size| size as i64));
        let sizes = sizes.collect();
        let mut tables: BTreeMap<TableName, Rows> = BTreeMap::new();
        let mut rows = 0;
        for of_unit in units.into_iter().flat_map(|unit| unit.rows) {
            rows += of_unit.len() as u64;
            let table = of_unit.table();
            let all = tables.entry(table).or_insert_with(|| Rows::new(table));
            all.append(&of_unit);
        }
        let mut files = Vec::new();
        for &table in kind.tables() {
            let all = tables.remove(&table);
            let batches: Vec<RecordBatch> = all.map(Rows::finish).into_iter().collect();
            files.push((table, parquet_file(table, &batches)?));
        }
        Ok(Part {
            kind,
            keys,
            sizes,
            failed,
            rows,
            files,
        })
    }

    /// A part that another process has made, from what it sent.
    ///
    /// # Errors
    /// If a table is missing, or one that the kind does not have is there.
    pub fn received(
        kind: Kind,
        units: Vec<(String, Option<u64>)>,
        (rows, failed): (u64, usize),
        files: Vec<(String, Vec<u8>)>,
    ) -> Result<Part, FleetError> {
        let mut files: BTreeMap<String, Vec<u8>> = files.into_iter().collect();
        let of_tables = kind.tables().iter();
        let of_tables = of_tables.map(|&table| Some((table, files.remove(table.word())?)));
        let of_tables: Option<Vec<_>> = of_tables.collect();
        let of_tables = of_tables.filter(|_| files.is_empty());
        let Some(of_tables) = of_tables else {
            return Err(FleetError::failed(
                "a part that was received has other tables",
            ));
        };
        let (keys, sizes): (Vec<_>, Vec<_>) = units.into_iter().unzip();
        let sizes: Vec<Option<u64>> = sizes;
        Ok(Part {
            kind,
            keys,
            sizes: sizes
                .into_iter()
                .map(|size| size.map(|size| size as i64))
                .collect(),
            failed,
            rows,
            files: of_tables,
        })
    }

    /// What it is of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its units, in order.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The sizes of the files of its traces.
    pub(crate) fn sizes(&self) -> &[Option<i64>] {
        &self.sizes
    }

    /// How many of its units have an error.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// How many rows it has, in all tables.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A Parquet file for each table of its kind, the leading one last.
    pub fn files(&self) -> &[(TableName, Vec<u8>)] {
        &self.files
    }

    /// The name of its files: a function of its keys.
    pub(crate) fn name(&self) -> String {
        let mut hash = Sha256::new();
        for key in &self.keys {
            hash.update((key.len() as u64).to_le_bytes());
            hash.update(key.as_bytes());
        }
        let hash = hash.finalize();
        let digits: String = hash
            .iter()
            .take(12)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("part-{digits}")
    }
}

/// One Parquet file of these batches: equal for equal batches.
pub(crate) fn parquet_file(
    table: TableName,
    batches: &[RecordBatch],
) -> Result<Vec<u8>, FleetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("paceline".to_owned())
        .build();
    let wrong = |why| FleetError::failed(format!("cannot write table {}: {why}", table.word()));
    let mut bytes = Vec::new();
    let writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties));
    let mut writer = writer.map_err(wrong)?;
    for batch in batches {
        writer.write(batch).map_err(wrong)?;
    }
    writer.close().map_err(wrong)?;
    Ok(bytes)
}
