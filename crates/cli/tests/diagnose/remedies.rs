//! What `diagnose` says would help, and what it says that it is worth.

use serde_json::Value;

use super::{json, list, ns, text};

const LISA: &str = "lisa-juno-rtapp.report-N.txt.gz";
const FUTEX: &str = "local-futex.ftrace.txt.gz";

fn has(inversion: &Value, remedy: &str) -> bool {
    let remedies = list(inversion, "remedies");
    remedies.iter().any(|one| one == remedy)
}

fn gains(inversion: &Value) -> &[Value] {
    inversion["gains"].as_array().map_or(&[], Vec::as_slice)
}

/// The priority of a thread of an inversion, as the kernel counts them.
fn priority(inversion: &Value, of: &str) -> Option<i64> {
    inversion["priorities"][of].as_i64()
}

/// Goal: a better priority than another thread has is no remedy for a thread that has it. Method: recordings
/// in which threads of other niceness are in the way; the numbers are the kernel's, the lowest first.
#[test]
fn a_better_priority_is_not_named_where_there_is_one() {
    let mut realtime = 0;
    for trace in [
        "local-spin.ftrace.txt.gz",
        FUTEX,
        "ms-android12-emulator-a.pftrace.gz",
    ] {
        for inversion in list(&json(trace, &[]), "inversions") {
            realtime += usize::from(has(inversion, "realtime_class"));
            let [holder, runner] = ["holder", "runner"].map(|of| priority(inversion, of));
            if let (true, Some(holder), Some(runner)) =
                (has(inversion, "same_priority"), holder, runner)
            {
                assert!(holder >= runner, "{trace}: {inversion}");
            }
        }
    }
    assert!(realtime > 100, "{realtime}");
    let told = text("local-spin.ftrace.txt.gz", &[]);
    let why = "a real-time class for ui-main: it has a better priority than qemu-system-x86 (11119) already";
    assert!(told.contains(why), "{told}");
}

/// Goal: the priority that a replay plays is the one that is named, and better than what the thread has.
/// Method: the changes that stand for such remedies, beside the priorities at the inversion.
#[test]
fn a_replayed_priority_is_the_one_that_is_named() {
    let mut played = 0;
    for trace in [
        FUTEX,
        "trappy-hmp8-a.report.txt.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ] {
        let report = json(trace, &[]);
        for inversion in list(&report, "inversions") {
            let of_priority = |gain: &&Value| gain["remedy"] == "same_priority";
            for gain in gains(inversion).iter().filter(of_priority) {
                let change = gain["change"].as_str().unwrap();
                let (head, value) = change.rsplit_once('=').unwrap();
                let value: i64 = value.parse().unwrap();
                let now = if head.starts_with("nice:") {
                    120 + value
                } else {
                    99 - value
                };
                let better = |of| priority(inversion, of).is_none_or(|priority| now < priority);
                assert!(better("holder") && better("runner"), "{trace}: {inversion}");
                played += 1;
            }
        }
        if trace == FUTEX {
            let changes: Vec<&Value> = list(&report, "changes")
                .iter()
                .map(|one| &one["text"])
                .collect();
            assert_eq!(changes[0], "nice:worker=-10", "{changes:?}");
        }
    }
    assert!(played > 5, "{played}");
}

/// Goal: figures beside findings are those of several draws, and have the sign that `--what-if` finds.
/// Method: each change with a verdict, beside its answer with as many draws, and with five.
#[test]
fn figures_agree_with_what_if() {
    let mut compared = 0;
    for trace in [
        "local-quota.ftrace.txt.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ] {
        let report = json(trace, &[]);
        for change in list(&report, "changes") {
            let sums = |seeds: &str| -> [u64; 2] {
                let text = change["text"].as_str().unwrap();
                let told = json(trace, &["--what-if", text, "--seeds", seeds]);
                let answers = list(&list(&told, "what_if")[0], "waits").iter();
                answers.fold([0; 2], |sums, answer| {
                    let wait = &list(&told, "waits")[answer["wait"].as_u64().unwrap() as usize];
                    [
                        sums[0] + ns(&wait["replayed_ns"], "median"),
                        sums[1] + ns(&answer["predicted_ns"], "median"),
                    ]
                })
            };
            let told = [ns(change, "replayed_ns"), ns(change, "predicted_ns")];
            assert_eq!(sums("3"), told, "{trace}: {change}");
            let [was, with] = sums("5");
            match change["verdict"].as_str().unwrap() {
                "gain" => assert!(with < was, "{trace}: {change}"),
                "worse" => assert!(with > was, "{trace}: {change}"),
                _ => {}
            }
            let [least, most] = ["predicted_min_ns", "predicted_max_ns"].map(|of| ns(change, of));
            assert!(least <= told[1] && told[1] <= most, "{trace}: {change}");
            compared += 1;
        }
    }
    assert!(compared >= 3, "{compared}");
}

/// Goal: where few waits replay well there are no figures, and one line says so. Method: a trace whose replay
/// is near the recording in a twentieth of its waits.
#[test]
fn figures_of_few_waits_are_withheld() {
    let trace = "local-futex.perf-sched-script.txt.gz";
    let told = text(trace, &[]);
    let why = "What remedies would be worth is left out: 9 of 200 long waits replay within 10 % of the \
               recording.";
    assert_eq!(told.matches(why).count(), 1, "{told}");
    assert!(!told.contains("by a replay"), "{told}");
    assert_eq!(list(&json(trace, &[]), "changes").len(), 0);
}

/// Goal: what a change does beyond an inversion is not told as that inversion's gain. Method: a thread that
/// is kept off a small, busy CPU would be on a large one in a replay that may use all; the inversion took
/// less than a millisecond.
#[test]
fn a_gain_is_no_more_than_what_it_removes() {
    let report = json(LISA, &[]);
    let mut moves = 0;
    for inversion in list(&report, "inversions") {
        moves += usize::from(has(inversion, "move_away"));
        for gain in gains(inversion) {
            let lengths = ["replayed_ns", "predicted_ns"].map(|of| gain[of].as_u64());
            let [Some(was), Some(with)] = lengths else {
                continue;
            };
            let most = ns(inversion, "ns") as f64 * 1.1;
            if was.saturating_sub(with) as f64 > most {
                assert_eq!(gain["verdict"], "beyond", "{inversion}");
            }
            // No CPU of the same speed is left to it, so there is nothing to play.
            assert_ne!(gain["remedy"], "move_away", "{inversion}");
        }
    }
    assert!(moves > 0);
    let told = text(LISA, &[]);
    assert!(told.contains("more than this cost)"), "{told}");
}

/// Goal: remedies that gain come first, those that a replay shows to be worse last, and one without a gain
/// says so. Method: the remedies of a trace with all sorts.
#[test]
fn remedies_are_in_the_order_of_what_they_are_worth() {
    let told = text("catapult-android41-dualcore.systrace.txt.gz", &[]);
    let mut sorts = [0; 3];
    for remedies in told.split("remedy: ").skip(1) {
        let ranks = remedies.split("; or ").map(|remedy| {
            let is = |part: &str| remedy.contains(part);
            match () {
                () if is("it is worse") || is(", but ") => 2,
                () if is("by a replay no gain") => 1,
                () => 0,
            }
        });
        let ranks: Vec<usize> = ranks.collect();
        assert!(ranks.is_sorted(), "{remedies}");
        for rank in ranks {
            sorts[rank] += 1;
        }
    }
    assert!(sorts[0] > 0 && sorts[1] > 0, "{sorts:?}");
    for trifle in ["up to 1 ns longer", "up to 2 ns longer"] {
        assert!(!told.contains(trifle), "{told}");
    }
}
