//! The answers of Perfetto's own trace processor about converted and annotated files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};
use flate2::read::MultiGzDecoder;

use crate::oracle::ask;
use crate::{Annotation, Recording, Thread};

fn example(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces");
    let mut bytes = Vec::new();
    let file = File::open(folder.join(name)).unwrap();
    MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Recording {
    crate::read::read(bytes, "example").unwrap()
}

fn written(recording: &Recording) -> Vec<u8> {
    let mut file = Vec::new();
    crate::write::perfetto(recording, &mut file).unwrap();
    file
}

/// The number and length of runs, by thread.
const RUNS: &str =
    "SELECT tid, COUNT(*), SUM(dur) FROM sched JOIN thread USING (utid) WHERE tid > 0 AND dur >= 0
     GROUP BY tid ORDER BY tid";

/// The reason why each thread stopped; frequencies and idle states.
const KERNEL: &[&str] = &[
    // We have one word for idle (I) and asleep (S), and one for dead (X) and about to be (x, Z).
    "SELECT CASE end_state WHEN 'R+' THEN 'R+'
       ELSE REPLACE(REPLACE(UPPER(SUBSTR(end_state, 1, 1)), 'I', 'S'), 'Z', 'X') END AS state, COUNT(*)
     FROM sched JOIN thread USING (utid) WHERE tid > 0 AND dur >= 0 GROUP BY state ORDER BY state",
    "SELECT t.name, COUNT(*) FROM counter c JOIN counter_track t ON t.id = c.track_id
     WHERE t.name IN ('cpufreq', 'cpuidle') GROUP BY t.name ORDER BY t.name",
];

/// Wakers and woken threads, where the waker is a thread.
const WAKERS: &str =
    "SELECT w.tid, COUNT(*) FROM thread_state s JOIN thread w ON w.utid = s.waker_utid
     WHERE w.tid > 0 GROUP BY w.tid ORDER BY w.tid";

/// As many tasks begin in the emulator's file (`testdata/traces/README.md`: wake-ups less decisions).
const NEW_TASKS: u64 = 39;

/// Goal: a file that is read and written has the same meaning for Perfetto. Method: its trace processor gets
/// the same questions about the original and ours.
#[test]
fn converted_files_are_what_they_were() {
    for (name, has_wakers) in [
        ("ms-galaxy-s20.perfetto-trace.gz", false),
        ("ms-android12-emulator-a.pftrace.gz", true),
    ] {
        let original = example(name);
        let mut queries = KERNEL.to_vec();
        queries.extend(has_wakers.then_some(WAKERS));
        queries.push(RUNS);
        let Some(mut before) = ask(&original, &queries) else {
            return;
        };
        let mut after = ask(&written(&read(&original)), &queries).unwrap();
        let runs = [&mut before, &mut after].map(|answers| numbers(&answers.pop().unwrap()));
        assert!(runs[0].len() > 50);
        assert_eq!(runs[0].len(), runs[1].len());
        for (before, after) in runs[0].iter().zip(&runs[1]) {
            assert_eq!(after[..2], before[..2], "{name}");
            // Events of one thread on two CPUs at one time are written a nanosecond apart.
            assert!(
                after[2].abs_diff(before[2]) <= 1_000,
                "{name}: {after:?} {before:?}"
            );
        }
        if has_wakers {
            // A new task's first time on a queue is written as a wake-up, and Perfetto takes it for one then.
            let wakers = [&mut before, &mut after].map(|answers| numbers(&answers.pop().unwrap()));
            let woke = |rows: &[Vec<u64>], tid| {
                rows.iter()
                    .find(|row| row[0] == tid)
                    .map_or(0, |row| row[1])
            };
            let tids = wakers
                .iter()
                .flatten()
                .map(|row| row[0])
                .collect::<BTreeSet<_>>();
            let differ = |tid: &u64| woke(&wakers[0], *tid).abs_diff(woke(&wakers[1], *tid));
            let differ: u64 = tids.iter().map(differ).sum();
            assert!(tids.len() > 50 && differ <= 2 * NEW_TASKS, "{differ}");
        }
        for ((query, before), after) in queries.iter().zip(before).zip(after) {
            assert!(!before.is_empty());
            assert_eq!(after, before, "{name}: {query}");
        }
    }
}

/// Goal: the states in which threads stopped are kept, also those of texts, which do not name their kernel.
/// Method: Perfetto reads the originals; as many states of each kind, and no kind is missing.
#[test]
fn states_in_texts_arrive() {
    for name in [
        "local-futex.ftrace.txt.gz",
        "tracecompass-atrace-youtube.txt.gz",
    ] {
        let original = example(name);
        let Some(before) = ask(&original, &KERNEL[..1]) else {
            return;
        };
        let after = ask(&written(&read(&original)), &KERNEL[..1]).unwrap();
        assert_eq!(after, before, "{name}");
        let could_run = before[0].iter().filter(|row| row.starts_with('R'));
        assert_eq!(could_run.count(), 2, "{name}: {before:?}");
    }
}

/// Rows of whole numbers.
fn numbers(rows: &[String]) -> Vec<Vec<u64>> {
    let row = |row: &String| row.split('\t').map(|cell| cell.parse().unwrap()).collect();
    rows.iter().map(row).collect()
}

/// Goal: slices and arrows of Chrome's JSON are kept. Method: Perfetto reads the original, too; each name's
/// slices with an end are as many and as long (in microseconds) in both, and as many arrows go from one name
/// to another.
#[test]
fn slices_and_arrows_of_chrome_arrive() {
    let original = example("catapult-chrome-flow.json.gz");
    let recording = read(&original);
    let end = recording.span().unwrap().1;
    let slices = format!(
        "SELECT name, COUNT(*), SUM(dur) / 1000 FROM slice WHERE name != 'flow' AND dur >= 0
         AND ts + dur < {} GROUP BY name ORDER BY name",
        end.0
    );
    let Some(before) = ask(&original, &[&slices]) else {
        return;
    };
    let after = ask(&written(&recording), &[&slices]).unwrap();
    assert!(before[0].len() > 2);
    assert_eq!(after, before);
    let arrows = ask(&written(&recording), &["SELECT COUNT(*) > 800 FROM flow"]).unwrap();
    assert_eq!(arrows[0], ["1"]);
}

/// Goal: findings are on top of the trace, below the threads that they are about, and nothing else has
/// changed. Method: three findings on a real file, two of one thread that overlap; the trace processor is
/// asked for slices with their threads, and the questions from before.
#[test]
fn findings_are_on_top_of_what_was_there() {
    let original = example("ms-galaxy-s20.perfetto-trace.gz");
    let recording = read(&original);
    let begin = recording.span().unwrap().0;
    let thread = &recording.threads[0];
    let note = |on: Option<Task>, name: &str, from: u64, to: u64| Annotation {
        on,
        track: "findings".into(),
        name: name.into(),
        begin: begin + Nanos(from),
        end: begin + Nanos(to),
    };
    let findings = [
        note(Some(thread.task), "waits", 1_000, 5_000),
        note(Some(thread.task), "waits more", 3_000, 9_000),
        note(None, "all of it", 0, 10_000),
    ];
    let mut annotated = Vec::new();
    super::annotate(&original[..], &recording, &findings, &mut annotated).unwrap();
    assert!(annotated.starts_with(&original));
    let again = read(&annotated);
    assert_eq!(again.kernel, recording.kernel);
    assert_eq!(again.annotations.len(), 3);
    let mut found = again.annotations.clone();
    found.sort_by_key(|note| note.end);
    assert_eq!(found, findings);

    let own = format!(
        "SELECT s.name, s.ts - {}, s.dur, COALESCE(tid, 'nobody') FROM slice s
         JOIN track t ON t.id = s.track_id LEFT JOIN thread_track p ON p.id = COALESCE(t.parent_id, t.id)
         LEFT JOIN thread USING (utid) WHERE s.name IN ('waits', 'waits more', 'all of it') ORDER BY s.dur",
        begin.0
    );
    let count = "SELECT COUNT(*) FROM slice";
    let queries = [KERNEL, &[count, &own]].concat();
    let Some(before) = ask(&original, &queries) else {
        return;
    };
    let after = ask(&annotated, &queries).unwrap();
    assert_eq!(after[..KERNEL.len()], before[..KERNEL.len()]);
    let number = |answer: &[Vec<String>]| answer[KERNEL.len()][0].parse::<u64>().unwrap();
    assert_eq!(number(&after), number(&before) + 3);
    let tid = thread.tid.unwrap();
    let expected = [
        format!("waits\t1000\t4000\t{tid}"),
        format!("waits more\t3000\t6000\t{tid}"),
        "all of it\t0\t10000\tnobody".to_owned(),
    ];
    assert_eq!(after[KERNEL.len() + 1], expected);
}

/// Goal: Perfetto keeps the events of quotas, with their values, shows the times when a thread was put aside
/// below that thread, and takes the thread for one that could run. Method: a thread that is put aside while
/// it runs.
#[test]
fn who_is_put_aside_is_shown() {
    let task = Task(0);
    let at = |time, what| KernelEvent {
        time: Nanos(time),
        cpu: Cpu(0),
        what,
    };
    let switch = |prev, next| KernelEventKind::Switch {
        prev,
        state: Left::Runnable,
        next,
    };
    let throttle = |begins| KernelEventKind::Throttle { task, begins };
    let recording = Recording {
        threads: vec![Thread {
            tid: Some(77),
            ..Thread::new(task, "worker", None)
        }],
        kernel: vec![
            at(1_000, switch(None, Some(task))),
            at(5_000, throttle(true)),
            at(5_000, switch(Some(task), None)),
            at(9_000, throttle(false)),
            at(9_500, switch(None, Some(task))),
            at(9_900, switch(Some(task), None)),
        ],
        ..Recording::default()
    };
    let queries = [
        "SELECT name, EXTRACT_ARG(arg_set_id, 'tid'), EXTRACT_ARG(arg_set_id, 'begins')
         FROM ftrace_event WHERE name GLOB 'paceline*' ORDER BY ts",
        "SELECT s.name, t.name, s.dur, tid FROM slice s JOIN track t ON t.id = s.track_id
         JOIN thread_track p ON p.id = COALESCE(t.parent_id, t.id) JOIN thread USING (utid)",
        "SELECT state, dur FROM thread_state JOIN thread USING (utid) WHERE tid = 77 AND dur > 0
         ORDER BY ts LIMIT 3",
    ];
    let Some(answers) = ask(&written(&recording), &queries) else {
        return;
    };
    assert_eq!(
        answers[0],
        ["paceline_throttle\t77\t1", "paceline_throttle\t77\t0"]
    );
    assert_eq!(answers[1], ["throttled\tCPU quota\t4000\t77"]);
    assert_eq!(answers[2], ["Running\t4000", "R\t4500", "Running\t400"]);
}
