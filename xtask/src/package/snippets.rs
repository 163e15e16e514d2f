//! The examples in the documentation of a package, taken out of its source.
//!
//! Within their crate they could name its dependencies, which a stranger does not have. So they are compiled
//! as the documentation of a package of the stranger's.

use std::fs;
use std::path::{Path, PathBuf};

/// The documentation of one file: its place below `src`, and all its comments that hold an example.
pub(super) struct Snippets {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

/// The documentation with examples in each Rust file below this folder, by path.
pub(super) fn in_folder(src: &Path) -> Result<Vec<Snippets>, String> {
    let mut found = Vec::new();
    let mut open = vec![src.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).map_err(failed)?;
                let text = examples(&source);
                if !text.is_empty() {
                    let file = path.strip_prefix(src).unwrap_or(&path).to_owned();
                    found.push(Snippets { file, text });
                }
            }
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

/// The documentation comments of a Rust file that have an example, without their marks.
fn examples(source: &str) -> String {
    let mut all = String::new();
    let mut comment = String::new();
    for line in source.lines().chain([""]) {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
        if let Some(text) = text {
            comment.push_str(text.strip_prefix(' ').unwrap_or(text));
            comment.push('\n');
            continue;
        }
        if comment.contains("```") {
            all.push_str(&comment);
            all.push('\n');
        }
        comment.clear();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: examples are taken whole, other comments are left out. Method: an example with an indented line
    /// and a hidden one, one of a whole file, a comment without an example, one that is no documentation.
    #[test]
    fn examples_are_taken_out_of_comments() {
        let source = "//! A file.\n//! ```\n//! f();\n//! ```\n\n    /// Opens.\n    ///\n    /// ```\n    \
                      /// # use a::b;\n    /// if x {\n    ///     y();\n    /// }\n    /// ```\n    \
                      fn open() {}\n/// Closes.\nfn close() {}\n// ```\n";
        let expected =
            "A file.\n```\nf();\n```\n\nOpens.\n\n```\n# use a::b;\nif x {\n    y();\n}\n```\n\n";
        assert_eq!(examples(source), expected);
    }
}
