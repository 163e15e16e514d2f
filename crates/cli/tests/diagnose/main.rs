//! `paceline diagnose` as its users meet it, on traces with known facts.

mod annotated;
mod causes;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/guide.rs"]
mod guide;
mod input;
mod own;
mod quota;
mod select;

use common::fine;
use serde_json::Value;

pub(crate) fn json(trace: &str, more: &[&str]) -> Value {
    let trace = format!("testdata/traces/{trace}");
    let mut arguments = vec!["diagnose", &trace, "--json"];
    arguments.extend(more);
    serde_json::from_str(&fine(&arguments)).unwrap()
}

pub(crate) fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap()
}

pub(crate) fn ns(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

/// The time of all causes of these kinds with this thread on the path.
pub(crate) fn of_causes(wait: &Value, thread: &str, kinds: &[&str]) -> u64 {
    let is_one = |cause: &&Value| {
        cause["thread"] == thread && kinds.contains(&cause["kind"].as_str().unwrap())
    };
    list(wait, "causes")
        .iter()
        .filter(is_one)
        .map(|cause| ns(cause, "ns"))
        .sum()
}

/// The time that this thread had the CPU while another one could have run.
pub(crate) fn of_runner(wait: &Value, thread: &str) -> u64 {
    let shares = list(wait, "causes")
        .iter()
        .flat_map(|cause| list(cause, "by"));
    shares
        .filter(|share| share["thread"] == thread)
        .map(|share| ns(share, "ns"))
        .sum()
}

/// Goal: the guide shows what the program prints. Method: run each command of `docs/diagnose.md` that begins
/// with `$ paceline` and compare the text below it; `…` at the end stands for more lines.
#[test]
fn the_guide_shows_what_is_printed() {
    guide::shows_what_is_printed("docs/diagnose.md", 3);
}
