//! Each outside dependency has its reason beside it, in the one version table.

use super::tree::{Finding, Tree};

/// A comment speaks for at most this many dependencies below it (`serde` and `serde_json`).
const COMMENT_SPEAKS_FOR: usize = 2;

/// Rule "reasons": a comment above each line of `[workspace.dependencies]` that is not ours.
pub(super) fn reasons(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.files.iter().find(|file| file.path == "Cargo.toml") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut inside = false;
    let mut since_comment = COMMENT_SPEAKS_FOR;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            since_comment = COMMENT_SPEAKS_FOR;
        } else if line.starts_with('#') {
            since_comment = 0;
        } else if line.is_empty() {
            since_comment = COMMENT_SPEAKS_FOR;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| inside) {
            if since_comment >= COMMENT_SPEAKS_FOR && !value.contains("path =") {
                let message = format!("{} has no comment above that says why", name.trim());
                findings.push(file.finding(index + 1, message));
            }
            since_comment += 1;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(dependencies: &str) -> Vec<String> {
        let text =
            format!("[workspace.dependencies]\n{dependencies}\n[profile.dev]\nopt-level = 1\n");
        shown(&reasons(&Tree::of(&[("Cargo.toml", &text)])))
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let expected = ["Cargo.toml:3: png has no comment above that says why"];
        assert_eq!(
            found("event = { path = \"crates/event\" }\npng = \"1\""),
            expected
        );
    }

    #[test]
    fn a_comment_speaks_for_two_lines_and_no_more() {
        assert!(found("# `--json`.\nserde = \"1\"\nserde_json = \"1\"").is_empty());
        assert_eq!(
            found("# `--json`.\nserde = \"1\"\nserde_json = \"1\"\npng = \"1\"").len(),
            1
        );
        assert_eq!(found("# Far away.\n\npng = \"1\"").len(), 1);
    }
}
