//! `paceline diagnose` as its users meet it, on traces with known facts.

mod annotated;
mod causes;
#[path = "../common/mod.rs"]
mod common;
mod groups;
#[path = "../common/guide.rs"]
mod guide;
mod input;
mod made;
mod names;
mod own;
mod phones;
mod quota;
mod remedies;
mod select;
mod sentences;
mod size;
mod what_if;
mod what_if_pairs;
mod what_if_table;

use common::fine;
use serde_json::Value;

pub(crate) fn json(trace: &str, more: &[&str]) -> Value {
    let trace = format!("testdata/traces/{trace}");
    let mut arguments = vec!["diagnose", &trace, "--json"];
    arguments.extend(more);
    serde_json::from_str(&fine(&arguments)).unwrap()
}

/// The text for a person in one line, whatever its width.
pub(crate) fn text(trace: &str, more: &[&str]) -> String {
    let trace = format!("testdata/traces/{trace}");
    let mut arguments = vec!["diagnose", &trace];
    arguments.extend(more);
    let text = fine(&arguments);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap()
}

pub(crate) fn ns(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

/// What a position in `who` stands for; null if there is none.
pub(crate) fn who<'a>(report: &'a Value, position: &Value) -> &'a Value {
    let at = position.as_u64().map(|at| at as usize);
    at.map_or(&Value::Null, |at| &report["who"][at])
}

/// The time of all causes of these kinds with this thread on the path.
pub(crate) fn of_causes(report: &Value, wait: &Value, thread: &str, kinds: &[&str]) -> u64 {
    let is_one = |cause: &&Value| {
        who(report, &cause["who"])["thread"] == thread
            && kinds.contains(&cause["kind"].as_str().unwrap())
    };
    list(wait, "causes")
        .iter()
        .filter(is_one)
        .map(|cause| ns(cause, "ns"))
        .sum()
}

/// What had the CPU during a cause; nothing if that is left out.
pub(crate) fn by(cause: &Value) -> &[Value] {
    cause["by"].as_array().map_or(&[], Vec::as_slice)
}

/// The time that this thread had the CPU while another one could have run.
pub(crate) fn of_runner(report: &Value, wait: &Value, thread: &str) -> u64 {
    let shares = list(wait, "causes").iter().flat_map(by);
    shares
        .filter(|share| who(report, &share["who"])["thread"] == thread)
        .map(|share| ns(share, "ns"))
        .sum()
}

/// Goal: the guide shows what the program prints. Method: run each command of `docs/diagnose.md` that begins
/// with `$ paceline` and compare the text below it; `…` at the end stands for more lines.
#[test]
fn the_guide_shows_what_is_printed() {
    guide::shows_what_is_printed("docs/diagnose.md", 3);
}
