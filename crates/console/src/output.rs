//! Writing: data to standard output, messages to standard error, and whole files.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::Failure;

thread_local! {
    /// What this thread prints, while it is captured.
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `f`, and returns what it printed on this thread instead of writing it to standard output.
pub fn captured<R>(f: impl FnOnce() -> R) -> (String, R) {
    /// Ends the capture, also if `f` panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            CAPTURED.take();
        }
    }
    CAPTURED.set(Some(String::new()));
    let end = End;
    let result = f();
    let text = CAPTURED.take().unwrap_or_default();
    drop(end);
    (text, result)
}

/// Writes text to standard output.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let text = text.to_string();
    let is_kept = CAPTURED.with_borrow_mut(|kept| {
        let Some(kept) = kept else { return false };
        kept.push_str(&text);
        kept.push('\n');
        true
    });
    if is_kept {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Writes one JSON object to standard output, on one line.
pub fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    print(json(object)?)
}

/// One JSON object on one line.
pub fn json(object: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(object)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))
}

/// Prints a message to the person, on standard error.
pub fn note(text: impl Display) {
    // A missing reader is no reason to stop.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A table in the house style, to be filled. On a terminal it is no wider than that: long cells have several
/// lines. Elsewhere it is as wide as its contents.
pub fn table() -> Table {
    let is_terminal = io::stdout().is_terminal();
    table_within(is_terminal.then(columns))
}

fn table_within(columns: Option<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    if let Some(columns) = columns {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    }
    table
}

/// The number of columns for text on standard output: the terminal's, or 100 if it is not a terminal.
pub fn columns() -> usize {
    let is_terminal = io::stdout().is_terminal();
    let size = is_terminal.then(terminal_size::terminal_size).flatten();
    usable(size.map(|(terminal_size::Width(width), _)| width))
}

/// Terminals of unknown size say 0; on those that are narrower than this nothing can be read.
fn usable(width: Option<u16>) -> usize {
    const ELSEWHERE: u16 = 100;
    const LEAST: u16 = 30;
    let told = width.filter(|&width| width > 0);
    usize::from(told.map_or(ELSEWHERE, |width| width.max(LEAST)))
}

/// A text in `columns` columns, its end left out if need be.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() > columns {
        text.chars()
            .take(columns.saturating_sub(1))
            .chain(['…'])
            .collect()
    } else {
        text.to_owned()
    }
}

/// Checks, before a run, that a file can be made at `path`.
pub fn check_can_create(option: &str, path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path == Path::new("-") {
        return Err(Failure::usage(format!(
            "{option} -: give the name of a file: /dev/stdout for standard output, ./- for one of that name"
        )));
    }
    if path.is_dir() {
        let what = format!("{option} {shown}: this is a folder; give the name of a file");
        return Err(Failure::usage(what));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(Failure::usage(format!(
            "{option} {shown}: there is no folder {}; make it first",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Checks, before a run, that files can be made, each given by an option. None may replace another one of
/// them, or a file that is read: `reads` has the latter with their descriptions.
pub fn check_files(
    reads: &[(&str, &Path)],
    writes: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    // A name that is not a file's may be of something else, such as a scenario.
    let reads = reads.iter().filter(|(_, path)| path.is_file());
    let reads = reads.map(|&(what, path)| (what.to_owned(), path));
    let mut taken: Vec<(String, &Path)> = reads.collect();
    for &(option, path) in writes {
        let Some(path) = path else { continue };
        check_can_create(option, path)?;
        if let Some((what, _)) = taken.iter().find(|(_, other)| is_same(path, other)) {
            let shown = path.display();
            return Err(Failure::Usage(format!(
                "{option} {shown}: this is {what}; give another file"
            )));
        }
        taken.push((format!("the file of {option}"), path));
    }
    Ok(())
}

/// Whether both names are of one file. Devices and pipes keep nothing, so nothing in them is replaced.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        // The folder of a file that does not exist yet may have several names, too.
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        let name = path.file_name()?;
        Some(path.canonicalize().unwrap_or_else(|_| folder.join(name)))
    };
    let keeps = |path: &Path| !path.exists() || path.is_file();
    keeps(one) && whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// Writes a whole file.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text has as many columns as fit and can be read. Method: a terminal, a narrow one, one of
    /// unknown size, and none.
    #[test]
    fn columns_can_be_read() {
        let widths = [Some(80), Some(7), Some(0), None].map(usable);
        assert_eq!(widths, [80, 30, 100, 100]);
    }

    /// Goal: a table fits a terminal, with all its words, and short cells stay on one line; elsewhere it is
    /// as wide as its contents. Method: a long cell beside short ones, on terminals of two widths, and none.
    #[test]
    fn tables_fit_the_terminal() {
        let about = "a policy with a very long explanation of what it does, and why ".repeat(3);
        let filled = |columns| {
            let mut table = table_within(columns);
            table.set_header(["name", "about", "CPUs"]);
            table.add_row(["eevdf-6.18", &about, "1024"]);
            table.to_string()
        };
        for columns in [80, 50] {
            let text = filled(Some(columns));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{text}");
            for word in about.split(' ').chain(["eevdf-6.18", "1024"]) {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        assert_eq!(filled(None).lines().count(), 5);
        let short = {
            let mut table = table_within(Some(80));
            table.add_row(["trace", "t.pftrace"]);
            table.to_string()
        };
        assert_eq!(short.lines().count(), 3, "{short}");
        assert!(
            short.lines().all(|line| line.chars().count() < 30),
            "{short}"
        );
    }

    /// Goal: a file that cannot be made is refused before the run. Method: a folder, a file in a missing
    /// folder, a lone dash, and one beside the program.
    #[test]
    fn files_that_cannot_be_made_are_refused_early() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| match check_can_create("--image", path) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(refused(folder.path()).contains("is a folder"));
        assert!(refused(Path::new("-")).contains("/dev/stdout"));
        assert!(refused(&folder.path().join("no/image.png")).contains("make it first"));
        check_can_create("--image", &folder.path().join("image.png")).unwrap();
        check_can_create("--image", Path::new("image.png")).unwrap();
    }
}
