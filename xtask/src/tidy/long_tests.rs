//! Tests that Miri leaves out are left out by the end of their name, and nothing else has it anywhere.

use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};
use crate::stages::commands::{INTERPRETED, LONG};

/// How many lines above a test's `fn` its `#[test]` is, at most.
const REACH: usize = 4;

/// Rule "long-tests": in the path of a test that Miri is to run, [`LONG`] stands nowhere.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| is_interpreted(file)) {
        let path = file.path.trim_end_matches(".rs").split('/');
        if path.into_iter().any(|part| part.contains(LONG)) {
            findings.push(file.finding(0, message("the name of a module")));
        }
        for (index, line) in source.lines.iter().enumerate() {
            let all: Vec<&str> = words(&line.code).map(|(_, word)| word).collect();
            for pair in all.windows(2) {
                let is_bad = match pair[0] {
                    "mod" => pair[1].contains(LONG),
                    "fn" => pair[1].trim_end_matches(LONG).contains(LONG) && is_test(source, index),
                    _ => false,
                };
                if is_bad {
                    findings.push(file.finding(index + 1, message(pair[1])));
                }
            }
        }
    }
    findings
}

fn message(name: &str) -> String {
    format!(
        "{LONG} in {name}: Miri would leave it out; the end of a test's name is the place for it"
    )
}

fn is_interpreted(file: &File) -> bool {
    let rest = file.path.strip_prefix("crates/").unwrap_or_default();
    let name = rest.split('/').next().unwrap_or_default();
    INTERPRETED.contains(&name)
}

/// Whether the function of this line is a test.
fn is_test(source: &RustSource, line: usize) -> bool {
    let above = source.lines[line.saturating_sub(REACH)..line].iter().rev();
    let mut attributes = above.take_while(|line| !line.code.contains('}'));
    attributes.any(|line| line.code.contains("#[test]"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        shown(&check(&Tree::of(&[(path, text)])))
    }

    /// Goal: the end of a test's name may say that it is long, and other functions may be called anything.
    /// Method: one of each, and a crate that Miri does not interpret.
    #[test]
    fn long_tests_and_other_functions_are_fine() {
        let text = "#[test]\nfn it_holds_long() {}\n\nfn a_longer_one() {}\nmod slow {}\n";
        assert!(found("crates/paceline/src/slow.rs", text).is_empty());
        let longest = "#[test]\nfn the_longest_wins() {}\n";
        assert!(found("crates/trace/src/a.rs", longest).is_empty());
    }

    /// Goal: what would be left out by mistake is found. Method: a test, a module, a file.
    #[test]
    fn what_would_be_left_out_by_mistake_is_found() {
        let path = "crates/paceline/src/a.rs";
        let found_in = |name: String| {
            format!("{name}: Miri would leave it out; the end of a test's name is the place for it")
        };
        let test = "#[test]\n#[should_panic]\nfn the_longest_wins() {}\n";
        let expected = [found_in(format!("{path}:3: {LONG} in the_longest_wins"))];
        assert_eq!(found(path, test), expected);
        let expected = [found_in(format!("{path}:1: {LONG} in so_long"))];
        assert_eq!(found(path, "mod so_long;\n"), expected);
        let file = "crates/event/src/so_long/mod.rs";
        let expected = [found_in(format!("{file}: {LONG} in the name of a module"))];
        assert_eq!(found(file, ""), expected);
    }
}
