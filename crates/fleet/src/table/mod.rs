//! Tables: rows that are filled one after the other, with a schema that names its units.

mod columns;
mod rows;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use rows::{Rows, Value};

/// The version of the schemas, in their metadata. It changes if a column goes or means something else; new
/// columns may come.
const VERSION: &str = "1";

/// The tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TableName {
    /// A row for each trace.
    Traces,
    /// A row for each frame that was explained.
    Frames,
    /// A row for each wait that was explained, frames included.
    Waits,
    /// A row for each cause of a wait; those of one wait sum to its length.
    Causes,
    /// A row for each inversion.
    Inversions,
    /// A row for each kind of loss in a trace.
    Losses,
    /// A row for each simulated run.
    Points,
    /// A row for what a simulated run has measured on one thread under one name.
    Spans,
    /// A row for each wait, cause and inversion of two fleets that were compared. No data set has it.
    Changes,
}

impl TableName {
    /// How many there are.
    const COUNT: usize = TableName::Changes as usize + 1;

    /// The tables of traces, the leading one last: it says which traces are complete.
    pub const OF_TRACES: &'static [TableName] = &[
        TableName::Frames,
        TableName::Waits,
        TableName::Causes,
        TableName::Inversions,
        TableName::Losses,
        TableName::Traces,
    ];

    /// The tables of sweeps, the leading one last.
    pub const OF_POINTS: &'static [TableName] = &[TableName::Spans, TableName::Points];

    /// Its name in the data set.
    pub fn word(self) -> &'static str {
        match self {
            TableName::Traces => "traces",
            TableName::Frames => "frames",
            TableName::Waits => "waits",
            TableName::Causes => "causes",
            TableName::Inversions => "inversions",
            TableName::Losses => "losses",
            TableName::Points => "points",
            TableName::Spans => "spans",
            TableName::Changes => "changes",
        }
    }

    /// Its columns: each has metadata `about`, and `unit` if it has one.
    pub fn schema(self) -> SchemaRef {
        // It is asked for with every unit, and its texts are many.
        static MADE: [OnceLock<SchemaRef>; TableName::COUNT] =
            [const { OnceLock::new() }; TableName::COUNT];
        MADE[self as usize]
            .get_or_init(|| self.make_schema())
            .clone()
    }

    fn make_schema(self) -> SchemaRef {
        let fields: Vec<Field> = columns::of(self).iter().map(ColumnSpec::field).collect();
        let about = [
            ("paceline.table", self.word()),
            ("paceline.version", VERSION),
        ];
        let about = about.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Arc::new(Schema::new_with_metadata(fields, HashMap::from(about)))
    }

    /// The column by which a unit is known.
    pub(crate) fn key(self) -> &'static str {
        columns::of(self)[0].name
    }
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnType {
    Text,
    /// Signed, although few values are: a difference of two is one in every program that reads them.
    Integer,
    Number,
    Bool,
}

impl ColumnType {
    fn data_type(self) -> DataType {
        match self {
            ColumnType::Text => DataType::Utf8,
            ColumnType::Integer => DataType::Int64,
            ColumnType::Number => DataType::Float64,
            ColumnType::Bool => DataType::Boolean,
        }
    }
}

/// A column as a schema declares it.
#[derive(Clone, Copy, Debug)]
struct ColumnSpec {
    name: &'static str,
    of_type: ColumnType,
    is_nullable: bool,
    about: &'static str,
}

/// Ends of names that are units.
const UNITS: &[(&str, &str)] = &[("_ns", "ns"), ("_bytes", "bytes"), ("_uj", "uJ")];

impl ColumnSpec {
    fn unit(&self) -> Option<&'static str> {
        let found = UNITS.iter().find(|(end, _)| self.name.ends_with(end));
        found.map(|(_, unit)| *unit)
    }

    fn field(&self) -> Field {
        let mut about = HashMap::from([("about".to_owned(), self.about.to_owned())]);
        if let Some(unit) = self.unit() {
            about.insert("unit".to_owned(), unit.to_owned());
        }
        Field::new(self.name, self.of_type.data_type(), self.is_nullable).with_metadata(about)
    }
}

/// A table in memory: batches of one schema.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, in order.
    pub batches: Vec<RecordBatch>,
}

impl Table {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One table of the rows of several units, which are all of one table.
pub fn concat(name: TableName, rows: impl IntoIterator<Item = Rows>) -> Table {
    let batches = rows.into_iter().map(Rows::finish);
    Table {
        schema: name.schema(),
        batches: batches.filter(|batch| batch.num_rows() > 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [TableName; TableName::COUNT] = [
        TableName::Traces,
        TableName::Frames,
        TableName::Waits,
        TableName::Causes,
        TableName::Inversions,
        TableName::Losses,
        TableName::Points,
        TableName::Spans,
        TableName::Changes,
    ];

    /// Goal: a schema tells what each column is and which unit it has. Method: all of them; a column that
    /// ends in a unit has that unit in its metadata, names are unique, and the key is never null.
    #[test]
    fn schemas_tell_units_and_meanings() {
        for table in ALL {
            let schema = table.schema();
            assert!(!schema.fields()[0].is_nullable(), "{table:?}");
            let mut names: Vec<&String> =
                schema.fields().iter().map(|field| field.name()).collect();
            for field in schema.fields() {
                assert!(!field.metadata()["about"].is_empty(), "{field}");
                let unit = field.metadata().get("unit").map(String::as_str);
                let end = field.name().rsplit('_').next();
                match end {
                    Some("ns") => assert_eq!(unit, Some("ns"), "{field}"),
                    Some("uj") => assert_eq!(unit, Some("uJ"), "{field}"),
                    _ => assert!(unit.is_none() || end == Some("bytes"), "{field}"),
                }
            }
            names.sort();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{table:?}");
        }
    }
}
