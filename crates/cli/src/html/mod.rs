//! Reports for a browser: one file that holds all it shows, so that it can be kept, sent and opened offline.
//!
//! This module knows nothing of what is reported: it has the frame of a page, tables, and the script that
//! draws a page's data. What is to be read is markup, and is there without the script as well; what is to be
//! looked at and moved about in is data, which the script draws with the page's own colours, light or dark as
//! the reader likes it.
//!
//! Invariants: text of traces (names of threads, labels) becomes text of the page, never markup. A browser
//! takes no other style and no other script than ours, and fetches nothing: the page's policy forbids it.

mod interval;
mod pack;

use std::path::Path;

use comfy_table::{Row, Table};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use console::{Failure, output};

pub(crate) use self::interval::interval;
use self::pack::{hash, packed};

const STYLE: &str = include_str!("style.css");
/// One function around all of it: nothing is left behind in the page's window.
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("script/words.js"),
    include_str!("script/paper.js"),
    include_str!("script/chart.js"),
    include_str!("script/lanes.js"),
    include_str!("script/ink.js"),
    include_str!("script/timeline.js"),
    include_str!("script/opened.js"),
    include_str!("script/main.js"),
    "})();\n"
);

/// Writes a page with data that its script draws.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(
    path: &Path,
    title: &str,
    body: &Markup,
    data: &impl Serialize,
) -> Result<(), Failure> {
    output::write_file(path, page(title, body, &packed(data)?).as_bytes())
}

fn page(title: &str, body: &Markup, data: &str) -> String {
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
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
                script #data type="application/octet-stream" { (data) }
                script { (PreEscaped(SCRIPT)) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text of a trace cannot become markup or script, and a page needs nothing from elsewhere. Method:
    /// a title, a cell and data with markup in them; the page has one script and one style, ours, no
    /// attributes that run or style anything, and no address.
    #[test]
    fn text_stays_text() {
        let mut cells = Table::new();
        cells.set_header(["who", "ran"]);
        cells.add_row(["<script>x</script>", "1.50 ms"]);
        cells.add_row(["b & c", "12 ns"]);
        let data = packed(&["</script><script>y</script>", "<img onerror=z>"]).unwrap();
        let page = page("a <b> & c", &table(&cells), &data);
        assert!(
            page.contains("<title>a &lt;b&gt; &amp; c</title>"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
        assert!(page.contains(&format!("octet-stream\">{data}</script>")));
        assert!(page.contains("&lt;script&gt;x"));
        assert!(page.contains("<th class=\"\">who</th><th class=\"number\">ran</th>"));
        for forbidden in [
            "<img",
            " style=\"",
            " onerror",
            " onclick",
            "src=",
            "href=\"h",
            "http:",
            "https:",
        ] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    /// Goal: our own script and style keep to the page's policy, and cannot end their elements. Method: what
    /// would make markup or code of text, or fetch anything, is not in them.
    #[test]
    fn the_script_makes_no_markup_of_text() {
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "import(",
            "setAttribute(\"on",
            "</",
            "<!--",
            "http",
        ] {
            assert!(!SCRIPT.contains(forbidden), "{forbidden}");
        }
        for forbidden in ["</", "@import", "http", "url(h"] {
            assert!(!STYLE.contains(forbidden), "{forbidden}");
        }
    }
}
