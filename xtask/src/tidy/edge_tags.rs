//! Edges of a protocol have two ends in code. Beside the code, in a README, is a table of them:
//!
//! ```text
//! | edge | writer | reader | publishes |
//! |---|---|---|---|
//! | I3 | bump of the epoch, Release | spinner's load of the epoch, Acquire | what the bump announces |
//! ```
//!
//! and in the code a comment at each end: "Release: edge I3, …". The ordering that the comment names last
//! before the edge is the end's side, and the code below has it.

use std::collections::BTreeMap;

use super::orderings::{ORDERINGS, REACH};
use super::tree::{File, Finding, Tree};
use crate::source::{Remark, RustSource, words};

/// How a table of edges begins.
const TABLE: &str = "| edge |";

/// The two ends of one edge, with the folder it is of, and its tag.
type Key<'a> = (&'a str, String);

/// The places of an edge.
#[derive(Default)]
struct Ends<'a> {
    /// Its row in the table.
    row: Option<(&'a File, usize)>,
    /// Its ends in code, each with the ordering that the comment names.
    ends: Vec<(&'a File, usize, &'static str)>,
}

/// Rule "edge-tags": each edge of a table, and each that a comment names, has a Release side and an Acquire
/// side in the code of the table's folder.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut edges: BTreeMap<Key<'_>, Ends<'_>> = BTreeMap::new();
    for (file, line, tag) in rows(tree) {
        edges.entry((folder(file), tag)).or_default().row = Some((file, line));
    }
    for (file, source) in tree.rust() {
        if !file.path.starts_with("crates/") || file.is_test() {
            continue;
        }
        for remark in source.remarks() {
            if source.lines[remark.first].test {
                continue;
            }
            for (tag, ordering) in tags(&remark.text) {
                let line = remark.first + 1;
                match ordering.filter(|ordering| stands_below(source, &remark, ordering)) {
                    Some(ordering) => {
                        let end = (file, line, ordering);
                        edges.entry((folder(file), tag)).or_default().ends.push(end);
                    }
                    None => findings.push(file.finding(line, unplaced(&tag, ordering))),
                }
            }
        }
    }
    findings.extend(edges.iter().filter_map(|((_, tag), ends)| lost(tag, ends)));
    findings
}

/// The missing parts of an edge.
fn lost(tag: &str, edge: &Ends<'_>) -> Option<Finding> {
    let Some((readme, row)) = edge.row else {
        let (file, line, _) = edge.ends.first()?;
        let message = format!("edge {tag} is in no table of the README beside this file");
        return Some(file.finding(*line, message));
    };
    let writers = edge
        .ends
        .iter()
        .filter(|(.., ordering)| *ordering != "Acquire");
    let readers = edge
        .ends
        .iter()
        .filter(|(.., ordering)| *ordering != "Release");
    let message = match (writers.count(), readers.count(), edge.ends.len()) {
        (0, ..) => format!("edge {tag} has no Release side in the code"),
        (_, 0, _) => format!("edge {tag} has no Acquire side in the code"),
        (.., 1) => format!("edge {tag} stands at one end only"),
        _ => return None,
    };
    Some(readme.finding(row, message))
}

fn unplaced(tag: &str, ordering: Option<&str>) -> String {
    match ordering {
        None => {
            format!("edge {tag}: which side is this? Say \"Release: edge {tag}\" or \"Acquire: …\"")
        }
        Some(ordering) => format!("edge {tag}: no {ordering} in the {REACH} lines below"),
    }
}

/// Rows of tables of edges: the README, the line from 1, the tag.
fn rows(tree: &Tree) -> Vec<(&File, usize, String)> {
    let mut rows = Vec::new();
    let readmes = tree.files.iter();
    for file in
        readmes.filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".md"))
    {
        let mut inside = false;
        for (index, line) in file.text.lines().enumerate() {
            inside = line.starts_with(TABLE) || (inside && line.starts_with('|'));
            let cell = line.split('|').nth(1).map(str::trim);
            if let Some(tag) = cell.filter(|cell| inside && is_tag(cell)) {
                rows.push((file, index + 1, tag.to_owned()));
            }
        }
    }
    rows
}

fn folder(file: &File) -> &str {
    file.path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// One capital letter and a number.
fn is_tag(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    word.len() - number.len() == 1
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit())
}

/// Each "edge I3" of a comment, with the ordering that was named last before it.
fn tags(text: &str) -> Vec<(String, Option<&'static str>)> {
    let mut tags = Vec::new();
    let mut ordering = None;
    let mut before = "";
    for (_, word) in words(text) {
        ordering = ORDERINGS
            .iter()
            .find(|known| **known == word)
            .copied()
            .or(ordering);
        if before.eq_ignore_ascii_case("edge") && is_tag(word) {
            tags.push((word.to_owned(), ordering));
        }
        before = word;
    }
    tags
}

/// Whether the code at a comment has an ordering that is as strong.
fn stands_below(source: &RustSource, remark: &Remark, ordering: &str) -> bool {
    let strong = [ordering, "AcqRel", "SeqCst"];
    let end = source.lines.len().min(remark.last + 1 + REACH);
    let mut code = source.lines[remark.first..end]
        .iter()
        .map(|line| &line.code);
    code.any(|code| words(code).any(|(_, word)| strong.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const README: &str = "crates/paceline/src/idle/README.md";
    const CODE: &str = "crates/paceline/src/idle/mod.rs";
    const TABLE: &str =
        "# Idle\n\n| edge | writer |\n|---|---|\n| I1 | bump |\n\n| I2 | no edge |\n";
    const WRITER: &str =
        "// Release: edge I1, partner: `epoch`.\nw.store(1, Ordering::Release);\n\n";
    const READER: &str = "// Acquire: edge I1, partner: `bump`.\nw.load(Ordering::Acquire);\n\n";

    fn found(readme: &str, code: &str) -> Vec<String> {
        shown(&check(&Tree::of(&[(README, readme), (CODE, code)])))
    }

    /// Goal: an edge with both ends is fine. Method: a table of one, and its two ends; one end that is both
    /// sides with another one.
    #[test]
    fn an_edge_with_both_ends_is_fine() {
        assert!(found(TABLE, &format!("{WRITER}{READER}")).is_empty());
        let both = "// AcqRel: edge I1, partner: `x`.\nw.swap(0, Ordering::AcqRel);\n\n";
        assert!(found(TABLE, &format!("{both}{both}")).is_empty());
        assert!(found(TABLE, &format!("{both}{READER}")).is_empty());
    }

    /// Goal: an end that is missing is found. Method: the edge without each of its ends, and without both.
    #[test]
    fn an_end_that_is_missing_is_found() {
        let no = |side| {
            [format!(
                "{README}:5: edge I1 has no {side} side in the code"
            )]
        };
        assert_eq!(found(TABLE, WRITER), no("Acquire"));
        assert_eq!(found(TABLE, READER), no("Release"));
        assert_eq!(found(TABLE, ""), no("Release"));
        let both = "// SeqCst: edge I1.\nM::fence(SeqCst);\n";
        let expected = [format!("{README}:5: edge I1 stands at one end only")];
        assert_eq!(found(TABLE, both), expected);
    }

    /// Goal: an edge that no table lists is found. Method: both ends, and a README without the table; the
    /// same in another folder.
    #[test]
    fn an_edge_of_no_table_is_found() {
        let code = format!("{WRITER}{READER}");
        let expected = [format!(
            "{CODE}:1: edge I1 is in no table of the README beside this file"
        )];
        assert_eq!(found("# Idle\n", &code), expected);
        let elsewhere = "crates/paceline/src/wait.rs";
        let tree = Tree::of(&[(README, TABLE), (CODE, &code), (elsewhere, &code)]);
        let expected = [format!(
            "{elsewhere}:1: edge I1 is in no table of the README beside this file"
        )];
        assert_eq!(shown(&check(&tree)), expected);
    }

    /// Goal: a comment that says another ordering than the code, or none, is found. Method: one of each.
    #[test]
    fn a_side_that_the_code_does_not_have_is_found() {
        let weak = WRITER.replace("Ordering::Release", "Ordering::Relaxed");
        let expected = format!("{CODE}:1: edge I1: no Release in the 6 lines below");
        assert!(found(TABLE, &format!("{weak}\n\n\n\n\n{READER}")).contains(&expected));
        let silent = "// Edge I1, partner: `epoch`.\nw.store(1, Ordering::Release);\n\n";
        let found = found(TABLE, &format!("{silent}{READER}"));
        assert!(found[0].starts_with(&format!("{CODE}:1: edge I1: which side is this?")));
    }
}
