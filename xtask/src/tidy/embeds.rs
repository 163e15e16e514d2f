//! A file that a crate embeds lies in the crate: its package would lack it otherwise, and not compile.

use super::tree::{File, Finding, Tree};

const MACROS: &[&str] = &["include_str!(\"", "include_bytes!(\"", "include!(\""];

/// Rule "embeds": no file of a crate embeds one from outside of the crate's folder.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let Some(folder) = crate_of(&file.path) else {
            continue;
        };
        for (index, line) in file.text.lines().enumerate() {
            for given in embedded(line) {
                let path = resolved(file, given);
                if path.is_none_or(|path| !path.starts_with(folder)) {
                    let message = format!("embeds {given} from outside of {folder}: move it there");
                    findings.push(file.finding(index + 1, message));
                }
            }
        }
    }
    findings
}

/// The folder of a library's crate, with its last `/`.
fn crate_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("crates/")?;
    let name = rest.find('/')?;
    Some(&path[..path.len() - rest.len() + name + 1])
}

/// The paths that a line embeds, as they are written.
fn embedded(line: &str) -> impl Iterator<Item = &str> {
    let behind = |begin: &'static &'static str| line.split(*begin).skip(1);
    MACROS
        .iter()
        .flat_map(behind)
        .filter_map(|rest| rest.split('"').next())
}

/// A path beside this file, from the root; `None` if it leads out of the repository.
fn resolved(file: &File, given: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.path.split('/').collect();
    parts.pop();
    for part in given.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    #[test]
    fn what_is_embedded_from_outside_is_found() {
        let text = "//! x\nconst A: &str = include_str!(\"../data/a\");\n\
                    const B: &[u8] = include_bytes!(\"../../b\");\n\
                    #[doc = include_str!(\"../../../../../c\")]\n";
        let found = |path| shown(&check(&Tree::of(&[(path, text)])));
        let outside = |line, what| {
            format!(
                "crates/x/src/a.rs:{line}: embeds {what} from outside of crates/x/: move it there"
            )
        };
        assert_eq!(
            found("crates/x/src/a.rs"),
            [outside(3, "../../b"), outside(4, "../../../../../c")]
        );
        assert!(found("tests/a.rs").is_empty(), "it is never a package");
    }
}
