//! What comes first in each trace of a phone.

use std::io::Read;

use serde_json::Value;

use crate::common::root;
use crate::{by, json, list, ns, who};

/// Every trace of a phone, or of its emulator, in `testdata/traces`.
const PHONES: [&str; 8] = [
    "catapult-android41-dualcore.systrace.txt.gz",
    "catapult-atrace-1cpu-missing-tgids.txt",
    "catapult-atrace-1cpu-raw.txt",
    "catapult-atrace-6cpu-markers.txt.gz",
    "ms-android12-emulator-a.pftrace.gz",
    "ms-galaxy-s20.perfetto-trace.gz",
    "tracecompass-atrace-youtube.txt.gz",
    "trappy-hmp8-a.report.txt.gz",
];

const GUIDE: &str = "docs/diagnose.md";
/// The table is between these lines.
const MARKS: (&str, &str) = ("<!-- phones: begin -->\n", "<!-- phones: end -->");
/// How many causes the table has of a wait.
const CAUSES: usize = 2;

/// Goal: in every trace of a phone a frame or a thread with something to do comes first, and no sleep; the
/// guide has the table of that. Method: the first wait of each as JSON, beside the table in the guide. With
/// `PACELINE_WRITE_TABLE` set, the table is written there.
#[test]
fn the_table_of_phones() {
    let mut table = "| trace | first | mostly |\n|---|---|---|\n".to_owned();
    for name in PHONES {
        let report = json(name, &["--waits", "1"]);
        let wait = &list(&report, "waits")[0];
        assert_ne!(wait["kind"], "sleep", "{name}");
        table += &row(name, &report, wait);
    }
    let path = root().join(GUIDE);
    let guide = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = guide.split_once(MARKS.0).unwrap();
    let (shown, after) = rest.split_once(MARKS.1).unwrap();
    if std::env::var_os("PACELINE_WRITE_TABLE").is_some() {
        let [begin, end] = [MARKS.0, MARKS.1];
        std::fs::write(path, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(
            shown, table,
            "{GUIDE}: write it with PACELINE_WRITE_TABLE=1"
        );
    }
}

fn row(name: &str, report: &Value, wait: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let thread = text(&wait["thread"]);
    let process = wait["process"].as_str().filter(|name| *name != thread);
    let of = process.map_or(String::new(), |process| format!(" of {process}"));
    let late = wait["late_ns"].as_u64();
    let late = late.map_or(String::new(), |late| format!(", {} late", ms(late)));
    let causes = list(wait, "causes").iter().take(CAUSES);
    let causes: Vec<String> = causes
        .map(|cause| {
            let who_waits = text(&who(report, &cause["who"])["thread"]);
            let who_waits = if who_waits == thread {
                "itself"
            } else {
                &who_waits
            };
            let within = cause["within"].as_str();
            let within = within.map_or(String::new(), |path| format!(" in `{path}`"));
            let ran = by(cause).first().filter(|share| ns(share, "ns") > 0);
            let ran = ran.map_or(String::new(), |share| {
                let runner = &who(report, &share["who"])["thread"];
                format!(" ({} ran {})", text(runner), ms(ns(share, "ns")))
            });
            let kind = text(&cause["kind"]);
            format!("`{kind}` {who_waits}{within} {}{ran}", ms(ns(cause, "ns")))
        })
        .collect();
    format!(
        "| `{name}` | `{thread}`{of}: `{}`, {}{late} | {} |\n",
        text(&wait["name"]),
        ms(ns(wait, "duration_ns")),
        causes.join("; ")
    )
}

fn ms(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

/// A run of a thread, by the trace's text.
struct Run {
    begin: u64,
    end: u64,
    tid: u32,
}

/// The runs in the text of a trace, by its switches alone: lines `prev_pid=7 … ==> … next_pid=8 …`, or
/// `a:7 [120] S ==> b:8 [120]`.
fn runs(name: &str) -> Vec<Run> {
    let path = root().join("testdata/traces").join(name);
    let mut bytes = std::fs::read(path).unwrap();
    if name.ends_with(".gz") {
        let packed = std::mem::take(&mut bytes);
        let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
        unpacked.read_to_end(&mut bytes).unwrap();
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut runs = Vec::new();
    let mut since: std::collections::HashMap<&str, (u64, u32)> = Default::default();
    for line in text.lines() {
        let Some((head, what)) = line.split_once(" sched_switch: ") else {
            continue;
        };
        let cpu = head.split_once('[').unwrap().1.split_once(']').unwrap().0;
        let time = head
            .trim_end()
            .trim_end_matches(':')
            .rsplit(' ')
            .next()
            .unwrap();
        let (seconds, micros) = time.split_once('.').unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let time = number(seconds) * 1_000_000_000 + number(micros) * 1_000;
        let (_, next) = what.split_once("==> ").unwrap();
        let tid = match next.split_once("next_pid=") {
            Some((_, rest)) => rest.split(' ').next().unwrap(),
            None => next.split_once(" [").unwrap().0.rsplit(':').next().unwrap(),
        };
        let next = (time, tid.parse().unwrap());
        if let Some((begin, tid)) = since.insert(cpu, next) {
            runs.push(Run {
                begin,
                end: time,
                tid,
            });
        }
    }
    assert!(runs.len() > 50, "{name}");
    runs
}

/// The part of a stretch of time in which a thread ran.
fn ran(runs: &[Run], tid: u64, (begin, end): (u64, u64)) -> u64 {
    let of_it = runs.iter().filter(|run| u64::from(run.tid) == tid);
    let parts = of_it.map(|run| run.end.min(end).saturating_sub(run.begin.max(begin)));
    parts.sum()
}

/// Goal: what is told of the first wait is what the events say. Method: for each text with switches these are
/// read again, by a few lines that share nothing with the reader: the thread ran for as long as its causes
/// say, and what ran instead did.
#[test]
fn the_events_bear_it_out() {
    let texts = PHONES.iter().filter(|name| name.contains(".txt"));
    let mut checked = 0;
    for name in texts.filter(|name| !name.contains("markers")) {
        let report = json(name, &["--waits", "1"]);
        let wait = &list(&report, "waits")[0];
        let runs = runs(name);
        let begin = ns(wait, "start_ns");
        let whole = (begin, begin + ns(wait, "duration_ns"));
        let tid = ns(wait, "tid");
        let is_own = |cause: &&Value| who(&report, &cause["who"])["tid"] == wait["tid"];
        let own = list(wait, "causes").iter().filter(is_own);
        let is_run = |kind: &Value| {
            let runs = ["running", "small_core", "low_frequency", "frequency_limit"];
            runs.contains(&kind.as_str().unwrap())
        };
        let own_runs = own.clone().filter(|cause| is_run(&cause["kind"]));
        let told: u64 = own_runs.map(|cause| ns(cause, "ns")).sum();
        assert_eq!(told, ran(&runs, tid, whole), "{name}: {wait}");
        for share in own.flat_map(by) {
            let tid = who(&report, &share["who"])["tid"].as_u64();
            let least = ns(share, "ns");
            let most = tid.map_or(least, |tid| ran(&runs, tid, whole));
            assert!(least <= most, "{name}: {share}");
            checked += usize::from(tid.is_some());
        }
    }
    assert!(checked > 10, "{checked}");
}
