//! Rows that are filled one after the other.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};

use super::{ColumnSpec, ColumnType, TableName, columns};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// None.
    Null,
    /// A text.
    Text(&'a str),
    /// A whole number, such as a time in nanoseconds.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Value<'a> {
        Value::Text(text)
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Value::Bool(is)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

/// Numbers keep their 64 bits; those of 2^63 and more, which only seeds and broken traces have, are negative.
impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Integer(number as i64)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Integer(i64::from(number))
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Value::from(number as u64)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Null, Into::into)
    }
}

/// A column while it is filled.
enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Bool(BooleanBuilder),
}

impl ColumnBuilder {
    /// A builder's own `new` takes memory for a thousand rows, which is most of what a part with many small
    /// units would take.
    fn new(of_type: ColumnType) -> ColumnBuilder {
        match of_type {
            ColumnType::Text => ColumnBuilder::Text(StringBuilder::with_capacity(0, 0)),
            ColumnType::Integer => ColumnBuilder::Integer(Int64Builder::with_capacity(0)),
            ColumnType::Number => ColumnBuilder::Number(Float64Builder::with_capacity(0)),
            ColumnType::Bool => ColumnBuilder::Bool(BooleanBuilder::with_capacity(0)),
        }
    }

    fn push(&mut self, column: &ColumnSpec, value: Value<'_>) {
        assert!(
            column.is_nullable || value != Value::Null,
            "column {} has a value in every row",
            column.name
        );
        match (self, value) {
            (ColumnBuilder::Text(to), Value::Text(text)) => to.append_value(text),
            (ColumnBuilder::Text(to), Value::Null) => to.append_null(),
            (ColumnBuilder::Integer(to), Value::Integer(number)) => to.append_value(number),
            (ColumnBuilder::Integer(to), Value::Null) => to.append_null(),
            (ColumnBuilder::Number(to), Value::Number(number)) => to.append_value(number),
            (ColumnBuilder::Number(to), Value::Null) => to.append_null(),
            (ColumnBuilder::Bool(to), Value::Bool(is)) => to.append_value(is),
            (ColumnBuilder::Bool(to), Value::Null) => to.append_null(),
            (_, value) => panic!("column {} cannot hold {value:?}", column.name),
        }
    }

    /// Appends what another one of the same type has.
    fn append(&mut self, other: &ColumnBuilder) {
        match (self, other) {
            (ColumnBuilder::Text(to), ColumnBuilder::Text(from)) => {
                let (ends, valid) = (from.offsets_slice(), from.validity_slice());
                for (row, ends) in ends.windows(2).enumerate() {
                    let text = &from.values_slice()[ends[0] as usize..ends[1] as usize];
                    let text = std::str::from_utf8(text).expect("texts were appended");
                    to.append_option(is_valid(valid, row).then_some(text));
                }
            }
            (ColumnBuilder::Integer(to), ColumnBuilder::Integer(from)) => {
                for (row, number) in from.values_slice().iter().enumerate() {
                    to.append_option(is_valid(from.validity_slice(), row).then_some(*number));
                }
            }
            (ColumnBuilder::Number(to), ColumnBuilder::Number(from)) => {
                for (row, number) in from.values_slice().iter().enumerate() {
                    to.append_option(is_valid(from.validity_slice(), row).then_some(*number));
                }
            }
            (ColumnBuilder::Bool(to), ColumnBuilder::Bool(from)) => {
                for row in 0..from.len() {
                    let is = bit(from.values_slice(), row);
                    to.append_option(is_valid(from.validity_slice(), row).then_some(is));
                }
            }
            _ => panic!("the columns of a table have one type each"),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            ColumnBuilder::Text(mut it) => Arc::new(it.finish()),
            ColumnBuilder::Integer(mut it) => Arc::new(it.finish()),
            ColumnBuilder::Number(mut it) => Arc::new(it.finish()),
            ColumnBuilder::Bool(mut it) => Arc::new(it.finish()),
        }
    }
}

/// Whether a row has a value, in the bits that say so; without any, all have.
fn is_valid(valid: Option<&[u8]>, row: usize) -> bool {
    valid.is_none_or(|valid| bit(valid, row))
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

/// Rows of one table.
pub struct Rows {
    table: TableName,
    columns: Vec<ColumnBuilder>,
    len: usize,
    bytes: usize,
}

impl Rows {
    /// No rows yet.
    pub fn new(table: TableName) -> Rows {
        let columns = columns::of(table).iter();
        Rows {
            table,
            columns: columns
                .map(|column| ColumnBuilder::new(column.of_type))
                .collect(),
            len: 0,
            bytes: 0,
        }
    }

    /// Appends a row: a value for each column, in the schema's order.
    ///
    /// # Panics
    /// If there are more or fewer values than columns, if a value is of another type than its column, or if
    /// it is missing where the schema wants one.
    pub fn push(&mut self, values: &[Value<'_>]) {
        let specs = columns::of(self.table);
        assert_eq!(values.len(), specs.len(), "a row of {}", self.table.word());
        for ((column, spec), value) in self.columns.iter_mut().zip(specs).zip(values) {
            self.bytes += match value {
                Value::Text(text) => text.len() + 4,
                _ => 8,
            };
            column.push(spec, *value);
        }
        self.len += 1;
    }

    /// Appends the rows of another one.
    ///
    /// # Panics
    /// If they are of another table.
    pub(crate) fn append(&mut self, other: &Rows) {
        assert_eq!(self.table, other.table, "rows of one table");
        for (column, from) in self.columns.iter_mut().zip(&other.columns) {
            column.append(from);
        }
        self.len += other.len;
        self.bytes += other.bytes;
    }

    /// The table they are of.
    pub fn table(&self) -> TableName {
        self.table
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// About how many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows as columns.
    ///
    /// # Panics
    /// Never: each row has a value for each column.
    pub fn finish(self) -> RecordBatch {
        let columns = self.columns.into_iter().map(ColumnBuilder::finish);
        let batch = RecordBatch::try_new(self.table.schema(), columns.collect());
        batch.expect("the columns are of the schema's types and of one length")
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    /// Goal: values arrive in their columns, missing ones as nulls. Method: two rows of the smallest table.
    #[test]
    fn rows_become_columns() {
        let mut rows = Rows::new(TableName::Losses);
        rows.push(&[
            "a".into(),
            "phone".into(),
            Value::Null,
            "gaps".into(),
            3_u64.into(),
        ]);
        rows.push(&[
            "b".into(),
            Value::Null,
            "9".into(),
            "gaps".into(),
            u64::MAX.into(),
        ]);
        let batch = rows.finish();
        assert_eq!(batch.num_rows(), 2);
        let devices = batch.column_by_name("device").unwrap().as_string::<i32>();
        assert!(devices.value(0) == "phone" && devices.is_null(1));
        let counts = batch
            .column_by_name("count")
            .unwrap()
            .as_primitive::<Int64Type>();
        assert_eq!(counts.values().to_vec(), [3, -1]);
    }

    /// Goal: rows that are appended are as if they had been pushed there. Method: rows of a table with
    /// columns of every type, with and without values, over several bytes of bits; all in one, and in three.
    #[test]
    fn rows_are_appended() {
        let table = TableName::Points;
        let row = |number: usize| -> Vec<Value<'static>> {
            let specs = columns::of(table).iter().enumerate();
            let value = specs.map(|(at, spec)| match spec.of_type {
                _ if spec.is_nullable && (at + number).is_multiple_of(3) => Value::Null,
                ColumnType::Text => Value::Text(["", "a", "höher", "xyz"][(number + at) % 4]),
                ColumnType::Integer => Value::Integer((number * at) as i64 - 7),
                ColumnType::Number => Value::Number(number as f64 / 3.0),
                ColumnType::Bool => Value::Bool((number + at).is_multiple_of(2)),
            });
            value.collect()
        };
        let of = |numbers: std::ops::Range<usize>| {
            let mut rows = Rows::new(table);
            for number in numbers {
                rows.push(&row(number));
            }
            rows
        };
        let mut joined = Rows::new(table);
        for part in [0..1, 1..14, 14..14, 14..40] {
            joined.append(&of(part));
        }
        let (all, bytes) = (of(0..40), of(0..40).bytes());
        assert_eq!((joined.len(), joined.bytes()), (40, bytes));
        assert_eq!(joined.finish(), all.finish());
    }

    /// Goal: a row that does not fit is found where it is made. Method: a value too few.
    #[test]
    #[should_panic(expected = "a row of losses")]
    fn a_row_of_another_length_is_refused() {
        Rows::new(TableName::Losses).push(&["a".into()]);
    }

    /// Goal: a value that the schema demands is demanded. Method: a row without its key.
    #[test]
    #[should_panic(expected = "column trace has a value")]
    fn a_missing_key_is_refused() {
        let null = Value::Null;
        Rows::new(TableName::Losses).push(&[null, null, null, "gaps".into(), 3_u64.into()]);
    }
}
