//! Many waits of one name, and two traces against each other.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{fine, paceline};
use crate::{json, list, ns, who};

const NOPI: &str = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
const PI: &str = "testdata/traces/local-pathfinder-pi.ftrace.txt.gz";

/// By kind and thread: the causes of a wait.
fn causes(report: &Value, wait: &Value) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for cause in list(wait, "causes") {
        let thread = &who(report, &cause["who"])["thread"];
        let thread = if *thread == wait["thread"] {
            "itself"
        } else {
            thread.as_str().unwrap_or_default()
        };
        let kind = match cause["kind"].as_str().unwrap() {
            "wake_latency" => "preempted",
            kind => kind,
        };
        *sums
            .entry((kind.to_owned(), thread.to_owned()))
            .or_default() += ns(cause, "ns");
    }
    sums
}

/// Goal: lengths of many waits, and what the slow ones have in common, are counted. Method: the 29 waits for
/// the Pathfinder's lock, counted again here from the list of waits; also if most are left out of that list.
#[test]
fn slow_waits_have_counted_things_in_common() {
    let trace = "local-pathfinder-nopi.ftrace.txt.gz";
    let report = json(trace, &[]);
    let mut waits: Vec<&Value> = list(&report, "waits").iter().collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(ns(wait, "duration_ns")));
    let length = |at: usize| ns(waits[at], "duration_ns");
    let [group] = list(&report, "groups") else {
        panic!("{}", report["groups"]);
    };
    assert_eq!(
        (&group["name"], &group["count"]),
        (&"lock bus".into(), &29.into())
    );
    // Of 29, the median is the 15th from either end, and the 27th shortest is the third longest.
    let expected = [length(14), length(2), length(0)];
    assert_eq!(["p50", "p90", "max"].map(|key| ns(group, key)), expected);
    let (slow, others) = waits.split_at(8);
    let mean = |waits: &[&Value], of: &dyn Fn(&Value) -> u64| {
        waits.iter().map(|wait| of(wait)).sum::<u64>() / waits.len() as u64
    };
    let of_length = |wait: &Value| ns(wait, "duration_ns");
    let longer = mean(slow, &of_length) - mean(others, &of_length);
    assert_eq!(ns(group, "slow_longer_ns"), longer);
    let in_common = list(group, "in_common");
    assert_eq!(in_common[0]["within"], "low holds bus");
    for one in in_common {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        let key = (text("kind"), text("thread"));
        let of_it = |wait: &Value| causes(&report, wait).get(&key).copied().unwrap_or(0);
        for (name, waits) in [("slow", slow), ("others", others)] {
            let has = waits
                .iter()
                .filter(|wait| of_it(wait) * 20 >= ns(group, "p50"));
            assert_eq!(ns(&one[name], "waits"), has.count() as u64, "{one}");
            assert_eq!(ns(&one[name], "mean_ns"), mean(waits, &of_it), "{one}");
        }
        let more = ns(&one["slow"], "mean_ns") - ns(&one["others"], "mean_ns");
        assert_eq!(ns(one, "more_ns"), more);
        assert!(more * 20 >= longer, "{one}");
    }
    assert_eq!(json(trace, &["--waits", "3"])["groups"], report["groups"]);
    let text = fine(&["diagnose", NOPI]);
    assert!(text.contains("29 `lock bus` of high-bus: p50 "), "{text}");
}

/// Goal: the same trace twice has not grown; what grew is found, and the other way round it shrank; the exit
/// code tells which. Method: a real trace; and the Pathfinder's against the one with priority inheritance, in
/// which waits for the lock are shorter.
#[test]
fn what_grew_is_told() {
    let same = fine(&["diagnose", NOPI, "--against", NOPI, "--json"]);
    let same: Value = serde_json::from_str(&same).unwrap();
    assert_eq!((ns(&same, "grew"), ns(&same, "shrank")), (0, 0));
    assert!(ns(&same, "compared") > 2, "{same}");
    let text = fine(&["diagnose", NOPI, "--against", NOPI]);
    assert!(
        text.starts_with("Nothing grew or shrank beyond the spread"),
        "{text}"
    );

    let (code, out, err) = paceline(&["diagnose", NOPI, "--against", PI, "--json"]);
    let grown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, ns(&grown, "grew") > 0), (Some(1), true), "{out}");
    assert!(
        err.contains("`lock bus`") && err.lines().count() == 1,
        "{err}"
    );
    let group = &list(&grown, "groups")[0];
    let changes = list(group, "changes");
    assert!(changes[0]["factor"].is_null());
    let grew = changes.iter().filter(|one| one["verdict"] == "grew");
    let kinds: Vec<&Value> = grew.map(|one| &one["factor"]["kind"]).collect();
    assert!(kinds.contains(&&"preempted".into()), "{out}");
    for change in changes {
        let number = |value: &Value| value.as_i64().unwrap();
        let [low, high] = [0, 1].map(|at| number(&change["interval_ns"][at]));
        let change = number(&change["change_ns"]);
        assert!(low <= change && change <= high, "{group}");
    }

    let (code, out, _) = paceline(&["diagnose", PI, "--against", NOPI, "--json"]);
    let shrunk: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, ns(&shrunk, "grew")), (Some(0), 0), "{out}");
    assert_eq!(ns(&shrunk, "shrank"), ns(&grown, "grew"));
}
