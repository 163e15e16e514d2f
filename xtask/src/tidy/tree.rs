//! The input of the rules: the repository's text files, and its crates with their dependencies.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use cargo_metadata::DependencyKind;

use crate::context::{Context, is_published};
use crate::source::RustSource;

/// The repository as the rules see it.
pub(super) struct Tree {
    /// Text files, sorted by path.
    pub(super) files: Vec<File>,
    /// Every file and folder, readable as text or not; paths with `/`, from the root.
    pub(super) paths: BTreeSet<String>,
    /// Symbolic links, which are in none of the above.
    pub(super) symlinks: Vec<String>,
    /// The workspace's own packages.
    pub(super) packages: Vec<Package>,
}

/// One text file.
pub(super) struct File {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Taken apart, if it is Rust.
    pub(super) rust: Option<RustSource>,
}

/// One package of the workspace.
pub(super) struct Package {
    pub(super) name: String,
    /// From the root, with `/`.
    pub(super) folder: String,
    /// Whether the manifest lets it be published.
    pub(super) is_published: bool,
    /// The names of its libraries.
    pub(super) libraries: Vec<String>,
    pub(super) dependencies: Vec<Dependency>,
}

/// One line of a package's dependencies.
pub(super) struct Dependency {
    pub(super) name: String,
    /// Whether it is only for tests, benches and examples.
    pub(super) dev: bool,
}

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// A file, or a package.
    pub(super) place: String,
    /// From 1; 0 if it is about the whole.
    pub(super) line: usize,
    pub(super) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.message),
            line => write!(f, "{}:{line}: {}", self.place, self.message),
        }
    }
}

impl Tree {
    /// Reads the repository. Files that git would not keep (build output, hidden folders) are left out.
    pub(super) fn load(context: &Context) -> Result<Tree, String> {
        let mut tree = Tree {
            files: Vec::new(),
            paths: BTreeSet::new(),
            symlinks: Vec::new(),
            packages: Vec::new(),
        };
        tree.add_folder(&context.root, "")
            .map_err(|error| format!("cannot read {}: {error}", context.root.display()))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        for package in &context.metadata.packages {
            let dependencies = package.dependencies.iter().map(|dependency| Dependency {
                name: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
            });
            let folder = package.manifest_path.parent();
            let folder = folder.and_then(|folder| folder.strip_prefix(&context.root).ok());
            let libraries = package.targets.iter().filter(|target| target.is_lib());
            tree.packages.push(Package {
                name: package.name.to_string(),
                folder: folder
                    .map_or_else(String::new, |folder| folder.as_str().replace('\\', "/")),
                is_published: is_published(package),
                libraries: libraries.map(|target| target.name.clone()).collect(),
                dependencies: dependencies.collect(),
            });
        }
        Ok(tree)
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let hidden = name.starts_with('.') && !KEPT_FOLDERS.contains(&name.as_str());
                if name == "target" || hidden {
                    continue;
                }
                self.paths.insert(path.clone());
                self.add_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_symlink() {
                self.symlinks.push(path);
            } else if kind.is_file() && path != GIT_FILE {
                self.paths.insert(path.clone());
                // A file that is no UTF-8 is data, and no rule is about data.
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    self.files.push(File::new(path, text));
                }
            }
        }
        Ok(())
    }

    /// The Rust files, each with its source taken apart.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &RustSource)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let mut paths = BTreeSet::new();
        for (path, _) in files {
            for (at, _) in path.match_indices('/') {
                paths.insert(path[..at].to_owned());
            }
            paths.insert((*path).to_owned());
        }
        let file = |(path, text): &(&str, &str)| File::new((*path).to_owned(), (*text).to_owned());
        Tree {
            files: files.iter().map(file).collect(),
            paths,
            symlinks: Vec::new(),
            packages: Vec::new(),
        }
    }
}

/// In a worktree of git's this is a file, which says where the repository is.
const GIT_FILE: &str = ".git";

/// Hidden folders that are part of the project.
const KEPT_FOLDERS: &[&str] = &[".cargo", ".ci", ".github"];

impl File {
    fn new(path: String, text: String) -> File {
        let rust = path.ends_with(".rs").then(|| RustSource::new(&text));
        File { path, text, rust }
    }

    /// Whether the whole file is for tests.
    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs"
            || name.ends_with("_tests.rs")
            || format!("/{}", self.path).contains("/tests/")
    }

    /// A finding on this line (from 1; 0 for the whole file).
    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            place: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}

/// The findings of a rule, as lines to compare with.
#[cfg(test)]
pub(super) fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: &Path) -> Tree {
        let mut tree = Tree::of(&[]);
        tree.add_folder(folder, "").expect("the folder can be read");
        tree
    }

    /// Goal: a tree has what git keeps. Method: a folder with a worktree's `.git`, build output and hidden
    /// folders.
    #[test]
    fn what_git_does_not_keep_is_left_out() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for path in [".git", "a.rs", "target/b.rs", ".idea/c.rs", ".github/d.yml"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it is below the folder")).expect("made");
            fs::write(path, "//! x").expect("written");
        }
        let tree = read(folder.path());
        let paths: Vec<_> = tree.paths.iter().map(String::as_str).collect();
        assert_eq!(paths, [".github", ".github/d.yml", "a.rs"]);
    }

    /// Goal: a symbolic link is told apart from what it leads to. Method: a link to a folder and one to
    /// nothing.
    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_no_files() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for (to, name) in [(".", "here"), ("nowhere", "lost")] {
            std::os::unix::fs::symlink(to, folder.path().join(name)).expect("linked");
        }
        let mut tree = read(folder.path());
        tree.symlinks.sort();
        assert_eq!(tree.symlinks, ["here", "lost"]);
        assert!(tree.paths.is_empty());
    }
}
