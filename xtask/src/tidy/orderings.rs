//! Memory orderings explain themselves: each names what it pairs with.
//!
//! An ordering is one end of an edge, and an edge has two. Its comment says where the other end is,
//! in words ("partner", "pairs with") or by the tag of the edge, such as `[WK1]`.

use std::collections::BTreeMap;

use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};

/// The crate whose lock-free code this is about.
const FOLDER: &str = "crates/paceline/src/";

/// The comment is on the same line or this many lines above at most.
const REACH: usize = 6;

/// Orderings that make an edge.
const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// Words by which a comment names the other end.
const WORDS: &[&str] = &["partner", "pairs with"];

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
                        "{ordering} without its partner: say \"pairs with …\" or give the edge's tag \
                         within the {REACH} lines above"
                    );
                    findings.push(file.finding(index + 1, message));
                }
            }
            in_import &= !line.code.contains(';');
        }
    }
    findings
}

/// Rule "edge-tags": a tag that stands in one place only has lost its other end.
pub(super) fn both_ends(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<(&File, usize)>> = BTreeMap::new();
    for (file, source) in lock_free(tree) {
        for (index, line) in source.lines.iter().enumerate() {
            for tag in tags(&line.comment) {
                places
                    .entry(tag.to_owned())
                    .or_default()
                    .push((file, index + 1));
            }
        }
    }
    let lonely = places.into_iter().filter(|(_, places)| places.len() == 1);
    lonely
        .map(|(tag, places)| {
            let (file, line) = places[0];
            file.finding(
                line,
                format!("[{tag}] stands here only: where is the edge's other end?"),
            )
        })
        .collect()
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
    WORDS.iter().any(|word| lower.contains(word)) || tags(comment).next().is_some()
}

/// Edge tags in a comment: capital letters and a number in brackets, `[WK1]`.
fn tags(comment: &str) -> impl Iterator<Item = &str> {
    comment.split('[').skip(1).filter_map(|rest| {
        let (tag, _) = rest.split_once(']')?;
        let digits = tag.find(|c: char| c.is_ascii_digit())?;
        let (letters, number) = tag.split_at(digits);
        let fits = (1..=4).contains(&letters.len())
            && letters.chars().all(|c| c.is_ascii_uppercase())
            && (1..=2).contains(&number.len())
            && number.chars().all(|c| c.is_ascii_digit());
        fits.then_some(tag)
    })
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
            "{PATH}:2: Acquire without its partner: say \"pairs with …\" or give the edge's tag \
             within the 6 lines above"
        )];
        assert_eq!(
            found("//! x\nlet x = w.load(Ordering::Acquire);\n"),
            expected
        );
    }

    #[test]
    fn a_comment_on_the_line_or_shortly_above_is_enough() {
        assert!(found("w.load(Acquire); // pairs with the store in `publish`").is_empty());
        assert!(found("// [WK1]: sees the job\na;\nb;\nw.load(Ordering::Acquire);").is_empty());
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

    #[test]
    fn a_tag_that_stands_alone_is_found() {
        let text = "// [WK1] a\n// [WK1] b\n// [WK2] c, see [`Job`] and [0]\n";
        let expected = [format!(
            "{PATH}:3: [WK2] stands here only: where is the edge's other end?"
        )];
        assert_eq!(shown(&both_ends(&Tree::of(&[(PATH, text)]))), expected);
    }
}
