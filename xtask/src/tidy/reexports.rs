//! Programs name `paceline` and no other crate of ours. So what its signatures mention it re-exports.

use std::collections::BTreeSet;

use super::paths::imports_and_paths;
use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};

/// The crate that programs depend on.
const CRATE: &str = "crates/paceline/src/";

/// Its files that re-export.
const RE_EXPORT: &[&str] = &["lib.rs", "platform.rs", "record/mod.rs"];

/// The crates below it, by the names that it has for them.
const BELOW: &[&str] = &["event", "platform"];

/// Rule "re-exports": each name of a crate below that a public signature mentions is re-exported.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let ours = || tree.rust().filter(|(file, _)| file.path.starts_with(CRATE));
    let passes_on = |file: &File| {
        let inside = file.path.strip_prefix(CRATE);
        inside.is_some_and(|inside| RE_EXPORT.contains(&inside))
    };
    let mut known = BTreeSet::new();
    for (_, source) in ours().filter(|(file, _)| passes_on(file)) {
        let (imports, _) = imports_and_paths(source);
        let passed_on = imports.into_iter().filter(|import| import.is_passed_on);
        known.extend(
            passed_on.filter_map(|import| is_below(&import.path).then(|| last(&import.path))),
        );
    }
    ours()
        .flat_map(|(file, source)| in_file(file, source, &known))
        .collect()
}

fn is_below(path: &[String]) -> bool {
    path.first()
        .is_some_and(|first| BELOW.contains(&first.as_str()))
}

/// The name of what a path leads to, in its own crate.
fn last(path: &[String]) -> String {
    path.last().cloned().unwrap_or_default()
}

fn in_file(file: &File, source: &RustSource, known: &BTreeSet<String>) -> Vec<Finding> {
    let (imports, _) = imports_and_paths(source);
    let foreign: Vec<(&String, String)> = imports
        .iter()
        .filter(|import| is_below(&import.path) && !import.is_passed_on)
        .filter_map(|import| Some((import.name()?, last(&import.path))))
        .collect();
    let mut findings = Vec::new();
    for (line, text) in signatures(source) {
        for (_, word) in words(&text) {
            let found = foreign.iter().find(|(name, _)| *name == word);
            if let Some((name, meant)) = found.filter(|(_, meant)| !known.contains(meant)) {
                let message = format!(
                    "a public signature mentions {name}, and none of {} re-exports {meant}",
                    RE_EXPORT.join(", ")
                );
                findings.push(file.finding(line + 1, message));
            }
        }
    }
    findings
}

/// Public items outside of tests: the line where each begins, and its text up to its body. Of an
/// enumeration and a trait that is all of it.
fn signatures(source: &RustSource) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in source.lines.iter().enumerate() {
        let code = line.code.trim_start();
        if line.test || !code.starts_with("pub ") || code.starts_with("pub use ") {
            continue;
        }
        let indent = line.code.len() - code.len();
        let has_public_parts = words(code).any(|(_, word)| ["enum", "trait"].contains(&word));
        let mut text = String::new();
        for line in &source.lines[index..] {
            text.push_str(&line.code);
            text.push('\n');
            let end = line.code.trim_end();
            let closes =
                end.trim_start().starts_with('}') && end.len() - end.trim_start().len() == indent;
            let is_over = if has_public_parts {
                closes || end.ends_with("{}")
            } else {
                end.ends_with(['{', ';', '}']) || end.ends_with(',') && is_field(code)
            };
            if is_over {
                break;
            }
        }
        found.push((index, text));
    }
    found
}

/// Whether a public item is a field: it has no keyword.
fn is_field(code: &str) -> bool {
    let second = words(code).nth(1).map(|(_, word)| word);
    let keywords = ["fn", "const", "unsafe", "struct", "type", "static", "mod"];
    second.is_some_and(|word| !keywords.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(item: &str) -> Vec<String> {
        let source =
            format!("//! x\nuse event::Nanos;\nuse platform::{{CpuSet, Os as Here}};\n{item}\n");
        let root = "//! x\npub use platform::Os;\npub use a::Nanos;\n";
        let files = [
            ("crates/paceline/src/lib.rs", root),
            ("crates/paceline/src/a.rs", &source),
            ("crates/sim/src/a.rs", &source),
        ];
        shown(&check(&Tree::of(&files)))
    }

    /// Goal: each kind of public item is looked at. Method: one of each that mentions a name which is not
    /// re-exported.
    #[test]
    fn names_in_public_signatures_are_found() {
        for item in [
            "pub fn f(cpus: CpuSet) {}",
            "pub unsafe fn f<T>(\n    x: T,\n) -> Option<CpuSet>\nwhere\n    T: Copy,\n{\n}",
            "struct S {\n    pub cpus: CpuSet,\n}",
            "pub enum E {\n    /// X.\n    A {\n        cpus: CpuSet,\n    },\n    B,\n}",
            "pub trait T {\n    fn f(&self);\n    fn g() -> CpuSet;\n}",
            "pub const C: CpuSet = CpuSet::new();",
            "pub struct S(pub CpuSet);",
        ] {
            let all = found(item);
            assert!(!all.is_empty(), "{item}");
            assert!(all[0].contains("mentions CpuSet"), "{all:?}");
        }
        assert!(found("pub fn f() -> Nanos {}")[0].contains("re-exports Nanos"));
    }

    /// Goal: nothing else is found. Method: a name that is re-exported, under another one, too; bodies,
    /// private items, tests, what follows an item.
    #[test]
    fn other_names_are_fine() {
        for item in [
            "pub fn f(os: Here) {}",
            "pub fn f() {\n    g(CpuSet::new());\n}",
            "pub(crate) fn f() -> CpuSet {}",
            "fn f() -> CpuSet {}",
            "pub struct S {\n    cpus: CpuSet,\n    pub a: u32,\n    b: CpuSet,\n}",
            "pub enum E {\n    A,\n}\nfn f(cpus: CpuSet) {}",
            "#[cfg(test)]\nmod tests {\n    pub fn f(cpus: CpuSet) {}\n}",
        ] {
            assert!(found(item).is_empty(), "{item}: {:?}", found(item));
        }
    }
}
