//! Markdown links to files lead somewhere. Links to the web are not followed.

use std::collections::BTreeSet;

use super::tree::{Finding, Tree};

/// Rule "links": a link to a file leads to a file or folder of the repository.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, target) in links(&file.text) {
            if !leads_somewhere(&tree.paths, folder, target) {
                findings.push(file.finding(line, format!("the link to {target} leads nowhere")));
            }
        }
    }
    findings
}

/// Link targets with their lines (from 1), code left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_some() || mark.is_some() {
            continue;
        }
        let code = code_spans(line);
        let outside = |at: usize| !code.iter().any(|(from, to)| (*from..*to).contains(&at));
        for (at, _) in line.match_indices("](").filter(|(at, _)| outside(*at)) {
            if let Some(target) = target(&line[at + 2..], ')') {
                found.push((index + 1, target));
            }
        }
        // A definition: `[name]: target`.
        if let Some((_, rest)) = start
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            && let Some(target) = target(rest, ' ')
        {
            found.push((index + 1, target));
        }
    }
    found
}

/// Where a line has code in back quotes, as byte ranges.
fn code_spans(line: &str) -> Vec<(usize, usize)> {
    let quotes: Vec<usize> = line.match_indices('`').map(|(at, _)| at).collect();
    quotes
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// The target at the start of `rest`: up to `close`, without a title and angle brackets.
fn target(rest: &str, close: char) -> Option<&str> {
    let end = rest.find(close).or((close == ' ').then_some(rest.len()))?;
    let target = rest[..end].split_whitespace().next()?;
    Some(target.trim_start_matches('<').trim_end_matches('>'))
}

fn leads_somewhere(paths: &BTreeSet<String>, folder: &str, target: &str) -> bool {
    let target = target.split('#').next().unwrap_or_default();
    let is_item = target
        .chars()
        .all(|c| c.is_alphanumeric() || "_:!()".contains(c));
    // Another page, this page, or an item of rustdoc (a README that is included there).
    if target.contains("://") || target.starts_with("mailto:") || target.is_empty() || is_item {
        return true;
    }
    let mut parts: Vec<&str> = Vec::new();
    let from = if target.starts_with('/') { "" } else { folder };
    for part in from.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            name => parts.push(name),
        }
    }
    parts.is_empty() || paths.contains(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("docs/b.md", ""),
            ("src/lib.rs", "//! x"),
        ]);
        shown(&check(&tree))
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let expected = ["docs/a.md:2: the link to c.md leads nowhere"];
        assert_eq!(found("[b](b.md)\n[c](c.md)\n"), expected);
        assert_eq!(found("[out](../../x.md)").len(), 1);
        assert_eq!(found("[c]: c.md \"title\"").len(), 1);
    }

    #[test]
    fn files_folders_and_parts_of_pages_are_fine() {
        let text =
            "[b](b.md#part) [l](../src/lib.rs) [d](../src/) [r](/src/lib.rs \"title\") [h](#x)";
        assert!(found(text).is_empty());
    }

    #[test]
    fn the_web_code_and_items_are_not_followed() {
        assert!(
            found("[w](https://x.y/z.md) [m](mailto:a@b.c) [`J`](crate::Job) [J](Job)").is_empty()
        );
        assert!(found("`[c](c.md)`\n```text\n[c](c.md)\n```\n").is_empty());
    }
}
