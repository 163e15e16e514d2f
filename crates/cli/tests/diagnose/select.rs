//! What is chosen: threads, programs, a stretch of time; and the totals of threads in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::common::root;
use crate::{json, list, ns};

const NOPI: &str = "local-pathfinder-nopi.ftrace.txt.gz";
const EMULATOR: &str = "ms-android12-emulator-a.pftrace.gz";

/// The names of the threads of a list.
fn names<'a>(list: &'a [Value], key: &str) -> BTreeSet<&'a str> {
    list.iter().map(|one| one[key].as_str().unwrap()).collect()
}

/// A wait without positions in `who`, which are other ones in another answer.
fn without_positions(wait: &Value) -> Value {
    let mut wait = wait.clone();
    for cause in wait["causes"].as_array_mut().unwrap() {
        cause.as_object_mut().unwrap().remove("who");
        cause.as_object_mut().unwrap().remove("by");
    }
    wait
}

/// The sum of a thread's times, of which preempted is a part of runnable.
fn sum(thread: &Value) -> u64 {
    let keys = [
        "running_ns",
        "runnable_ns",
        "sleeping_ns",
        "blocked_ns",
        "other_ns",
    ];
    keys.iter().map(|key| ns(thread, key)).sum()
}

/// Goal: `--thread` takes names, numbers and patterns, and may be repeated. Method: a name and a pattern at
/// once, and the same threads by their numbers; other threads have waits in the whole answer.
#[test]
fn threads_are_chosen_by_name_number_and_pattern() {
    let chosen = json(NOPI, &["--thread", "low-holder", "--thread", "h?gh-*"]);
    let both = BTreeSet::from(["low-holder", "high-bus"]);
    assert_eq!(names(list(&chosen, "threads"), "name"), both);
    // The holder has no waits of its own.
    let waits = names(list(&chosen, "waits"), "thread");
    assert_eq!(waits, BTreeSet::from(["high-bus"]));
    let numbers: Vec<String> = list(&chosen, "threads")
        .iter()
        .map(|thread| thread["tid"].to_string())
        .collect();
    let same = json(NOPI, &["--thread", &numbers[0], "--thread", &numbers[1]]);
    assert_eq!(chosen["waits"], same["waits"]);
    let all = json(NOPI, &["--thread", "*"]);
    assert!(list(&all, "threads").len() > 10);
    assert_eq!(all["waits"], chosen["waits"]);
}

/// Goal: `--process` leaves the threads of other programs out, and goes together with `--thread`. Method: by
/// a pattern; by the number of one program, which is that of its main thread; with a thread's name.
#[test]
fn programs_are_chosen() {
    let by_pattern = json(EMULATOR, &["--process", "*chrome*"]);
    let threads = list(&by_pattern, "threads");
    let is_chrome = |one: &Value| one["process"].as_str().unwrap().contains("chrome");
    assert!(threads.len() > 20 && threads.iter().all(is_chrome));
    let waits = list(&by_pattern, "waits");
    assert!(!waits.is_empty() && waits.iter().all(is_chrome));
    let all = json(EMULATOR, &[]);
    let of_all = list(&all, "waits").iter().filter(|wait| {
        let program = wait["process"].as_str();
        program.is_some_and(|name| name.contains("chrome"))
    });
    assert_eq!(of_all.count(), waits.len());
    let main = threads.iter().find(|one| one["name"] == ".android.chrome");
    let number = main.unwrap()["tid"].to_string();
    let by_number = json(EMULATOR, &["--process", &number]);
    let of_one = list(&by_number, "threads");
    assert!(of_one.len() > 20 && of_one.len() < threads.len());
    assert_eq!(
        names(of_one, "process"),
        BTreeSet::from(["com.android.chrome"])
    );
    let one = json(
        EMULATOR,
        &["--process", "*chrome*", "--thread", "RenderThread"],
    );
    let renders = list(&one, "threads");
    assert!(!renders.is_empty() && renders.iter().all(is_chrome));
    assert_eq!(names(renders, "name"), BTreeSet::from(["RenderThread"]));
}

/// Goal: `--from` and `--to` keep the waits that touch the time between them, whole, and the times of threads
/// in it. Method: against the whole answer, filtered here; two halves of a trace sum to all of it, state by
/// state, for every thread.
#[test]
fn a_stretch_of_time_is_chosen() {
    let all = json(NOPI, &[]);
    let (begin, end) = (ns(&all, "start_ns"), ns(&all, "end_ns"));
    let middle = (2_177_700_000_000, 2_178_100_000_000);
    let part = json(NOPI, &["--from", "2177.7", "--to", "2178.1 s"]);
    assert_eq!((ns(&part, "from_ns"), ns(&part, "to_ns")), middle);
    let touches = |wait: &&Value| {
        let from = ns(wait, "start_ns");
        from < middle.1 && from + ns(wait, "duration_ns") > middle.0
    };
    let expected = list(&all, "waits").iter().filter(touches);
    let expected: Vec<Value> = expected.map(without_positions).collect();
    let got: Vec<Value> = list(&part, "waits").iter().map(without_positions).collect();
    assert!(!got.is_empty() && got == expected);

    let half = format!("+{}", (end - begin) as f64 / 2e9);
    let [first, second] = ["--to", "--from"].map(|option| json(NOPI, &[option, &half]));
    for thread in list(&all, "threads") {
        assert_eq!(sum(thread), end - begin, "{thread}");
        assert!(
            ns(thread, "preempted_ns") <= ns(thread, "runnable_ns"),
            "{thread}"
        );
        let same = |report: &Value| {
            let found = list(report, "threads").iter();
            let mut found = found.filter(|one| one["tid"] == thread["tid"]);
            found.next().unwrap().clone()
        };
        let (first, second) = (same(&first), same(&second));
        for key in [
            "running_ns",
            "runnable_ns",
            "preempted_ns",
            "sleeping_ns",
            "blocked_ns",
        ] {
            assert_eq!(
                ns(&first, key) + ns(&second, key),
                ns(thread, key),
                "{key}: {thread}"
            );
        }
    }
}

/// The value behind a word of a line: `pid=` of `next_pid=17`.
fn field<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(word)?;
    rest.split_whitespace().next()
}

/// By thread: from each switch away with this letter until its next wake-up, in nanoseconds.
fn asleep(text: &str, letter: &str) -> BTreeMap<u64, u64> {
    let mut since: BTreeMap<u64, u64> = BTreeMap::new();
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (before, what) = line.split_once(": ").unwrap();
        let micros = before.rsplit(' ').next().unwrap().replace('.', "");
        let time = micros.parse::<u64>().unwrap() * 1_000;
        if what.starts_with("sched_switch:") && field(what, "prev_state=") == Some(letter) {
            let thread = field(what, "prev_pid=").unwrap().parse().unwrap();
            since.insert(thread, time);
        } else if what.starts_with("sched_waking:") {
            let thread = field(what, " pid=").unwrap().parse().unwrap();
            if let Some(begin) = since.remove(&thread) {
                *sums.entry(thread).or_default() += time - begin;
            }
        }
    }
    sums
}

/// Goal: sleeping and blocked are kept apart, as the kernel's letters have them. Method: the text of a trace,
/// counted here: from each switch away with `D` until the thread's next wake-up.
#[test]
fn blocked_threads_are_not_asleep() {
    let name = "local-futex.ftrace.txt.gz";
    let file = std::fs::File::open(root().join("testdata/traces").join(name)).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let counted = asleep(&text, "D");
    let report = json(name, &[]);
    let threads = list(&report, "threads").iter();
    let blocked = threads.map(|one| (one["tid"].as_u64().unwrap(), ns(one, "blocked_ns")));
    let blocked: BTreeMap<u64, u64> = blocked.filter(|(_, ns)| *ns > 0).collect();
    assert!(blocked.len() > 3, "{blocked:?}");
    assert_eq!(blocked, counted);
}
