//! No symbolic links: a checkout on Windows has text files in their place.

use super::tree::{Finding, Tree};

/// Rule "symlinks": the repository has none.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let finding = |path: &String| Finding {
        place: path.clone(),
        line: 0,
        message: "a symbolic link is a text file on Windows: name what it leads to".to_owned(),
    };
    tree.symlinks.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    /// Goal: a link is found. Method: a tree with one.
    #[test]
    fn a_symbolic_link_is_found() {
        let mut tree = Tree::of(&[("crates/sim/machines/a.toml", "")]);
        tree.symlinks.push("machines".to_owned());
        let expected =
            ["machines: a symbolic link is a text file on Windows: name what it leads to"];
        assert_eq!(shown(&check(&tree)), expected);
    }
}
