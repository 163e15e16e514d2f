//! The shape of source files: a header that says what the file is, and sizes that fit a head.

use super::tree::{File, Finding, Tree};

/// A limit, and the size from which on it is worth knowing that it is near.
struct Limit {
    soft: usize,
    hard: usize,
}

const FILE_LINES: Limit = Limit {
    soft: 450,
    hard: 500,
};
const FUNCTION_LINES: Limit = Limit { soft: 60, hard: 70 };
const COLUMNS: Limit = Limit {
    soft: 100,
    hard: 110,
};

/// A function that is longer: where it is, its name, and its lines, which may only become fewer.
struct LongFunction {
    folder: &'static str,
    name: &'static str,
    lines: usize,
}

const LONG_FUNCTIONS: &[LongFunction] = &[LongFunction {
    folder: "crates/paceline/",
    name: "fork_and_join",
    lines: 74,
}];

/// Rule "header": every Rust file starts with its `//!`.
pub(super) fn headers(tree: &Tree) -> Vec<Finding> {
    let bare = tree
        .rust()
        .filter(|(file, _)| !file.text.starts_with("//!"));
    bare.map(|(file, _)| file.finding(1, "does not start with `//!`: what is this file?"))
        .collect()
}

/// Rule "file-size": files are short, tests apart.
pub(super) fn file_sizes(tree: &Tree) -> Vec<Finding> {
    let files = tree
        .files
        .iter()
        .map(|file| (file, lines_without_tests(file)));
    files
        .filter(|(_, lines)| *lines > FILE_LINES.hard)
        .map(|(file, lines)| {
            let message = format!(
                "has {lines} lines without tests, at most {}",
                FILE_LINES.hard
            );
            file.finding(0, message)
        })
        .collect()
}

/// Rule "fn-size": functions are short, those of tests too.
pub(super) fn function_sizes(tree: &Tree) -> Vec<Finding> {
    function_sizes_against(tree, LONG_FUNCTIONS)
}

fn function_sizes_against(tree: &Tree, table: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = vec![0; table.len()];
    for (file, source) in tree.rust() {
        for function in source.functions() {
            let lines = function.last - function.first + 1;
            if lines <= FUNCTION_LINES.hard {
                continue;
            }
            let is_of =
                |row: &LongFunction| row.name == function.name && file.path.starts_with(row.folder);
            let row = table.iter().position(is_of);
            if let Some(row) = row {
                found[row] = found[row].max(lines);
            }
            let most = row.map_or(FUNCTION_LINES.hard, |row| table[row].lines);
            if lines > most {
                let message = format!("fn {} has {lines} lines, at most {most}", function.name);
                findings.push(file.finding(function.first, message));
            }
        }
    }
    let rows = table.iter().zip(found);
    let loose = rows.filter(|(row, lines)| *lines < row.lines);
    findings.extend(loose.map(|(row, lines)| Finding {
        place: format!("{}: fn {}", row.folder, row.name),
        line: 0,
        message: match lines {
            0 => "needs no row in xtask/src/tidy/layout.rs any more".to_owned(),
            lines => format!("has {lines} lines: lower its row in xtask/src/tidy/layout.rs"),
        },
    }));
    findings
}

/// Rule "columns": lines fit a screen.
pub(super) fn columns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS.hard {
                let message = format!("has {columns} columns, at most {}", COLUMNS.hard);
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    findings
}

/// How many files, functions and lines are close to their limit, and how many files there are.
pub(super) fn close_to_limits(tree: &Tree) -> String {
    let files = tree
        .rust()
        .filter(|(file, _)| lines_without_tests(file) > FILE_LINES.soft)
        .count();
    let functions = tree
        .rust()
        .flat_map(|(_, source)| source.functions())
        .filter(|function| function.last - function.first + 1 > FUNCTION_LINES.soft)
        .count();
    let lines = tree
        .rust()
        .flat_map(|(file, _)| file.text.lines())
        .filter(|line| line.chars().count() > COLUMNS.soft)
        .count();
    format!(
        "{files} of {} files over {} lines, {functions} functions over {}, {lines} lines over {} columns",
        tree.rust().count(),
        FILE_LINES.soft,
        FUNCTION_LINES.soft,
        COLUMNS.soft
    )
}

/// Lines of a Rust file outside tests; 0 for any other file.
fn lines_without_tests(file: &File) -> usize {
    let Some(source) = file.rust.as_ref().filter(|_| !file.is_test()) else {
        return 0;
    };
    let tests = source.lines.iter().filter(|line| line.test).count();
    file.text.lines().count().saturating_sub(tests)
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        let tree = Tree::of(&[
            ("a.rs", "//! Good.\n"),
            ("b.rs", "fn main() {}\n"),
            ("c.md", "Text"),
        ]);
        let expected = ["b.rs:1: does not start with `//!`: what is this file?"];
        assert_eq!(shown(&headers(&tree)), expected);
    }

    #[test]
    fn a_long_file_is_found_and_tests_do_not_count() {
        let long = "//! x\n".repeat(501);
        let tested = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "//! x\n".repeat(500),
            long
        );
        let files = [
            ("a.rs", long.as_str()),
            ("b.rs", &tested),
            ("tests/c.rs", &long),
        ];
        let expected = ["a.rs: has 501 lines without tests, at most 500"];
        assert_eq!(shown(&file_sizes(&Tree::of(&files))), expected);
    }

    #[test]
    fn a_long_function_is_found() {
        let of_lines =
            |lines: usize| format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        let (short, long) = (of_lines(70), of_lines(71));
        let tree = Tree::of(&[("a.rs", &short), ("b.rs", &long)]);
        assert_eq!(
            shown(&function_sizes_against(&tree, &[])),
            ["b.rs:2: fn f has 71 lines, at most 70"]
        );
    }

    /// Goal: a row of the table allows one function its lines and no more, and goes when nothing needs it.
    /// Method: a function as long as its row, longer, shorter, and short.
    #[test]
    fn a_row_for_a_long_function_may_only_become_less() {
        let row = |lines| LongFunction {
            folder: "a/",
            name: "f",
            lines,
        };
        let found = |lines: usize, allowed: usize| {
            let text = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
            shown(&function_sizes_against(
                &Tree::of(&[("a/b.rs", &text)]),
                &[row(allowed)],
            ))
        };
        assert!(found(80, 80).is_empty());
        assert_eq!(found(81, 80), ["a/b.rs:1: fn f has 81 lines, at most 80"]);
        let lower = ["a/: fn f: has 79 lines: lower its row in xtask/src/tidy/layout.rs"];
        assert_eq!(found(79, 80), lower);
        let needless = ["a/: fn f: needs no row in xtask/src/tidy/layout.rs any more"];
        assert_eq!(found(70, 80), needless);
    }

    #[test]
    fn a_long_line_is_found() {
        let text = format!("//! {}\n//! {}\n", "é".repeat(106), "é".repeat(107));
        let tree = Tree::of(&[("a.rs", &text)]);
        assert_eq!(
            shown(&columns(&tree)),
            ["a.rs:2: has 111 columns, at most 110"]
        );
    }

    #[test]
    fn what_is_close_to_a_limit_is_counted() {
        let text = format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(65));
        let text = format!("{text}// {}\n", "-".repeat(98));
        let expected = "0 of 1 files over 450 lines, 1 functions over 60, 1 lines over 100 columns";
        assert_eq!(close_to_limits(&Tree::of(&[("a.rs", &text)])), expected);
    }
}
