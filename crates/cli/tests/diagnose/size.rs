//! The size of the JSON.

use serde_json::Value;

use crate::common::fine;
use crate::{by, list, ns};

/// What 10 000 waits may take.
const MOST: usize = 5_000_000;

/// How many waits the made trace has.
const WAITS: usize = 10_000;

/// The text of a trace in which one thread takes a lock again and again, and gets it late for many reasons:
/// each of 40 threads runs for a while, whose lengths go from a microsecond up.
fn many_waits() -> String {
    const LENGTH: usize = 2_000;
    let mut text = "# tracer: nop\n".to_owned();
    let mut line = |micros: usize, who: usize, what: &str| {
        let name = if who == 0 {
            "waiter".to_owned()
        } else {
            format!("other-{who}")
        };
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let pid = 100 + who;
        text += &format!("{name}-{pid} (100) [000] d..3 {seconds}.{micros:06}: {what}\n");
    };
    let switch = |from: usize, to: usize, state: &str| {
        let name = |who: usize| {
            if who == 0 {
                "waiter".to_owned()
            } else {
                format!("other-{who}")
            }
        };
        let [(prev, prev_pid), (next, next_pid)] = [from, to].map(|who| (name(who), 100 + who));
        format!(
            "sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={next_pid} next_prio=120"
        )
    };
    for wait in 0..WAITS {
        let begin = (wait + 1) * LENGTH;
        line(begin, 0, "tracing_mark_write: B|100|lock the thing");
        let mut last = 0;
        let mut time = begin + 1;
        for other in 1..=40 {
            line(time, last, &switch(last, other, "R"));
            time += 1 + (other * other * (1 + wait % 7)) / 100;
            last = other;
        }
        line(time, last, &switch(last, 0, "R"));
        line(time + 2, 0, "tracing_mark_write: E|100");
    }
    text
}

/// Goal: 10 000 waits take 5 MB at most, and are still whole: all sums are exact, what is large is told.
/// Method: a made trace with 40 threads in the way of each wait, and the phone's trace with the longest
/// answers, of which 1500 sleeps fit without that.
#[test]
fn many_waits_fit_in_little_room() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("many.txt");
    std::fs::write(&made, many_waits()).unwrap();
    let galaxy = "testdata/traces/ms-galaxy-s20.perfetto-trace.gz";
    for (trace, count, is_whole) in [
        (made.to_str().unwrap(), WAITS, false),
        (galaxy, 1_500, true),
    ] {
        let text = fine(&["diagnose", trace, "--json", "--waits", &count.to_string()]);
        let report: Value = serde_json::from_str(&text).unwrap();
        let waits = list(&report, "waits");
        assert_eq!(waits.len(), count, "{trace}");
        assert!(text.len() <= MOST, "{trace}: {}", text.len());
        let share = report["least_share"].as_f64().unwrap();
        assert!(
            (share == 0.0) == is_whole && share < 0.2,
            "{trace}: {share}"
        );
        let mut summed_up = 0;
        for wait in waits {
            let length = ns(wait, "duration_ns");
            let causes = list(wait, "causes");
            let sum: u64 = causes.iter().map(|cause| ns(cause, "ns")).sum();
            assert_eq!((sum, ns(wait, "sum_ns")), (length, sum), "{wait}");
            for cause in causes {
                let shares: u64 = by(cause).iter().map(|share| ns(share, "ns")).sum();
                assert!(by(cause).is_empty() || shares == ns(cause, "ns"), "{cause}");
                if cause["kind"] == "rest" {
                    summed_up += ns(cause, "count");
                } else {
                    assert!(ns(cause, "ns") as f64 >= length as f64 * share, "{cause}");
                }
            }
        }
        let omitted = ns(&report, "inversions_omitted");
        assert_eq!(summed_up + omitted == 0, is_whole, "{trace}");
    }
}

/// Goal: where all fits, nothing is summed up. Method: the traces of the guide.
#[test]
fn short_answers_are_whole() {
    for name in ["local-futex", "local-pathfinder-nopi", "local-spin"] {
        let report = crate::json(&format!("{name}.ftrace.txt.gz"), &[]);
        assert_eq!(report["least_share"], 0.0, "{name}");
        assert_eq!(report["inversions_omitted"], 0, "{name}");
        let waits = list(&report, "waits").iter();
        let mut causes = waits.flat_map(|wait| list(wait, "causes"));
        assert!(causes.all(|cause| cause["kind"] != "rest"), "{name}");
    }
}
