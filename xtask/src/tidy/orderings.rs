//! Memory orderings explain themselves: each names what it pairs with.
//!
//! An ordering is one end of an edge, and an edge has two. Its comment says where the other end is: "partner:
//! the Release store in `stop`". The named function exists (`partners.rs`). Where a README has a table of
//! edges, the comment names the edge as well (`edge_tags.rs`).

use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};

/// The crate whose lock-free code this is about.
const FOLDER: &str = "crates/paceline/src/";

/// The comment is on the same line or this many lines above at most.
pub(super) const REACH: usize = 6;

/// Orderings that make an edge.
pub(super) const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// Words by which a comment names the other end.
pub(super) const WORDS: &[&str] = &["partner", "pairs with"];

/// Rule "orderings": each Acquire, Release, AcqRel and SeqCst names its partner.
pub(super) fn partners(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in lock_free(tree) {
        let mut in_import = false;
        for (index, line) in source.lines.iter().enumerate() {
            in_import |= is_import(&line.code);
            let ordering = words(&line.code).find(|(_, word)| ORDERINGS.contains(word));
            if let (Some((_, ordering)), false, false) = (ordering, in_import, line.test) {
                let near = &source.lines[index.saturating_sub(REACH)..=index];
                if !near.iter().any(|line| names_partner(&line.comment)) {
                    let message = format!(
                        "{ordering} without its partner: say \"partner: …\" within the {REACH} lines above"
                    );
                    findings.push(file.finding(index + 1, message));
                }
            }
            in_import &= !line.code.contains(';');
        }
    }
    findings
}

fn lock_free(tree: &Tree) -> impl Iterator<Item = (&File, &RustSource)> {
    tree.rust()
        .filter(|(file, _)| file.path.starts_with(FOLDER) && !file.is_test())
}

fn is_import(code: &str) -> bool {
    let code = code.trim_start();
    code.starts_with("use ") || code.starts_with("pub use ") || code.starts_with("pub(crate) use ")
}

fn names_partner(comment: &str) -> bool {
    let lower = comment.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const PATH: &str = "crates/paceline/src/wake.rs";

    fn found(text: &str) -> Vec<String> {
        shown(&partners(&Tree::of(&[(PATH, text)])))
    }

    #[test]
    fn an_ordering_without_its_partner_is_found() {
        let expected = [format!(
            "{PATH}:2: Acquire without its partner: say \"partner: …\" within the 6 lines above"
        )];
        assert_eq!(
            found("//! x\nlet x = w.load(Ordering::Acquire);\n"),
            expected
        );
    }

    #[test]
    fn a_comment_on_the_line_or_shortly_above_is_enough() {
        assert!(found("w.load(Acquire); // pairs with the store in `publish`").is_empty());
        assert!(found("// partner: x\na;\nb;\nw.load(Ordering::Acquire);").is_empty());
        assert_eq!(found("// Edge A1.\nw.load(Acquire);").len(), 1);
        assert!(found("// Partner: `take`.\nfence(SeqCst);").is_empty());
        let far = format!("// pairs with x\n{}w.load(Acquire);", "a;\n".repeat(6));
        assert_eq!(found(&far).len(), 1);
    }

    #[test]
    fn imports_tests_and_relaxed_need_no_comment() {
        assert!(found("use platform::{\n    Ordering::{Acquire, Release},\n    X,\n};").is_empty());
        assert!(found("#[cfg(test)]\nmod tests {\n    fn f() { w.load(Acquire); }\n}").is_empty());
        assert!(found("w.load(Ordering::Relaxed);").is_empty());
        assert!(found("//! About Acquire.\nlet s = \"SeqCst\";").is_empty());
    }

    #[test]
    fn other_crates_are_not_asked() {
        let tree = Tree::of(&[("crates/platform/src/a.rs", "w.load(Acquire);")]);
        assert!(partners(&tree).is_empty());
    }
}
