//! Which waits to explain: the meaning of the options in this trace, and a list of what exists if they match
//! nothing.

use std::collections::BTreeSet;

use console::Failure;
use trace::explain::{Selection, names};
use trace::timeline::Timeline;

use super::DiagnoseArguments;

/// How many names a message has room for.
const NAMES_MAX: usize = 8;

/// The waits to explain.
///
/// # Errors
/// If the trace has no such thread or slice; the message has the names that are most alike.
pub(super) fn selection(
    arguments: &DiagnoseArguments,
    timeline: &Timeline,
) -> Result<Selection, Failure> {
    let mut selection = Selection {
        slices: arguments.slice.clone(),
        busy: arguments.busy.clone(),
        ..Selection::default()
    };
    if let Some(wanted) = &arguments.thread {
        let found = timeline.find(wanted);
        if found.is_empty() {
            let threads = timeline.recording().threads.iter();
            let names = threads.map(|thread| timeline.name(thread.task)).collect();
            return Err(unknown("--thread", "thread", wanted, names));
        }
        selection.threads = Some(found);
    }
    let given = [("--slice", &arguments.slice), ("--busy", &arguments.busy)];
    for (option, texts) in given {
        for text in texts {
            let names = names(timeline);
            if !names.iter().any(|name| name.contains(text)) {
                return Err(unknown(option, "slice", text, names));
            }
        }
    }
    Ok(selection)
}

/// Reports that there is no such thing, and lists what there is, the most alike first.
fn unknown(option: &str, what: &str, given: &str, names: BTreeSet<String>) -> Failure {
    let given: String = given.chars().take(40).collect();
    if names.is_empty() {
        return Failure::Usage(format!(
            "{option} {given:?}: this trace has no {what}s; leave it out"
        ));
    }
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
    let shown = shown.join(", ");
    Failure::Usage(format!(
        "{option} {given:?}: this trace has no such {what}; there are {shown}{more}"
    ))
}
