//! What a package is to have with it, and how its library is called.

use super::tree::{File, Finding, Package, Tree};

/// A package is read without the repository around it.
const README: &str = "README.md";

/// Copies of the files at the root: a package has what is in its folder, and links are not for all systems.
const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// The name of each library begins with this: other programs have a `platform` and an `event` of their own.
const PREFIX: &str = "paceline";

/// Rule "packages": each crate that can be published has a README, the licences, and a name that says whose
/// it is.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let packages = tree.packages.iter();
    let published = packages.filter(|package| package.is_published);
    published
        .flat_map(|package| of_package(tree, package))
        .collect()
}

fn of_package(tree: &Tree, package: &Package) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |message: String| {
        findings.push(Finding {
            place: package.name.clone(),
            line: 0,
            message,
        });
    };
    let inside = |name: &str| file(tree, &format!("{}/{name}", package.folder));
    if inside(README).is_none() {
        say(format!("has no {README}, which a registry shows"));
    }
    for name in LICENCES {
        let original = file(tree, name).map(|file| &file.text);
        if inside(name).map(|file| &file.text) != original {
            say(format!("has no {name} like the one at the root: copy that"));
        }
    }
    for library in &package.libraries {
        if !library.starts_with(PREFIX) {
            say(format!(
                "has a library {library}, which others could have, too: {PREFIX}_{library}"
            ));
        }
    }
    findings
}

fn file<'a>(tree: &'a Tree, path: &str) -> Option<&'a File> {
    tree.files.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const ROOT: [(&str, &str); 2] = [("LICENSE-APACHE", "apache"), ("LICENSE-MIT", "mit")];

    fn found(files: &[(&str, &str)], library: &str, is_published: bool) -> Vec<String> {
        let mut tree = Tree::of(&[&ROOT, files].concat());
        tree.packages.push(Package {
            name: "paceline-x".to_owned(),
            folder: "crates/x".to_owned(),
            is_published,
            libraries: vec![library.to_owned()],
            dependencies: Vec::new(),
        });
        shown(&check(&tree))
    }

    const WHOLE: [(&str, &str); 3] = [
        ("crates/x/README.md", "# x"),
        ("crates/x/LICENSE-APACHE", "apache"),
        ("crates/x/LICENSE-MIT", "mit"),
    ];

    /// Goal: a whole package is fine, and one that stays here may lack anything. Method: both.
    #[test]
    fn a_package_that_has_all_is_fine() {
        assert!(found(&WHOLE, "paceline_x", true).is_empty());
        assert!(found(&[], "x", false).is_empty());
    }

    /// Goal: what is missing or different is named. Method: each file missing, a licence that is another one,
    /// a library with a name of one word.
    #[test]
    fn what_a_package_lacks_is_found() {
        for missing in WHOLE {
            let there = WHOLE.iter().filter(|file| **file != missing);
            let files: Vec<_> = there.copied().collect();
            let all = found(&files, "paceline_x", true);
            assert_eq!(all.len(), 1, "{all:?}");
            let name = missing.0.rsplit('/').next().unwrap_or_default();
            assert!(all[0].contains(name), "{all:?}");
        }
        let mut other = WHOLE;
        other[2].1 = "another one";
        assert_eq!(
            found(&other, "x", true),
            [
                "paceline-x: has no LICENSE-MIT like the one at the root: copy that",
                "paceline-x: has a library x, which others could have, too: paceline_x",
            ]
        );
    }
}
