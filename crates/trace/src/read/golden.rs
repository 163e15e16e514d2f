//! The recordings of all real traces, against the facts known about these.
//!
//! Three truths: the table in `testdata/traces/README.md`, whose counts were taken with other programs; the
//! lines of the text itself, counted by the words they contain; and `golden.txt`, which this reader wrote and
//! a person looked at, for everything else.

use std::collections::BTreeMap;
use std::fmt::Write;

use event::{KernelEventKind, Left};

use super::read;
use super::tests::{file, text};
use crate::{MarkKind, Recording};

/// Every file of text.
const FILES: [&str; 15] = [
    "catapult-android41-dualcore.systrace.txt.gz",
    "catapult-atrace-1cpu-missing-tgids.txt",
    "catapult-atrace-1cpu-raw.txt",
    "catapult-atrace-6cpu-markers.compressed.txt",
    "catapult-atrace-6cpu-markers.txt.gz",
    "lisa-juno-rtapp.report-N.txt.gz",
    "local-futex.ftrace.txt.gz",
    "local-futex.perf-sched-script.txt.gz",
    "local-pathfinder-nopi.ftrace.txt.gz",
    "local-pathfinder-pi.ftrace.txt.gz",
    "local-quota.ftrace.txt.gz",
    "local-spin.ftrace.txt.gz",
    "tracecompass-atrace-youtube.txt.gz",
    "tracecompass-desktop-critical-path.ftrace.txt",
    "tracecompass-desktop-syscalls.tracecmd.txt.gz",
];

/// The file whose plugins print no comm= or pid=.
const PLUGIN: &str = "trappy-hmp8-a.report.txt.gz";

fn recording(name: &str) -> Recording {
    read(&file(name)[..], name).unwrap_or_else(|error| panic!("{error}"))
}

fn all() -> impl Iterator<Item = &'static str> {
    FILES.into_iter().chain([PLUGIN])
}

/// The number of kernel events of each kind, and of marks.
fn counts(found: &Recording) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut count = |what, more| *counts.entry(what).or_default() += more;
    for event in &found.kernel {
        match event.what {
            KernelEventKind::Switch { prev, state, .. } => {
                count("switches", 1);
                match state {
                    _ if prev.is_none() => {}
                    Left::Runnable => count("runnable", 1),
                    Left::Preempted => count("preempted", 1),
                    _ => {}
                }
            }
            KernelEventKind::Waking { by, .. } => {
                count("wakes", 1);
                count("known wakers", u64::from(by.is_some()));
            }
            KernelEventKind::Migrate { .. } => count("migrations", 1),
            KernelEventKind::Inherit { .. } => count("inherited", 1),
            KernelEventKind::Priority { lent: true, .. } => count("lent", 1),
            KernelEventKind::Priority { lent: false, .. } => count("priorities", 1),
            KernelEventKind::FutexCall { .. } => count("futex calls", 1),
            KernelEventKind::FutexReturn { .. } => count("futex returns", 1),
            KernelEventKind::Interrupt { .. } => count("interrupts", 1),
            KernelEventKind::Lost { .. } => count("gaps", 1),
            KernelEventKind::Frequency(_) => count("frequencies", 1),
            KernelEventKind::FrequencyLimit(_) => count("frequency limits", 1),
            KernelEventKind::Idle(_) => count("idle", 1),
            _ => count("others", 1),
        }
    }
    for mark in &found.marks {
        match mark.what {
            MarkKind::Begin(_) => count("begins", 1),
            MarkKind::End => count("ends", 1),
            MarkKind::AsyncBegin { .. } => count("async begins", 1),
            MarkKind::AsyncEnd { .. } => count("async ends", 1),
            MarkKind::Instant(_) => count("instants", 1),
            MarkKind::Flow { .. } => count("flows", 1),
        }
    }
    let values = found
        .counters
        .iter()
        .map(|counter| counter.values.len() as u64);
    count("values", values.sum());
    counts
}

/// Everything about a recording in a few lines.
fn summary(name: &str, found: &Recording) -> String {
    let mut text = format!("{name}\n");
    let (first, last) = found.span().expect("something happened");
    let origin = &found.origin;
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "  {words}").unwrap();
    line(format_args!(
        "{}, clock {}, wakers {:?}, {} to {} ns",
        origin.format,
        origin.clock.name(),
        origin.wakers,
        first.0,
        last.0
    ));
    line(format_args!(
        "{} CPUs, {} threads, {} processes, {} counters, {} names",
        found.cpus.len(),
        found.threads.len(),
        found.processes.len(),
        found.counters.len(),
        found.names.len()
    ));
    let counts = counts(found);
    let counts: Vec<_> = counts.iter().filter(|(_, count)| **count > 0).collect();
    let counts: Vec<_> = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    line(format_args!("{}", counts.join(", ")));
    let losses: Vec<_> = found
        .losses
        .iter()
        .map(|(loss, count)| format!("{count} {}", loss.word()))
        .collect();
    line(format_args!(
        "lost: {}",
        if losses.is_empty() {
            "nothing".to_owned()
        } else {
            losses.join(", ")
        }
    ));
    text
}

/// Goal: no change in the reading of a real trace goes unseen. Method: a summary of each file against the one
/// that a person looked at.
#[test]
fn as_before() {
    let found: String = all().map(|name| summary(name, &recording(name))).collect();
    let golden = include_str!("golden.txt");
    let (_, golden) = golden.split_once("\n\n").expect("a heading");
    assert!(
        found == golden,
        "golden.txt should hold, behind its heading:\n{found}"
    );
}

/// Goal: as many events are read as the text has lines of them. Method: lines counted by the words that they
/// contain, for every kind with a name.
#[test]
fn as_many_as_lines() {
    for name in FILES
        .into_iter()
        .filter(|name| !name.contains("compressed"))
    {
        let text = text(name);
        let lines = |word: &str| memchr::memmem::find_iter(&text, word).count() as u64;
        let found = recording(name);
        let counts = counts(&found);
        let got = |what| counts.get(what).copied().unwrap_or(0);
        assert_eq!(got("switches"), lines("sched_switch: "), "{name}");
        let wakes = match lines("sched_waking: ") {
            0 => lines("sched_wakeup: "),
            decided => decided,
        };
        assert_eq!(got("wakes"), wakes + lines("sched_wakeup_new: "), "{name}");
        assert_eq!(got("migrations"), lines("sched_migrate_task: "), "{name}");
        assert_eq!(got("inherited"), lines("sched_pi_setprio: "), "{name}");
        assert_eq!(got("idle"), lines(": cpu_idle: "), "{name}");
        assert_eq!(got("frequencies"), lines(": cpu_frequency: "), "{name}");
        assert_eq!(got("futex calls"), lines("sys_futex("), "{name}");
        assert_eq!(got("futex returns"), lines("sys_futex -> "), "{name}");
        assert_eq!(got("begins"), lines(": B|"), "{name}");
        assert_eq!(got("async begins"), lines(": S|"), "{name}");
        assert_eq!(got("async ends"), lines(": F|"), "{name}");
        assert_eq!(got("values"), lines(": C|"), "{name}");
    }
}

/// The numbers in a cell of a table: `5984 (0, 1611)`, `0 / 262`.
fn numbers(cell: &str) -> Vec<u64> {
    let words = cell
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty());
    words.map(|word| word.parse().unwrap()).collect()
}

/// Goal: the counts of the table in README.md, which other programs took, are those of the recordings.
/// Method: each row's cells against the recording's counts.
#[test]
fn as_the_table_says() {
    let table = String::from_utf8(file("README.md")).unwrap();
    let mut compared = 0;
    for name in all() {
        let stem = name.trim_end_matches(".gz").trim_end_matches(".txt");
        let stem = stem
            .strip_prefix("lisa-juno-rtapp")
            .map_or(stem, |_| "lisa-juno-rtapp");
        let stem = stem
            .strip_prefix("trappy-hmp8-a")
            .map_or(stem, |_| "trappy-hmp8-a");
        let stem = stem.trim_end_matches(".compressed");
        let row = table
            .lines()
            .find(|line| line.starts_with("| `") && line.contains(stem));
        let cells: Vec<_> = row
            .unwrap_or_else(|| panic!("no row for {name}"))
            .split(" | ")
            .collect();
        let [.., switches, decided, queued, slices, power, preempted, _] = &cells[..] else {
            panic!("too few cells for {name}");
        };
        let found = recording(name);
        let counts = counts(&found);
        let got = |what| counts.get(what).copied().unwrap_or(0);
        assert_eq!(vec![got("switches")], numbers(switches), "{name}");
        let new = if name == PLUGIN || name.contains("compressed") {
            0
        } else {
            memchr::memmem::find_iter(&text(name), "sched_wakeup_new: ").count() as u64
        };
        let wakes = match numbers(decided)[0] {
            0 => numbers(queued)[0],
            decided => decided + new,
        };
        assert_eq!(got("wakes"), wakes, "{name}");
        let slices = numbers(slices);
        assert_eq!(got("begins"), slices[0], "{name}");
        if let [_, asynchronous, values] = slices[..] {
            assert_eq!(
                (got("async begins"), got("values")),
                (asynchronous, values),
                "{name}"
            );
        }
        // LISA writes six frequencies as text when it begins and when it ends; the table has the events.
        let as_text = if name.starts_with("lisa") { 12 } else { 0 };
        assert_eq!(
            vec![got("frequencies") - as_text, got("idle")],
            numbers(power),
            "{name}"
        );
        if got("switches") > 0 {
            assert_eq!(
                vec![got("preempted"), got("runnable")],
                numbers(preempted),
                "{name}"
            );
        }
        compared += 1;
    }
    assert_eq!(compared, FILES.len() + 1);
}
