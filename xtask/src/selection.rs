//! Which stages take part in a run, and which of them run at the same time.

use crate::stages::{STAGES, Stage};

/// The stages in groups that run at the same time.
pub(crate) fn groups<'a>(stages: &'a [&'a Stage]) -> Vec<&'a [&'a Stage]> {
    stages.chunk_by(|_, next| next.beside).collect()
}

/// The rows that `only` and `skip` leave, in table order. Names were checked by clap.
pub(crate) fn selected<'a>(only: &[String], skip: &[String]) -> Vec<&'a Stage> {
    let named = |names: &[String], stage: &Stage| names.iter().any(|name| name == stage.name);
    STAGES
        .iter()
        .filter(|stage| only.is_empty() || named(only, stage))
        .filter(|stage| !named(skip, stage))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        selected(&owned(only), &owned(skip))
            .iter()
            .map(|stage| stage.name)
            .collect()
    }

    #[test]
    fn nothing_asked_for_means_all() {
        assert_eq!(names(&[], &[]).len(), STAGES.len());
    }

    /// The order is the table's, whatever the order of the wish.
    #[test]
    fn only_keeps_the_order_of_the_table() {
        assert_eq!(names(&["unit", "fmt"], &[]), ["fmt", "unit"]);
    }

    #[test]
    fn skip_wins_over_only() {
        assert_eq!(names(&["unit", "fmt"], &["unit"]), ["fmt"]);
        assert!(!names(&[], &["miri"]).contains(&"miri"));
    }

    /// Goal: a stage runs beside the one above it, if that takes part, and else alone. Method: the table,
    /// whole and without a stage.
    #[test]
    fn stages_beside_each_other_are_a_group() {
        let grouped = |skip: &[String]| {
            let stages = selected(&[], skip);
            let names = |group: &&[&Stage]| group.iter().map(|stage| stage.name).collect();
            groups(&stages).iter().map(names).collect::<Vec<Vec<_>>>()
        };
        let all = grouped(&[]);
        assert!(all.contains(&vec!["miri", "tsan"]) && all.contains(&vec!["unit"]));
        assert_eq!(all.concat().len(), STAGES.len());
    }
}
