//! The names that there are, for a message about one that there is not.

use std::collections::BTreeSet;

/// How many names a message has room for.
const NAMES_MAX: usize = 8;

/// Lists names, the most alike first: `there are "a", "b" and 3 more`.
pub(super) fn alike(given: &str, names: BTreeSet<String>) -> String {
    let likeness = |name: &str| {
        let (name, given) = (name.to_lowercase(), given.to_lowercase());
        strsim::jaro_winkler(&given, &name)
    };
    let mut names: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (likeness(&name), name))
        .collect();
    // The sort is stable: equally like names stay in their order.
    names.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = match names.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(NAMES_MAX);
    let shown: Vec<String> = shown.map(|(_, name)| format!("{name:?}")).collect();
    format!("there are {}{more}", shown.join(", "))
}
