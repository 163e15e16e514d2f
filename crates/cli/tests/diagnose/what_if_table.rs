//! The table of `docs/what-if.md`: how many long waits of real traces replay well.

use serde_json::Value;

use super::made::table_in;
use super::{json, list};

/// The traces, phones first.
const TRACES: [&str; 11] = [
    "catapult-android41-dualcore.systrace.txt.gz",
    "tracecompass-atrace-youtube.txt.gz",
    "ms-galaxy-s20.perfetto-trace.gz",
    "ms-android12-emulator-a.pftrace.gz",
    "trappy-hmp8-a.report.txt.gz",
    "lisa-juno-rtapp.report-N.txt.gz",
    "local-pathfinder-nopi.ftrace.txt.gz",
    "local-pathfinder-pi.ftrace.txt.gz",
    "local-quota.ftrace.txt.gz",
    "local-futex.ftrace.txt.gz",
    "local-spin.ftrace.txt.gz",
];

/// What refused waits have most of, in the table's words.
fn reason(wait: &Value) -> &'static str {
    let part = &wait["difference"];
    let more = part["replayed_ns"].as_u64() > part["recorded_ns"].as_u64();
    match (part["kind"].as_str(), wait["replayed_ns"].is_null()) {
        (_, true) => "no end",
        (Some("preempted"), _) if more => "waits longer for a CPU",
        (Some("preempted"), _) => "waits less for a CPU",
        (Some("running"), _) => "others run",
        (Some("interrupt"), _) => "sleeps end elsewhere",
        _ => "other",
    }
}

fn row(trace: &str) -> String {
    // A change that changes nothing: the replay as it was.
    let report = json(trace, &["--what-if", "work:*=100%", "--seeds", "1"]);
    let replay = &report["replay"];
    let waits = list(&report, "waits");
    let refused = waits.iter().filter(|wait| !wait["refused"].is_null());
    let refused: Vec<&str> = refused.map(reason).collect();
    let mut kinds: Vec<(usize, &str)> = Vec::new();
    for kind in &refused {
        match kinds.iter_mut().find(|(_, known)| known == kind) {
            Some((count, _)) => *count += 1,
            None => kinds.push((1, kind)),
        }
    }
    kinds.sort_by_key(|&(count, kind)| (std::cmp::Reverse(count), kind));
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(count, kind)| format!("{kind} {count}"))
        .collect();
    let number = |key: &str| replay[key].as_u64().unwrap();
    let (long, good) = (number("long_waits"), number("within_10_percent"));
    assert_eq!(long - good, refused.len() as u64);
    format!(
        "| `{trace}` | {} | {long} | {good} | {} % | {:.1} % | {} |\n",
        report["policy"].as_str().unwrap(),
        good * 100 / long,
        replay["share_error"].as_f64().unwrap() * 100.0,
        kinds.join(", ")
    )
}

/// Goal: the guide counts honestly how many long waits of real traces replay within 10 %, and why others do
/// not. Method: count again. `PACELINE_WRITE_TABLE=1` before the test writes the table.
#[test]
fn the_guide_counts_what_replays() {
    const PATH: &str = "docs/what-if.md";
    let mut table = String::from(
        "| trace | policy | long waits | within 10 % | share | CPU time elsewhere | what differs most in the \
         others |\n|---|---|---|---|---|---|---|\n",
    );
    for trace in TRACES {
        table += &row(trace);
    }
    table_in(PATH, "replays", &table);
}
