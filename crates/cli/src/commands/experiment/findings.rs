//! The findings of an experiment: tables, pictures, claims.

use comfy_table::{CellAlignment, Table as Drawn};
use console::output;
use event::Nanos;
use serde_json::{Map, Value, json};

use super::claim::{Claim, short};
use super::plot::Plot;

/// All of it, in the order in which it is shown.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) tables: Vec<Table>,
    pub(super) claims: Vec<Claim>,
    pub(super) plots: Vec<Plot>,
    /// Other facts that a reader has to know, such as a part that was left out.
    pub(super) notes: Vec<String>,
    /// Whether what was only chosen was varied.
    pub(super) is_varied: bool,
}

/// A table.
pub(super) struct Table {
    /// What it shows, and where: on which machine, under which policy.
    pub(super) title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Number(f64),
    Time(Nanos),
    /// Nothing was measured here.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number as f64)
    }
}

impl From<Nanos> for Cell {
    fn from(time: Nanos) -> Cell {
        Cell::Time(time)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::None, Into::into)
    }
}

impl Cell {
    pub(super) fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => short(*number),
            Cell::Time(time) => time.to_string(),
            Cell::None => "–".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
            Cell::Time(time) => json!(time.0),
            Cell::None => Value::Null,
        }
    }

    fn is_number(&self) -> bool {
        !matches!(self, Cell::Text(_))
    }
}

impl Table {
    /// An empty one.
    pub(super) fn new<const N: usize>(title: impl Into<String>, columns: [&str; N]) -> Table {
        Table {
            title: title.into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// The same with columns that are computed.
    pub(super) fn with_columns(title: impl Into<String>, columns: Vec<String>) -> Table {
        Table {
            title: title.into(),
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.title);
        self.rows.push(cells);
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut drawn = output::table();
        drawn.set_header(&self.columns);
        for row in &self.rows {
            drawn.add_row(row.iter().map(Cell::text));
        }
        self.align(&mut drawn);
        format!("{}\n{drawn}", self.title)
    }

    fn align(&self, drawn: &mut Drawn) {
        for (index, column) in drawn.column_iter_mut().enumerate() {
            if self.rows.iter().all(|row| row[index].is_number()) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    /// For documents.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let is_number = |index: usize| self.rows.iter().all(|row| row[index].is_number());
        let rule = |index| if is_number(index) { "---:" } else { "---" }.to_owned();
        let mut out = line(self.columns.clone());
        out.push_str(&line((0..self.columns.len()).map(rule).collect()));
        for row in &self.rows {
            out.push_str(&line(row.iter().map(Cell::text).collect()));
        }
        out
    }

    /// What it shows, and its columns in their order, which a row as an object does not keep.
    pub(super) fn head(&self) -> Value {
        json!({ "title": self.title, "columns": self.columns })
    }

    /// A row as an object each. Times are in nanoseconds, and whole; other numbers have a fraction, if only
    /// `.0`.
    pub(super) fn json(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| {
            let title = ("table".to_owned(), json!(self.title));
            let cells = self.columns.iter().cloned().zip(row.iter().map(Cell::json));
            Value::Object(std::iter::once(title).chain(cells).collect::<Map<_, _>>())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one table is the same for people, documents and machines. Method: a cell of each kind.
    #[test]
    fn a_table_in_three_forms() {
        let mut table = Table::new("switches", ["policy", "count", "time", "other"]);
        table.row(["a|b".into(), 9.0.into(), Nanos(1_500).into(), Cell::None]);
        assert!(table.text().contains("1.500 µs"));
        assert_eq!(
            table.markdown(),
            "| policy | count | time | other |\n| --- | ---: | ---: | ---: |\n\
             | a\\|b | 9 | 1.500 µs | – |\n"
        );
        let rows: Vec<Value> = table.json().collect();
        let expected = json!({
            "table": "switches", "policy": "a|b", "count": 9.0, "time": 1500, "other": null
        });
        assert_eq!(rows, [expected]);
    }
}
