//! A file of Chrome's, files by hand, and files that are broken.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use event::{KernelEventKind, Left, Nanos, Task};

use crate::{Loss, MarkKind, Recording};

fn read(text: &str) -> Recording {
    crate::read::read(text.as_bytes(), "trace.json").unwrap()
}

/// Marks as (microseconds, tid, what).
fn marks(recording: &Recording) -> Vec<String> {
    let word = |name| recording.names.word(name);
    let shown = recording.marks.iter().map(|mark| {
        let tid = recording.threads[mark.on.index()].tid.unwrap_or(0);
        let what = match mark.what {
            MarkKind::Begin(name) => format!("begin {}", word(name)),
            MarkKind::End => "end".to_owned(),
            MarkKind::AsyncBegin { name, cookie } => format!("async {} {cookie}", word(name)),
            MarkKind::AsyncEnd { name, cookie } => format!("async end {} {cookie}", word(name)),
            MarkKind::Instant(name) => format!("instant {}", word(name)),
            MarkKind::Flow { id, ends: false } => format!("flow {id:#x}"),
            MarkKind::Flow { id, ends: true } => format!("flow ends {id:#x}"),
        };
        format!("{} {tid} {what}", mark.time.0 as f64 / 1e3)
    });
    shown.collect()
}

/// Goal: arrows of the newer way, `bind_id` with `flow_in` and `flow_out`, pass through their slices, are
/// numbered apart from those of the older way, and where they have no slice they are counted. Method: an
/// arrow through three slices, one of the older way with the same number, and one at an instant.
#[test]
fn arrows_of_slices() {
    let recording = read(
        r#"[
        {"ph":"X","pid":1,"tid":2,"ts":10,"dur":5,"name":"a","bind_id":"0x5","flow_out":true},
        {"ph":"X","pid":1,"tid":3,"ts":20,"dur":5,"name":"b","bind_id":"0x5","flow_in":true,"flow_out":true},
        {"ph":"B","pid":1,"tid":2,"ts":30,"name":"c","bind_id":"0x5","flow_in":true},
        {"ph":"s","pid":1,"tid":2,"ts":31,"name":"old","cat":"x","id":5},
        {"ph":"E","pid":1,"tid":2,"ts":40},
        {"ph":"I","pid":1,"tid":2,"ts":50,"name":"i","bind_id":"0x5","flow_in":true},
        {"ph":"X","pid":1,"tid":2,"ts":60,"dur":1,"name":"d","bind_id":"0x6"}
        ]"#,
    );
    let marks = marks(&recording);
    let flows: Vec<_> = marks.iter().filter(|mark| mark.contains("flow")).collect();
    assert_eq!(
        flows[..3],
        ["10 2 flow 0x5", "20 3 flow 0x5", "30 2 flow ends 0x5"]
    );
    assert_eq!(flows.len(), 4);
    assert!(!flows[3].ends_with("0x5"), "{flows:?}");
    assert_eq!(recording.losses.get(Loss::Unsupported), 1);
}

/// Goal: a file that Chrome wrote is read whole. Method: counts against `testdata/traces/README.md` and
/// against a count of the letters in the file (1625 B, 1622 E, 866 s, 886 f, 18 M): all beginnings are there,
/// three have no end, every arrow is there or counted, and threads have the names that the file gives.
#[test]
fn a_file_of_chrome_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../testdata/traces/catapult-chrome-flow.json.gz");
    let recording = crate::read::read(File::open(path).unwrap(), "flow").unwrap();
    assert_eq!(recording.origin.format, "chrome");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for mark in &recording.marks {
        *counts
            .entry(match mark.what {
                MarkKind::Begin(_) => "begin",
                MarkKind::End => "end",
                MarkKind::Flow { ends: false, .. } => "flow",
                MarkKind::Flow { ends: true, .. } => "flow ends",
                _ => "other",
            })
            .or_default() += 1;
    }
    let lost = |loss| recording.losses.get(loss);
    assert_eq!(counts["begin"], 1_625);
    assert_eq!(counts["end"] + lost(Loss::Unfinished), 1_625);
    assert_eq!(
        1_622 - lost(Loss::Unbegun) + counts["flow ends"] - 886,
        counts["end"]
    );
    assert_eq!(counts["flow"], 866);
    assert!(
        counts["flow ends"] <= 886 && counts["flow ends"] > 860,
        "{counts:?}"
    );
    assert_eq!(counts.get("other"), None);
    let named = |name| recording.threads.iter().any(|thread| thread.name == name);
    assert!(named("CrBrowserMain") && named("Chrome_DBThread"));
    assert!(
        recording
            .processes
            .iter()
            .any(|process| process.name == "Browser")
    );
    assert_eq!(
        lost(Loss::Malformed) + lost(Loss::BadFields) + lost(Loss::Unsupported),
        0
    );
}

const SMALL: &str = r#"{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},
{"ph":"M","pid":1,"name":"process_name","args":{"name":"game"}},
{"ph":"X","pid":1,"tid":2,"ts":"10.5","dur":20,"name":"outer","args":{"x":[1,{}]}},
{"ph":"X","pid":1,"tid":2,"ts":10.5,"dur":4.5,"name":"inner"},
{"ph":"B","pid":1,"tid":2,"ts":20,"name":"late"},
{"ph":"s","pid":1,"tid":2,"ts":21,"cat":"c","name":"f","id":"0xff"},
{"ph":"E","pid":1,"tid":2,"ts":25},
{"ph":"i","pid":1,"tid":2,"ts":26,"name":"now","s":"t"},
{"ph":"f","pid":1,"tid":3,"ts":30,"cat":"c","name":"f","id":"0xff"},
{"ph":"X","pid":1,"tid":3,"ts":31,"dur":1,"name":"next"},
{"ph":"t","pid":1,"tid":3,"ts":31.5,"cat":"c","name":"f","id":255},
{"ph":"f","bp":"e","pid":1,"tid":3,"ts":31.75,"cat":"d","name":"f","id":255},
{"ph":"b","pid":1,"tid":2,"ts":5,"cat":"net","id2":{"local":"0x1"},"name":"request"},
{"ph":"e","pid":1,"tid":3,"ts":40,"cat":"net","id2":{"local":"0x1"},"name":"request"},
{"ph":"C","pid":1,"ts":7,"name":"fps","args":{"value":59.6,"min":3}},
{"ph":"X","pid":9,"tid":2,"ts":1,"dur":1,"name":"another 2"},
{"ph":"E","pid":1,"tid":2,"ts":50},
{"ph":"P","pid":1,"tid":2,"ts":50},
{"ph":"X","pid":1,"tid":2,"ts":"soon","dur":1,"name":"bad"},
17
]}"#;

/// Goal: each kind of event is read as the format defines it. Method: a file by hand: numbers as texts,
/// slices of one time, arrows to the open and to the next slice, a tid that two processes have, and events
/// that are only counted.
#[test]
fn every_kind_is_read() {
    let recording = read(SMALL);
    let expected = [
        "1 0 begin another 2",
        "2 0 end",
        "5 2 async request 1",
        "10.5 2 begin outer",
        "10.5 2 begin inner",
        "15 2 end",
        "20 2 begin late",
        "21 2 flow 0xff",
        "25 2 end",
        "26 2 instant now",
        "30.5 2 end",
        "31 3 begin next",
        "31 3 flow ends 0xff",
        "31.5 3 flow 0xff",
        "31.75 3 flow ends 0x9e3779b97f4a7d14",
        "32 3 end",
        "40 3 async end request 1",
    ];
    assert_eq!(marks(&recording), expected);
    let counters: Vec<_> = recording
        .counters
        .iter()
        .map(|all| (&all.name[..], &all.values[..]))
        .collect();
    let at = Nanos(7_000);
    assert_eq!(
        counters,
        [("fps", &[(at, 60)][..]), ("fps min", &[(at, 3)])]
    );
    let losses = [
        (Loss::Malformed, 1),
        (Loss::BadFields, 1),
        (Loss::Unbegun, 1),
        (Loss::Unsupported, 1),
    ];
    assert_eq!(recording.losses.iter().collect::<Vec<_>>(), losses);
}

/// Goal: a file may end anywhere, as Chrome's do. Method: the small file, and its array alone, cut off at
/// each byte: a recording, or a one-line error; all events before the cut are there.
#[test]
fn a_file_may_end_anywhere() {
    let begin = SMALL.find('[').unwrap();
    for text in [SMALL, &SMALL[begin..SMALL.len() - 1]] {
        let mut marks = 0;
        for length in 0..text.len() {
            match crate::read::read(&text.as_bytes()[..length], "cut") {
                Ok(recording) => {
                    assert_eq!(recording.losses.get(Loss::Truncated), 1, "{length}");
                    marks = recording.marks.len();
                }
                Err(why) => assert!(
                    length < begin + 2 && !why.to_string().contains('\n'),
                    "{length}: {why}"
                ),
            }
        }
        assert_eq!(marks, 17);
    }
}

/// Goal: broken files are read as far as they go. Method: 20 000 times some bytes of the small file are
/// changed, at places drawn from a seed; nothing panics, and most are still read.
#[test]
fn broken_files_are_read_as_far_as_they_go() {
    let mut random = event::Random::new(3);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = SMALL.as_bytes().to_vec();
        for _ in 0..random.within(1, 4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        read += usize::from(crate::read::read(&bytes[..], "broken").is_ok());
    }
    assert!(read > 10_000, "{read}");
}

/// Goal: JSON that is no trace is refused in one line. Method: some examples.
#[test]
fn what_is_no_trace_is_refused() {
    for text in [
        "{}",
        "{\"a\": [1, 2]}",
        "{\"traceEvents\": 5}",
        "{\"traceEvents\"",
    ] {
        let why = crate::read::read(text.as_bytes(), "no.json")
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("no.json: ") && why.contains("Chrome"),
            "{why}"
        );
    }
}

/// Goal: slices that cannot nest are cut, and counted. Method: one that ends after the slice around it.
#[test]
fn slices_are_made_to_nest() {
    let recording = read(
        r#"[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":4,"name":"a"},
        {"ph":"X","pid":1,"tid":2,"ts":3,"dur":9,"name":"b"}]"#,
    );
    assert_eq!(
        marks(&recording),
        ["1 2 begin a", "3 2 begin b", "5 2 end", "5 2 end"]
    );
    assert_eq!(recording.losses.get(Loss::Clamped), 1);
}

/// Goal: a kernel's half is read, as ftrace's text and as Fuchsia's events. Method: a switch in each.
#[test]
fn the_kernels_half_is_read() {
    let line = "  a-7  [001] d..2. 1.000000: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S \
        ==> next_comm=b next_pid=8 next_prio=120\\n";
    let text = format!("{{\"traceEvents\":[],\"systemTraceEvents\":\"{line}\"}}");
    let recording = read(&text);
    let told = |prev: Option<u32>, state, next: Option<u32>| KernelEventKind::Switch {
        prev: prev.map(Task),
        state,
        next: next.map(Task),
    };
    assert_eq!(
        recording.kernel[0].what,
        told(Some(0), Left::Sleeping, Some(1))
    );
    assert_eq!(recording.kernel[0].time, Nanos(1_000_000_000));
    let text = r#"{"traceEvents":[],"systemTraceEvents":{"type":"fuchsia","events":[
        {"ph":"t","pid":1,"tid":8,"name":"worker"},
        {"ph":"k","ts":2.5,"cpu":1,"out":{"pid":0,"tid":0,"state":0},"in":{"pid":1,"tid":8}},
        {"ph":"k","ts":3.5,"cpu":1,"out":{"pid":1,"tid":8,"state":3},"in":{"pid":1,"tid":9}},
        {"ph":"k","ts":4.5,"cpu":1,"out":{"pid":1,"tid":9,"state":2},"in":{"pid":0,"tid":0}}]}}"#;
    let recording = read(text);
    let kernel: Vec<_> = recording
        .kernel
        .iter()
        .map(|event| (event.time.0, event.what))
        .collect();
    let expected = [
        (2_500, told(None, Left::Runnable, Some(0))),
        (3_500, told(Some(0), Left::Sleeping, Some(1))),
        (4_500, told(Some(1), Left::Runnable, None)),
    ];
    assert_eq!(kernel, expected);
    assert_eq!(recording.threads[0].name, "worker");
    assert_eq!(recording.losses.get(Loss::Unsupported), 1);
}
