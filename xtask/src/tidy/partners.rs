//! The partner that a comment names for an ordering exists: "partner: the Release store in `stop`" means a
//! function of that name, in the same crate.

use std::collections::{BTreeMap, BTreeSet};

use super::orderings::WORDS;
use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};

/// Words before the name of an item.
const ITEMS: &[&str] = &[
    "fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod",
];

/// The rules themselves, whose comments give examples.
const EXAMPLES: &str = "xtask/";

/// Rule "partner-names": each name in back quotes in a sentence about a partner is one of the crate.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, source) in tree.rust() {
        let of_crate = names.entry(crate_of(file)).or_default();
        of_crate.extend(declared(source));
        of_crate.extend(file.path.split(['/', '.']));
    }
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        if file.path.starts_with(EXAMPLES) {
            continue;
        }
        let of_crate = &names[crate_of(file)];
        for remark in source.remarks() {
            for name in named(&remark.text) {
                let mut parts = name.trim_end_matches("()").split("::");
                if !parts.all(|part| of_crate.contains(part)) {
                    let message = format!("the partner `{name}` is nothing of {}", crate_of(file));
                    findings.push(file.finding(remark.first + 1, message));
                }
            }
        }
    }
    findings
}

/// The crate that a file is of: `crates/sim`, `tests`.
fn crate_of(file: &File) -> &str {
    let parts = if file.path.starts_with("crates/") {
        2
    } else {
        1
    };
    let end = file.path.match_indices('/').nth(parts - 1);
    end.map_or(&file.path[..], |(end, _)| &file.path[..end])
}

/// Names of items, and of fields: the word before a colon at the beginning of a line.
fn declared(source: &RustSource) -> Vec<&str> {
    let mut names = Vec::new();
    for line in &source.lines {
        let all: Vec<(usize, &str)> = words(&line.code).collect();
        for pair in all.windows(2) {
            if ITEMS.contains(&pair[0].1) {
                names.push(pair[1].1);
            }
        }
        let field = line.code.trim_start();
        let field = field.strip_prefix("pub").map_or(field, |rest| {
            let rest = rest.trim_start();
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest.trim_start())
        });
        if let Some((name, rest)) = field.split_once(':')
            && !rest.starts_with(':')
            && words(name).count() == 1
        {
            names.push(name.trim());
        }
    }
    names
}

/// Names in back quotes, from the word "partner" to the end of its sentence.
fn named(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let lower = text.to_ascii_lowercase();
    let mut at = 0;
    while let Some(begin) = WORDS.iter().filter_map(|word| lower[at..].find(word)).min() {
        let begin = at + begin;
        let end = text[begin..]
            .find(". ")
            .map_or(text.len(), |end| begin + end);
        names.extend(text[begin..end].split('`').skip(1).step_by(2));
        at = end;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const PATH: &str = "crates/a/src/wake.rs";

    fn found(comment: &str) -> Vec<String> {
        let code = "fn stop() {}\nstruct Flag {\n    pub(crate) set: bool,\n}\n";
        let other = "fn elsewhere() {}\n";
        let files = [
            (PATH, &format!("{comment}\nlet x = 1;\n{code}")[..]),
            ("crates/a/src/crew/mod.rs", ""),
            ("crates/b/src/lib.rs", other),
        ];
        shown(&check(&Tree::of(&files)))
    }

    /// Goal: what is there may be named. Method: a function, a type's field, a module, in one comment and in
    /// two lines.
    #[test]
    fn what_is_there_may_be_named() {
        assert!(found("// Release, partner: the Acquire load in `stop`.").is_empty());
        assert!(found("// Release, partners: `Flag::set`,\n// `crew` and `stop()`.").is_empty());
        assert!(found("// Pairs with `stop`. Not so: `gone`.").is_empty());
        assert!(found("// `gone` has no partner.").is_empty());
    }

    /// Goal: what is not there is found. Method: a name that nothing has, one of another crate, one that only
    /// a variable has, in a second line.
    #[test]
    fn what_is_not_there_is_found() {
        for name in ["gone", "elsewhere", "x", "Flag::gone"] {
            let expected = [format!(
                "{PATH}:1: the partner `{name}` is nothing of crates/a"
            )];
            assert_eq!(
                found(&format!("// Release, partner:\n// the CAS in `{name}`.")),
                expected
            );
        }
    }
}
