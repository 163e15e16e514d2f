//! `cargo xtask tidy`: the house rules as code.
//!
//! Each rule is one function from the [`Tree`] to its findings and stands in [`RULES`]. The tables that a
//! change to the project may have to touch are in the rule's own file: dependencies between crates in
//! `edges.rs`, files with `unsafe` in `unsafe_code.rs`, forbidden words in `words.rs`. Four tables hold what
//! is not yet as it should be, and may only become less: circles of modules in `circles.rs`, long functions
//! in `layout.rs`, names of several types in `type_names.rs`, words for people in `plain_words.rs`.

mod circles;
mod edge_tags;
mod edges;
mod embeds;
mod examples;
mod layout;
mod links;
mod long_tests;
mod manifest;
mod modules;
mod orderings;
mod packages;
mod partners;
mod paths;
mod plain_words;
mod reexports;
mod symlinks;
mod tree;
mod type_names;
mod unsafe_code;
mod words;

use clap::Args;

use crate::context::Context;
use tree::{Finding, Tree};

/// One house rule.
struct Rule {
    name: &'static str,
    /// The rule in one line.
    says: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// Every rule.
const RULES: &[Rule] = &[
    Rule {
        name: "edges",
        says: "crates depend on each other as the table in tidy/edges.rs allows",
        check: edges::check,
    },
    Rule {
        name: "circles",
        says: "modules use each other in circles as small as the table in tidy/circles.rs says",
        check: circles::check,
    },
    Rule {
        name: "embeds",
        says: "no crate embeds a file from outside of its folder: a package would lack it",
        check: embeds::check,
    },
    Rule {
        name: "packages",
        says: "each crate that can be published has a README, the licences, and a library called paceline…",
        check: packages::check,
    },
    Rule {
        name: "re-exports",
        says: "what a public signature of crates/paceline mentions, that crate re-exports",
        check: reexports::check,
    },
    Rule {
        name: "header",
        says: "every .rs file starts with a `//!` comment that says what it is",
        check: layout::headers,
    },
    Rule {
        name: "file-size",
        says: "no file has more than 500 lines, tests apart",
        check: layout::file_sizes,
    },
    Rule {
        name: "fn-size",
        says: "no function has more than 70 lines",
        check: layout::function_sizes,
    },
    Rule {
        name: "columns",
        says: "no line of a .rs file has more than 110 columns",
        check: layout::columns,
    },
    Rule {
        name: "orderings",
        says: "in crates/paceline each ordering but Relaxed names its partner in a comment",
        check: orderings::partners,
    },
    Rule {
        name: "edge-tags",
        says: "each edge that a README lists or a comment names has both of its ends in code",
        check: edge_tags::check,
    },
    Rule {
        name: "partner-names",
        says: "what a comment calls an ordering's partner is a name of the same crate",
        check: partners::check,
    },
    Rule {
        name: "long-tests",
        says: "what Miri leaves out by the end of a test's name stands in no other name",
        check: long_tests::check,
    },
    Rule {
        name: "type-names",
        says: "a crate has one type of a name, but for the table in tidy/type_names.rs",
        check: type_names::check,
    },
    Rule {
        name: "words",
        says: "no word of the unfinished, no path of one machine, no registry host",
        check: words::check,
    },
    Rule {
        name: "plain-words",
        says: "comments and documents have few words for people: tidy/plain_words.rs",
        check: plain_words::check,
    },
    Rule {
        name: "examples",
        says: "each public item of crates/paceline has an example, or says why it has none",
        check: examples::check,
    },
    Rule {
        name: "lock",
        says: "Cargo.lock names crates.io and no other source",
        check: words::lock_sources,
    },
    Rule {
        name: "links",
        says: "Markdown links to files lead to a file of the repository",
        check: links::check,
    },
    Rule {
        name: "symlinks",
        says: "no symbolic links, which a checkout on Windows does not have",
        check: symlinks::check,
    },
    Rule {
        name: "reasons",
        says: "each outside dependency in the root manifest has its reason in a comment above",
        check: manifest::reasons,
    },
    Rule {
        name: "yield",
        says: "the runtime and the workloads never yield to the kernel; the job system never polls",
        check: words::yields,
    },
    Rule {
        name: "border",
        says: "the job system catches panics, and so calls the program's code, in one folder",
        check: words::border,
    },
    Rule {
        name: "unsafe",
        says: "unsafe code is in the files listed in tidy/unsafe_code.rs and nowhere else",
        check: unsafe_code::check,
    },
];

/// The options of `cargo xtask tidy`.
#[derive(Args)]
pub(crate) struct Options {
    /// Say which rules there are
    #[arg(long)]
    list: bool,
}

/// Checks every rule, shows what it found; whether that was nothing.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    if options.list {
        for rule in RULES {
            println!("{:<13} {}", rule.name, rule.says);
        }
        return Ok(true);
    }
    match stage(context) {
        Ok(note) => {
            println!("tidy: {} rules hold; {note}", RULES.len());
            Ok(true)
        }
        Err(findings) => {
            println!("{findings}");
            Ok(false)
        }
    }
}

/// The stage `tidy`: `Ok` says how close the tree is to its limits, `Err` lists the findings.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let tree = Tree::load(context)?;
    let mut lines = Vec::new();
    for rule in RULES {
        for finding in (rule.check)(&tree) {
            lines.push(format!("{} [{}]", finding, rule.name));
        }
    }
    if lines.is_empty() {
        Ok(layout::close_to_limits(&tree))
    } else {
        lines.push(format!(
            "tidy: {} findings (`cargo xtask tidy --list` has the rules)",
            lines.len()
        ));
        Err(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_different_names() {
        for (index, rule) in RULES.iter().enumerate() {
            assert!(
                RULES[..index].iter().all(|other| other.name != rule.name),
                "{}",
                rule.name
            );
        }
    }

    /// Rules whose table has rows, which must not be there for what is not there.
    const WITH_A_TABLE: &[&str] = &["circles", "edges", "fn-size", "type-names", "unsafe"];

    /// Goal: no rule depends on a file being there, and a table's rows do. Method: an empty tree.
    #[test]
    fn an_empty_tree_is_tidy_but_for_rows_that_nothing_needs() {
        for rule in RULES {
            let findings = (rule.check)(&Tree::of(&[]));
            let has_table = WITH_A_TABLE.contains(&rule.name);
            assert_eq!(findings.is_empty(), !has_table, "{}", rule.name);
        }
    }
}
