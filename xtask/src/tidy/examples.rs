//! Public items of the runtime show how they are used: each has an example that runs, or the reason for none.

use super::tree::{File, Finding, Tree};
use crate::source::{Line, RustSource, words};

/// The crate whose users read its documentation first.
const CRATE: &str = "crates/paceline/src/";

/// An item's documentation with these words gives the reason why it has no example.
const REASON: &str = "It has no example, because";

/// Items that a program can use by themselves.
const ITEMS: &[&str] = &[
    "fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro",
];

/// Rule "examples": outside of tests, the documentation of each public item has an example or [`REASON`].
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust().filter(|(file, _)| file.path.starts_with(CRATE));
    files
        .flat_map(|(file, source)| in_file(file, source))
        .collect()
}

fn in_file(file: &File, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.lines.iter().enumerate() {
        let Some(name) = public_item(line) else {
            continue;
        };
        let documentation = documentation_above(source, index);
        if !documentation.contains("```") && !documentation.contains(REASON) {
            let message = format!("{name} has no example; without one it says \"{REASON} ...\"");
            findings.push(file.finding(index + 1, message));
        }
    }
    findings
}

/// The name of the public item that this line begins, if it does. A field has no keyword; a re-export is
/// documented where its item is.
fn public_item(line: &Line) -> Option<&str> {
    let code = line.code.trim_start();
    if line.test || !code.starts_with("pub ") {
        return None;
    }
    let all: Vec<&str> = words(code).map(|(_, word)| word).collect();
    let qualifiers = ["pub", "const", "unsafe", "async", "extern"];
    let at = all.iter().position(|word| !qualifiers.contains(word))?;
    if ITEMS.contains(&all[at]) {
        all.get(at + 1).copied()
    } else if all[at - 1] == "const" {
        Some(all[at])
    } else {
        None
    }
}

/// The comments right above this line, over attributes.
fn documentation_above(source: &RustSource, line: usize) -> String {
    let above = source.lines[..line].iter().rev();
    // Whether a line is inside of an attribute over several lines, whose end comes first on the way up.
    let mut is_inside = false;
    let belongs = |line: &&Line| {
        let code = line.code.trim();
        let is_comment = code.is_empty() && !line.comment.trim().is_empty();
        let begins = code.starts_with("#[");
        is_inside = (is_inside || code == ")]") && !begins;
        is_comment || is_inside || begins
    };
    let mut comments: Vec<&str> = above
        .take_while(belongs)
        .map(|line| &line.comment[..])
        .collect();
    comments.reverse();
    comments.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        shown(&check(&Tree::of(&[("crates/paceline/src/a.rs", text)])))
    }

    /// Goal: an item with an example, one with a reason, and what is not public or no item are fine. Method:
    /// one of each.
    #[test]
    fn what_has_an_example_or_needs_none_is_fine() {
        let with =
            "/// Opens.\n///\n/// ```\n/// a::open();\n/// ```\n#[must_use]\npub fn open() {}\n";
        assert!(found(with).is_empty());
        let over_lines = with.replace("#[must_use]", "#[must_use(\n    \"a\"\n)]");
        assert!(found(&over_lines).is_empty());
        let reason =
            "/// Opens. It has no example, because it takes a port.\npub const fn open() {}\n";
        assert!(found(reason).is_empty());
        for fine in [
            "pub(crate) fn open() {}\n",
            "fn open() {}\n",
            "    pub field: u32,\n",
            "pub use a::b;\n",
            "pub mod a;\n",
            "#[cfg(test)]\nmod tests {\n    pub fn open() {}\n}\n",
        ] {
            assert!(found(fine).is_empty(), "{fine}");
        }
    }

    /// Goal: an item without is found. Method: each kind of item, with documentation of another item above.
    #[test]
    fn an_item_without_example_is_found() {
        let other = "/// ```\n/// ```\npub fn other() {}\n\n/// Opens.\n";
        for item in [
            "pub fn open() {}",
            "    pub unsafe fn open(&self) {}",
            "pub struct open;",
            "pub const open: u32 = 1;",
            "pub trait open {}",
        ] {
            let all = found(&format!("{other}{item}\n"));
            assert_eq!(all.len(), 1, "{item}");
            assert!(all[0].contains(":6: open has no example"), "{all:?}");
        }
    }
}
