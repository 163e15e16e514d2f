//! One name, one type: in each crate a type's name is that of one type. A table has what is not yet so.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{crates, files};
use super::tree::{File, Finding, Tree};
use crate::source::{Line, RustSource, words};

/// Names that a crate has more than once, each with how often. The numbers may only become less.
struct Row {
    name: &'static str,
    names: &'static [(&'static str, usize)],
}

const TABLE: &[Row] = &[Row {
    name: "platform",
    names: &[("Class", 2)],
}];

/// Rule "type-names": outside of tests, a crate has one struct, enum, union, trait or type of a name, but for
/// [`TABLE`].
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    against(tree, TABLE)
}

fn against(tree: &Tree, table: &[Row]) -> Vec<Finding> {
    let mut places: BTreeMap<(&str, &str), Vec<(&File, usize)>> = BTreeMap::new();
    for of in crates(tree) {
        for module in files(tree, &format!("crates/{of}/src/")) {
            for (name, found) in declared_in(&module) {
                places.entry((of, name)).or_default().extend(found);
            }
        }
    }
    let rows = table.iter();
    let rows = rows.flat_map(|row| {
        row.names
            .iter()
            .map(|(name, count)| ((row.name, *name), *count))
    });
    let allowed: BTreeMap<(&str, &str), usize> = rows.collect();
    let mut findings = Vec::new();
    for ((of, name), places) in &places {
        let most = allowed.get(&(of, name)).copied().unwrap_or(1);
        if places.len() > most {
            let (file, line) = places[places.len() - 1];
            let count = places.len();
            let all: BTreeSet<&str> = places.iter().map(|(file, _)| &file.path[..]).collect();
            let all: Vec<&str> = all.into_iter().collect();
            let message = format!(
                "{count} types are called {name}, at most {most}: {}",
                all.join(", ")
            );
            findings.push(file.finding(line, message));
        }
    }
    for ((of, name), most) in allowed {
        let count = places.get(&(of, name)).map_or(0, Vec::len);
        if count < most {
            findings.push(Finding {
                place: format!("crates/{of}"),
                line: 0,
                message: format!(
                    "{name} is there {count} times: lower its row in tidy/type_names.rs"
                ),
            });
        }
    }
    findings
}

/// The types of a module. If it has a file for each system, a type is there once, and not once for each.
fn declared_in<'a>(
    module: &[(&'a File, &'a RustSource)],
) -> BTreeMap<&'a str, Vec<(&'a File, usize)>> {
    let mut types: BTreeMap<&str, Vec<(&File, usize)>> = BTreeMap::new();
    for (file, source) in module {
        let mut here: BTreeMap<&str, Vec<(&File, usize)>> = BTreeMap::new();
        for (index, line) in source.lines.iter().enumerate() {
            if let Some(name) = declared(line) {
                here.entry(name).or_default().push((file, index + 1));
            }
        }
        for (name, places) in here {
            let known = types.entry(name).or_default();
            if places.len() > known.len() {
                *known = places;
            }
        }
    }
    types
}

/// The type that a line declares. A `type` that is not at the line's beginning belongs to a trait.
fn declared(line: &Line) -> Option<&str> {
    if line.test {
        return None;
    }
    let mut all = words(&line.code);
    let found = all.find(|(at, word)| match *word {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => !line.code.starts_with(' ') && !line.code[..*at].contains('='),
        _ => false,
    });
    let (at, word) = found?;
    let (next, name) = all.next()?;
    // `union` is a word like others, and a macro's `$name` is no name.
    let is_name =
        line.code[at + word.len()..next].trim().is_empty() && name.starts_with(char::is_uppercase);
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const A: &str = "crates/x/src/a.rs";
    const B: &str = "crates/x/src/b.rs";

    fn found(a: &str, b: &str, allowed: &'static [(&'static str, usize)]) -> Vec<String> {
        let row = Row {
            name: "x",
            names: allowed,
        };
        shown(&against(&Tree::of(&[(A, a), (B, b)]), &[row]))
    }

    /// Goal: a name that two types have is found. Method: all kinds of types, in two files and in one.
    #[test]
    fn a_name_that_two_types_have_is_found() {
        let two = |name| format!("{B}:1: 2 types are called {name}, at most 1: {A}, {B}");
        let expected = [two("What")];
        assert_eq!(
            found("struct What;", "pub(crate) enum What {}", &[]),
            expected
        );
        assert_eq!(found("pub trait What {}", "type What = u8;", &[]), expected);
        let here = [format!("{A}:2: 2 types are called What, at most 1: {A}")];
        assert_eq!(
            found("struct What;\nfn f() { struct What; }", "", &[]),
            here
        );
    }

    /// Goal: what is no type of the crate's counts for nothing. Method: tests, text, types of traits, macros,
    /// another crate.
    #[test]
    fn what_is_no_type_of_the_crate_counts_for_nothing() {
        let a =
            "struct What;\ntrait T {\n    type What;\n}\n// struct What\nlet x = \"enum What\";\n";
        let b = "#[cfg(test)]\nmod tests {\n    struct What;\n}\nmacro_rules! m { () => { struct $What } }\n";
        assert!(found(a, b, &[]).is_empty());
        let tree = Tree::of(&[(A, "struct What;"), ("crates/y/src/a.rs", "struct What;")]);
        assert!(against(&tree, &[]).is_empty());
    }

    /// Goal: a type that a module has for each system is one type. Method: a module of two files.
    #[test]
    fn a_type_for_each_system_is_one() {
        let module = "#[cfg(unix)]\n#[path = \"park_unix.rs\"]\nmod park;\n#[cfg(not(unix))]\n\
                      #[path = \"park_std.rs\"]\nmod park;\n";
        let parts = [
            ("crates/x/src/os/mod.rs", module),
            ("crates/x/src/os/park_unix.rs", "struct Parker;"),
            ("crates/x/src/os/park_std.rs", "struct Parker;"),
        ];
        assert!(against(&Tree::of(&parts), &[]).is_empty());
        assert_eq!(against(&Tree::of(&parts[1..]), &[]).len(), 1);
    }

    /// Goal: the table allows what is there and no more, and follows it. Method: a row that fits, one that is
    /// too small, one that is too large.
    #[test]
    fn the_table_may_only_become_less() {
        let (a, b) = ("struct What;\n", "struct What;\nfn f() { struct What; }\n");
        assert!(found(a, b, &[("What", 3)]).is_empty());
        let more = [format!(
            "{B}:2: 3 types are called What, at most 2: {A}, {B}"
        )];
        assert_eq!(found(a, b, &[("What", 2)]), more);
        let lower = ["crates/x: What is there 3 times: lower its row in tidy/type_names.rs"];
        assert_eq!(found(a, b, &[("What", 4)]), lower);
    }
}
