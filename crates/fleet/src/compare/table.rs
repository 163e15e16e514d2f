//! What was compared, as a table.

use std::path::Path;

use super::Changes;
use crate::FleetError;
use crate::set::{parquet_file, write_whole};
use crate::table::{Rows, Table, TableName, Value, concat};

impl Changes {
    /// All rows, in order.
    pub fn table(&self) -> Table {
        let mut rows = Rows::new(TableName::Changes);
        for row in &self.rows {
            let [a, b] = row.mean_ns;
            let ends = row.interval_ns;
            rows.push(&[
                row.of.word().into(),
                row.process.as_ref().into(),
                (&row.wait_kind).into(),
                (&row.wait_group).into(),
                row.kind.as_ref().into(),
                row.who.as_ref().into(),
                row.traces[0].into(),
                row.traces[1].into(),
                row.waits[0].into(),
                row.waits[1].into(),
                a.into(),
                b.into(),
                row.change_ns().into(),
                ends.map(|[low, _]| low).into(),
                ends.map(|[_, high]| high).into(),
                Value::from(row.growth()),
                row.direction.word().into(),
            ]);
        }
        concat(TableName::Changes, [rows])
    }

    /// Writes the table as one Parquet file, which is there whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FleetError> {
        let bytes = parquet_file(TableName::Changes, &self.table().batches)?;
        write_whole(path, &bytes)
    }
}
