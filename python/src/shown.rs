//! A table as a notebook shows it: its first rows, with the meanings of columns where the pointer is.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

/// How many rows are shown of a longer table.
const ROWS: usize = 10;

/// A table in HTML.
pub(crate) fn html(table: &fleet::Table) -> String {
    let fields = table.schema.fields();
    let mut out = String::from("<table><thead><tr>");
    for field in fields {
        let about = field.metadata().get("about").map_or("", String::as_str);
        let (about, name) = (escaped(about), escaped(field.name()));
        out.push_str(&format!("<th title=\"{about}\">{name}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    let rows = table
        .batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    for (batch, row) in rows.take(ROWS) {
        out.push_str("<tr>");
        out.extend((0..fields.len()).map(|column| cell(batch, column, row)));
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    let (all, shown) = (table.len(), ROWS.min(table.len()));
    if shown < all {
        out.push_str(&format!("<p>{shown} of {all} rows</p>"));
    }
    out
}

/// A cell; numbers stand at the right.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> String {
    let values = batch.column(column);
    if values.is_null(row) {
        return "<td></td>".to_owned();
    }
    let number = match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => return format!("<td>{}</td>", values.as_boolean().value(row)),
        DataType::Utf8 => {
            let text = values.as_string::<i32>().value(row);
            return format!("<td style=\"text-align: left\">{}</td>", escaped(text));
        }
        // Tables have no columns of other types.
        other => return format!("<td>{}</td>", escaped(&other.to_string())),
    };
    format!("<td style=\"text-align: right\">{number}</td>")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
