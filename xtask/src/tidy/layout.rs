//! The shape of source files: a header that says what the file is, and sizes that fit a head.

use super::tree::{File, Finding, Tree};

/// A limit, and the size from which on it is worth knowing that it is near.
struct Limit {
    soft: usize,
    hard: usize,
}

const FILE_LINES: Limit = Limit {
    soft: 500,
    hard: 600,
};
const FUNCTION_LINES: Limit = Limit { soft: 70, hard: 90 };
const COLUMNS: usize = 110;

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
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        for function in source.functions() {
            let lines = function.last - function.first + 1;
            if lines > FUNCTION_LINES.hard {
                let message = format!(
                    "fn {} has {lines} lines, at most {}",
                    function.name, FUNCTION_LINES.hard
                );
                findings.push(file.finding(function.first, message));
            }
        }
    }
    findings
}

/// Rule "columns": lines fit a screen.
pub(super) fn columns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                let message = format!("has {columns} columns, at most {COLUMNS}");
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    findings
}

/// How many files and functions are close to their limit, and how many there are.
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
    format!(
        "{files} of {} files over {} lines, {functions} functions over {}",
        tree.rust().count(),
        FILE_LINES.soft,
        FUNCTION_LINES.soft
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
        let long = "//! x\n".repeat(601);
        let tested = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "//! x\n".repeat(600),
            long
        );
        let files = [
            ("a.rs", long.as_str()),
            ("b.rs", &tested),
            ("tests/c.rs", &long),
        ];
        let expected = ["a.rs: has 601 lines without tests, at most 600"];
        assert_eq!(shown(&file_sizes(&Tree::of(&files))), expected);
    }

    #[test]
    fn a_long_function_is_found() {
        let of_lines =
            |lines: usize| format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        let (short, long) = (of_lines(90), of_lines(91));
        let tree = Tree::of(&[("a.rs", &short), ("b.rs", &long)]);
        assert_eq!(
            shown(&function_sizes(&tree)),
            ["b.rs:2: fn f has 91 lines, at most 90"]
        );
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
        let text = format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(80));
        let expected = "0 of 1 files over 500 lines, 1 functions over 70";
        assert_eq!(close_to_limits(&Tree::of(&[("a.rs", &text)])), expected);
    }
}
