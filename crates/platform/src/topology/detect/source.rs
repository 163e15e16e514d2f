//! Where the files of a machine come from: a folder, or memory.
//!
//! Paths are relative to the machine's root and have no leading slash: `sys/devices/system/cpu/online`.
//!
//! Invariant: what is read is of bounded size.
//!
//! Invariant: nothing here blocks. Only regular files are opened.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use crate::CpuSet;

/// The files of a machine, at this moment, or as they were when they were kept.
pub trait Source {
    /// What a file holds, cut after [`FILE_MAX`] bytes; none if there is no such file or it cannot be read.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// The names in a folder in ascending order; none if there is no such folder.
    fn names(&self, folder: &str) -> Vec<String>;

    /// The mask of the process, where the system tells it otherwise than by a file.
    fn affinity(&self) -> Option<CpuSet> {
        None
    }
}

/// The longest file that is read: `proc/cpuinfo` of thousands of CPUs is shorter.
pub const FILE_MAX: usize = 1 << 24;
/// Most names of a folder.
const NAMES_MAX: usize = 1 << 17;

/// A folder that holds `sys`, `proc` and so on.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Source for Folder {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.0.join(path);
        // A pipe would keep its reader waiting.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(path).ok()?;
        file.take(FILE_MAX as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(folder)) else {
            return Vec::new();
        };
        let names = entries.take(NAMES_MAX).flatten();
        let mut names: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

/// Files in memory, with symbolic links.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>),
    /// Where it leads, from the folder it is in.
    Link(String),
}

impl Tree {
    /// Puts a file there, in place of what was.
    pub fn put(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.nodes.insert(clean(path), Node::File(bytes.into()));
    }

    /// Puts a symbolic link there, in place of what was. Absolute ones lead from the machine's root.
    pub fn link(&mut self, path: &str, target: &str) {
        self.nodes.insert(clean(path), Node::Link(target.into()));
    }

    /// Takes a file or link away.
    pub fn remove(&mut self, path: &str) {
        self.nodes.remove(&clean(path));
    }

    /// The paths of all files (no links), in ascending order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.nodes.iter();
        files.filter_map(|(path, node)| matches!(node, Node::File(_)).then_some(path.as_str()))
    }

    /// The path without links on the way; none if they lead nowhere or in circles.
    fn resolve(&self, path: &str) -> Option<String> {
        const LINKS_MAX: usize = 16;
        let mut links = 0;
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut found = String::new();
        while let Some(step) = rest.pop() {
            match &*step {
                "" | "." => continue,
                ".." => found.truncate(found.rfind('/').unwrap_or(0)),
                name => {
                    let folder = found.len();
                    if folder > 0 {
                        found.push('/');
                    }
                    found.push_str(name);
                    if let Some(Node::Link(target)) = self.nodes.get(&found) {
                        links += 1;
                        if links > LINKS_MAX {
                            return None;
                        }
                        found.truncate(if target.starts_with('/') { 0 } else { folder });
                        rest.extend(target.rsplit('/').map(str::to_owned));
                    }
                }
            }
        }
        Some(found)
    }
}

/// Without what archives put before names: `./`.
fn clean(path: &str) -> String {
    path.trim_start_matches("./").trim_matches('/').to_owned()
}

impl Source for Tree {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        match self.nodes.get(&self.resolve(path)?)? {
            Node::File(bytes) => Some(bytes[..bytes.len().min(FILE_MAX)].to_vec()),
            Node::Link(_) => None,
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Some(folder) = self.resolve(folder) else {
            return Vec::new();
        };
        let prefix = if folder.is_empty() {
            folder
        } else {
            folder + "/"
        };
        let mut names = Vec::new();
        let mut from = prefix.clone();
        while let Some((path, _)) = self.nodes.range(from..).next() {
            let Some(rest) = path.strip_prefix(&prefix) else {
                break;
            };
            let name = rest.split('/').next().unwrap_or(rest);
            names.push(name.to_owned());
            // Behind everything below the name: '0' is the character after '/'. What sorts between the name
            // and its slash, such as "cpu0-x" after "cpu0", comes first if both exist, so nothing is skipped.
            from = if rest.len() == name.len() {
                format!("{path}\0")
            } else {
                format!("{prefix}{name}0")
            };
        }
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a tree in memory behaves like a folder. Method: links as sysfs has them, names that sort
    /// around a slash, a link in a circle.
    #[test]
    fn trees_have_links_and_folders() {
        let mut tree = Tree::default();
        tree.put("./cpu/policy0/max", "5");
        tree.put("cpu/cpu0-x", "");
        tree.put("cpu/cpu0/online", "1");
        tree.put("cpu/cpu00", "");
        tree.link("cpu/cpu0/freq", "../policy0");
        tree.link("cpu/round", "round");
        assert_eq!(tree.read("cpu/cpu0/freq/max"), Some(b"5".to_vec()));
        assert_eq!(tree.read("/cpu/cpu0/../cpu0/online"), Some(b"1".to_vec()));
        assert_eq!(tree.read("cpu/round/x"), None);
        assert_eq!(
            tree.names("cpu"),
            ["cpu0", "cpu0-x", "cpu00", "policy0", "round"]
        );
        assert_eq!(tree.names("cpu/cpu0/freq"), ["max"]);
        assert_eq!(tree.names(""), ["cpu"]);
        assert!(tree.names("nowhere").is_empty());
        assert_eq!(tree.files().count(), 4);
    }
}
