//! Which module of a crate names which: the arrows of its inside, read from paths.
//!
//! A path counts where it leads to: through re-exports to the module that defines the name. A re-export is no
//! arrow of its own, unless the module uses the name too. Calls of methods name no module and are not seen.
//! Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Import, Path, imports_and_paths};
use super::tree::{File, Tree};
use crate::source::{RustSource, words};

/// Words before the name of an item that a path may lead to.
const ITEMS: &[&str] = &[
    "fn", "struct", "enum", "union", "trait", "type", "const", "static",
];

/// How many re-exports a path may lead through.
const DEPTH: usize = 16;

/// The modules of one crate and their arrows.
pub(super) struct Modules {
    /// Each as its path from the root, the root without a name.
    pub(super) names: Vec<Vec<String>>,
    /// From which to which, with the first place that says so: file, line, and the path there.
    pub(super) arrows: BTreeMap<(usize, usize), (String, usize, String)>,
}

/// One module while arrows are looked for.
struct Module<'a> {
    files: Vec<(&'a File, &'a RustSource)>,
    /// Names that it defines.
    defined: BTreeSet<&'a str>,
    imports: Vec<Import>,
    paths: Vec<(Path, usize)>,
}

/// All modules of a crate, to find what a path means.
struct Crate<'a>(BTreeMap<Vec<String>, Module<'a>>);

impl Modules {
    /// Reads the sources below `folder`, such as `crates/sim/src/`.
    pub(super) fn of(tree: &Tree, folder: &str) -> Modules {
        let all = Crate::read(tree, folder);
        let names: Vec<Vec<String>> = all.0.keys().cloned().collect();
        let number = |name: &Vec<String>| names.binary_search(name).ok();
        let mut arrows = BTreeMap::new();
        for (from, module) in &all.0 {
            for (path, line) in module.used() {
                let to = all.meant(from, path, 0).and_then(|to| number(&to));
                if let (Some(from), Some(to)) = (number(from), to)
                    && from != to
                {
                    let place = module.files.first().map(|(file, _)| file.path.clone());
                    let said = (place.unwrap_or_default(), line, path.join("::"));
                    arrows.entry((from, to)).or_insert(said);
                }
            }
        }
        Modules { names, arrows }
    }
}

/// The modules of a crate without tests, each with its files: one, or one for each system.
pub(super) fn files<'a>(tree: &'a Tree, folder: &str) -> Vec<Vec<(&'a File, &'a RustSource)>> {
    let modules = Crate::read(tree, folder).0.into_values();
    modules.map(|module| module.files).collect()
}

/// The names of the folders in `crates/`.
pub(super) fn crates(tree: &Tree) -> BTreeSet<&str> {
    let paths = tree.rust().map(|(file, _)| &file.path[..]);
    let names = paths.filter_map(|path| path.strip_prefix("crates/")?.split_once("/src/"));
    names.map(|(name, _)| name).collect()
}

impl Module<'_> {
    /// Paths that say that this module uses another one: those in code, and imports but for re-exports of
    /// names that the module itself does not use.
    fn used(&self) -> impl Iterator<Item = (&Path, usize)> {
        let imports = self.imports.iter();
        let imports = imports.filter(|import| !import.is_passed_on || import.is_used);
        let imports = imports.map(|import| (&import.path, import.line));
        imports.chain(self.paths.iter().map(|(path, line)| (path, *line)))
    }
}

impl<'a> Crate<'a> {
    fn read(tree: &'a Tree, folder: &str) -> Crate<'a> {
        let files = tree
            .rust()
            .filter(|(file, _)| file.path.starts_with(folder));
        let files: Vec<_> = files.filter(|(file, _)| !file.is_test()).collect();
        let elsewhere: BTreeMap<String, Vec<String>> = files
            .iter()
            .flat_map(|(file, source)| placed_by_attribute(file, source, folder))
            .collect();
        let mut modules: BTreeMap<Vec<String>, Module<'a>> = BTreeMap::new();
        let mut for_tests = BTreeSet::new();
        for (file, source) in files {
            let name = match elsewhere.get(&file.path) {
                Some(name) => name.clone(),
                None => name_of(&file.path, folder),
            };
            for child in declared(source, true, &["mod"]) {
                for_tests.insert([&name[..], &[child.to_owned()]].concat());
            }
            let (imports, paths) = imports_and_paths(source);
            let module = modules.entry(name).or_insert_with(Module::empty);
            module.files.push((file, source));
            module.defined.extend(declared(source, false, ITEMS));
            module.imports.extend(imports);
            module.paths.extend(paths);
        }
        modules.retain(|name, _| !(1..=name.len()).any(|end| for_tests.contains(&name[..end])));
        Crate(modules)
    }

    /// The module that defines what a path in module `from` leads to. `None` if that is in another crate, or
    /// if it is a whole module: what is used of it is said elsewhere.
    fn meant(&self, from: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let (start, rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (from.to_vec(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            _ => (from.to_vec(), path),
        };
        let is_relative = rest.len() == path.len();
        self.walk(start, rest, is_relative, depth)
    }

    /// From this module along the rest of a path. Where the path begins without `crate`, `self` or `super`,
    /// its first name is a child's, an import's, or nothing of this crate.
    fn walk(
        &self,
        mut at: Vec<String>,
        path: &[String],
        is_relative: bool,
        depth: usize,
    ) -> Option<Vec<String>> {
        let length = path.len();
        let mut path = path;
        while let Some((first, rest)) = path.split_first() {
            if first == "super" {
                at.pop()?;
                path = rest;
                continue;
            }
            let child = [&at[..], std::slice::from_ref(first)].concat();
            if !self.0.contains_key(&child) {
                break;
            }
            at = child;
            path = rest;
        }
        let module = self.0.get(&at)?;
        let name = path.first()?;
        if module.defined.contains(&name[..]) || name == "*" {
            return Some(at);
        }
        let is_foreign = is_relative && path.len() == length;
        if depth > DEPTH {
            return None;
        }
        let named = module
            .imports
            .iter()
            .find(|import| import.name() == Some(name));
        if let Some(import) = named {
            let whole = [&import.path[..], &path[1..]].concat();
            return self.meant_by_import(&at, &whole, depth + 1);
        }
        let globs = module.imports.iter().filter(|import| import.is_glob());
        let mut found = globs.filter_map(|glob| {
            let end = glob.path.len() - 1;
            let whole = [&glob.path[..end], path].concat();
            self.meant_by_import(&at, &whole, depth + 1)
        });
        // An item that a macro makes is found nowhere: it counts for the module that the path names.
        found.next().or_else(|| (!is_foreign).then(|| at.clone()))
    }

    /// As [`meant`](Crate::meant), for the path of an import, which does not go through imports itself.
    fn meant_by_import(&self, at: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let first = path.first()?;
        let is_here = ["crate", "self", "super"].contains(&first.as_str())
            || self
                .0
                .contains_key(&[at, std::slice::from_ref(first)].concat());
        is_here.then(|| self.meant(at, path, depth)).flatten()
    }
}

impl Module<'_> {
    fn empty() -> Self {
        Module {
            files: Vec::new(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
            paths: Vec::new(),
        }
    }
}

/// The module of a file, by its place.
fn name_of(path: &str, folder: &str) -> Vec<String> {
    let inside = path.strip_prefix(folder).unwrap_or(path);
    let parts = inside.trim_end_matches(".rs").split('/');
    let mut name: Vec<String> = parts.map(str::to_owned).collect();
    if name.last().is_some_and(|last| last == "mod")
        || (name.len() == 1 && ["lib", "main"].contains(&name[0].as_str()))
    {
        name.pop();
    }
    name
}

/// Files whose module an attribute `#[path = "…"]` names: the file, and its module.
fn placed_by_attribute(
    file: &File,
    source: &RustSource,
    folder: &str,
) -> Vec<(String, Vec<String>)> {
    let mut placed = Vec::new();
    let mut given = None;
    let beside = file.path.rsplit_once('/').map_or("", |(beside, _)| beside);
    for (text, line) in file.text.lines().zip(&source.lines) {
        if let Some((_, rest)) = text.split_once("#[path = \"") {
            given = rest.split('"').next();
        }
        let mut all = words(&line.code).map(|(_, word)| word);
        if let (Some(_), Some(name)) = (all.find(|word| *word == "mod"), all.next())
            && let Some(given) = given.take()
        {
            let module = [&name_of(&file.path, folder)[..], &[name.to_owned()]].concat();
            placed.push((format!("{beside}/{given}"), module));
        }
    }
    placed
}

/// Names behind these words, in tests or outside of them.
fn declared<'a>(source: &'a RustSource, test: bool, items: &[&str]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for line in source.lines.iter().filter(|line| line.test == test) {
        let all: Vec<&str> = words(&line.code).map(|(_, word)| word).collect();
        for pair in all.windows(2).filter(|pair| items.contains(&pair[0])) {
            names.push(pair[1]);
        }
    }
    names
}
