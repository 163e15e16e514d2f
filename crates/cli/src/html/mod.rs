//! Reports for a browser: one file that holds all it shows, so that it can be kept, sent and opened offline.
//!
//! This module knows nothing of what is reported: it has the frame of a page, tables, and two kinds of
//! pictures. Pictures are SVG inside of the page, drawn with the page's own colours, light or dark as the
//! reader likes it. A tooltip explains each part under the pointer. There is no script in a page.
//!
//! Invariant: text of traces (names of threads, labels) becomes text of the page, never markup.

pub(crate) mod dots;
pub(crate) mod lanes;
mod ticks;

use std::path::Path;

use comfy_table::{Row, Table};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use console::{Failure, output};

const STYLE: &str = include_str!("style.css");

/// Writes a page.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(path: &Path, title: &str, body: &Markup) -> Result<(), Failure> {
    output::write_file(path, page(title, body).as_bytes())
}

fn page(title: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("paceline ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (hatch())
                h1 { (title) }
                (body)
                footer { "Written by paceline " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    };
    markup.into_string()
}

/// The style's `#hatch`.
fn hatch() -> Markup {
    html! {
        svg.defs aria-hidden="true" {
            pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
                patternTransform="rotate(45)" {
                rect.hatched width="6" height="6" {}
                line.hatch x1="0" x2="0" y1="0" y2="6" {}
            }
        }
    }
}

/// A table of the terminal as one of a page. Columns of numbers are put to the right, as there.
pub(crate) fn table(table: &Table) -> Markup {
    let is_number = |text: &str| {
        let first = text.chars().next();
        first.is_none_or(|first| first.is_ascii_digit() || matches!(first, '-' | '–'))
    };
    let columns = table.row_iter().map(Row::cell_count).max().unwrap_or(0);
    let are_numbers: Vec<bool> = (0..columns)
        .map(|column| {
            let mut cells = table
                .row_iter()
                .filter_map(|row| row.cell_iter().nth(column));
            cells.all(|cell| is_number(&cell.content()))
        })
        .collect();
    let class = |column: usize| match are_numbers.get(column) {
        Some(true) => "number",
        _ => "",
    };
    html! {
        table {
            @if let Some(header) = table.header() {
                thead { tr {
                    @for (column, cell) in header.cell_iter().enumerate() {
                        th class=(class(column)) { (cell.content()) }
                    }
                } }
            }
            tbody {
                @for row in table.row_iter() {
                    tr {
                        @for (column, cell) in row.cell_iter().enumerate() {
                            td class=(class(column)) { (cell.content()) }
                        }
                    }
                }
            }
        }
    }
}

/// A coordinate in a picture: tenths of a unit are too small to be seen.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text of a trace cannot become markup, and a page needs nothing from elsewhere. Method: a title
    /// and a cell with markup in them; no address is in the page.
    #[test]
    fn text_stays_text() {
        let mut cells = Table::new();
        cells.set_header(["who", "ran"]);
        cells.add_row(["<script>x</script>", "1.50 ms"]);
        cells.add_row(["b & c", "12 ns"]);
        let page = page("a <b> & c", &table(&cells));
        assert!(
            page.contains("<title>a &lt;b&gt; &amp; c</title>"),
            "{page}"
        );
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;x"));
        assert!(page.contains("<th class=\"\">who</th><th class=\"number\">ran</th>"));
        assert!(!page.contains("http") && !page.contains("src="));
    }
}
