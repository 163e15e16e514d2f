//! Traces that are written and read back.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ::trace::Recording;
use ::trace::explain::{Selection, WaitKind, explain};
use ::trace::timeline::{Options, Timeline};
use event::{Event, EventKind};

use super::*;
use crate::{Builder, JobSystem, Rings};

/// A file in the system's folder for such, which goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let file = format!("paceline-{}-{name}.pftrace", std::process::id());
        Scratch(std::env::temp_dir().join(file))
    }

    fn read(&self) -> Recording {
        let bytes = std::fs::read(&self.0).unwrap();
        ::trace::read::read(&bytes[..], "run.pftrace").unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn count(recording: &Recording, kind: EventKind) -> usize {
    recording.jobs.iter().filter(|it| it.kind == kind).count()
}

/// Three frames of two jobs each, with an edge.
fn frames(js: &JobSystem) {
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_secs(1));
        let physics = frame.job("physics").schedule(|_| ());
        js.wait(frame.job("draw").after(physics).schedule(|_| ()));
    }
}

/// Goal: a trace of a program's own has its jobs with names, edges, waits, frames with names and threads with
/// the system's numbers, and is explained like any other. Method: jobs before, in and after the trace; the
/// file is read back.
#[test]
fn a_trace_has_what_happened_in_it() {
    let file = Scratch::new("whole");
    let js = Builder::small().workers(1).build().unwrap();
    js.wait(js.job("before").schedule(|_| ()));
    let trace = js.start_trace(&file.0).unwrap();
    frames(&js);
    let traced = trace.finish().unwrap();
    js.wait(js.job("after").schedule(|_| ()));
    let recording = file.read();
    assert_eq!(
        (traced.events, traced.lost),
        (recording.jobs.len() as u64, 0)
    );
    assert!(recording.losses.is_empty(), "{:?}", recording.losses);
    for (kind, wanted) in [
        (EventKind::Created, 6),
        (EventKind::Edge, 3),
        (EventKind::Begin, 6),
        (EventKind::End, 6),
        (EventKind::FrameBegin, 3),
        (EventKind::FrameEnd, 3),
        (EventKind::Recording, 2),
    ] {
        let found = count(&recording, kind);
        // An edge to a job that is over is none.
        let is_right = found == wanted || kind == EventKind::Edge && found <= wanted;
        assert!(is_right, "{}: {found}", kind.word());
    }
    let ids = js.threads();
    for event in &recording.jobs {
        let task = recording.slots[&event.slot];
        let thread = recording.threads.iter().find(|it| it.task == task).unwrap();
        let id = ids.iter().find(|(slot, _)| *slot == event.slot).unwrap().1;
        assert_eq!(thread.tid, Some(id as u32));
    }
    let explanation = explain(
        &Timeline::new(recording, &Options::default()),
        &Selection::default(),
    );
    let waits = explanation.waits.iter();
    let frames = waits.filter(|wait| wait.kind == WaitKind::Frame);
    let mut names: Vec<&str> = frames.map(|wait| &*wait.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["update 0", "update 1", "update 2"]);
}

/// Goal: threads that come and go are told apart and have their names, although they have had the same slot.
/// Method: three threads, one after another, each with a job that it runs itself; one that was there before.
#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the job system's platform does not make the threads of programs"
)]
fn threads_of_one_slot_are_told_apart() {
    let file = Scratch::new("threads");
    let js = Builder::small().workers(0).build().unwrap();
    js.wait(js.schedule(|_| ()));
    let trace = js.start_trace(&file.0).unwrap();
    let names = ["first guest", "second guest", "third guest"];
    for name in names {
        std::thread::scope(|scope| {
            let run = || js.wait(js.job(name).schedule(|_| ()));
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, run).unwrap();
        });
    }
    js.wait(js.job("main's").schedule(|_| ()));
    trace.finish().unwrap();
    let recording = file.read();
    let made = |event: &&Event| event.kind == EventKind::Created;
    let of = |event: &Event| {
        let task = recording.slots[&event.slot];
        let thread = recording.threads.iter().find(|it| it.task == task);
        let label = &*recording.labels[event.arg as usize];
        (label, &*thread.unwrap().name)
    };
    let who: Vec<_> = recording.jobs.iter().filter(made).map(of).collect();
    let expected = names.map(|name| (name, name));
    assert_eq!(who[..3], expected);
    assert_eq!(who[3..], [("main's", "main")]);
    assert_eq!(recording.threads.len(), 4);
}

/// Goal: spans and values of the program are recorded with their names, where and when they happened, and not
/// at all outside of a trace. Method: a span around a wait for a job with a span and a value.
#[test]
fn spans_and_values_are_recorded() {
    let file = Scratch::new("spans");
    let js = Builder::small().workers(0).build().unwrap();
    let unseen = js.span("unseen");
    js.counter("unseen", 1);
    let trace = js.start_trace(&file.0).unwrap();
    drop(unseen);
    let span = js.span("level");
    js.wait(js.job("load").schedule(|cx| {
        let _span = cx.span(String::from("decode"));
        cx.counter("missing", -5);
    }));
    drop(span);
    trace.finish().unwrap();
    let recording = file.read();
    let told = recording.jobs.iter().filter_map(|event| {
        let label = |number: u64| &*recording.labels[number as usize];
        match event.kind {
            EventKind::SpanBegin => Some(format!("begin {}", label(event.arg))),
            EventKind::SpanEnd => Some(format!("end {}", label(event.arg))),
            EventKind::Counter => Some(format!("{} = {}", label(event.job), event.arg as i64)),
            EventKind::Begin => Some("begin of a job".to_owned()),
            _ => None,
        }
    });
    let told: Vec<String> = told.collect();
    let expected = [
        "begin level",
        "begin of a job",
        "begin decode",
        "missing = -5",
        "end decode",
        "end level",
    ];
    assert_eq!(told, expected);
}

/// Goal: one trace follows another, each has its own events, and the end of the job system is part of one
/// that outlives it. Method: two in a row with different numbers of jobs.
#[test]
fn traces_follow_each_other() {
    let (first, second) = (Scratch::new("first"), Scratch::new("second"));
    let js = Builder::small().workers(1).build().unwrap();
    let trace = js.start_trace(&first.0).unwrap();
    js.wait(js.schedule(|_| ()));
    drop(trace);
    js.wait(js.schedule(|_| ()));
    let trace = js.start_trace(&second.0).unwrap();
    for _ in 0..4 {
        js.schedule(|_| ());
    }
    drop(js);
    trace.finish().unwrap();
    assert_eq!(count(&first.read(), EventKind::End), 1);
    assert_eq!(count(&second.read(), EventKind::End), 4);
}

/// Goal: events without room are counted, in the file as well. Method: more jobs than a ring has room for,
/// before the thread that empties it can come.
#[test]
fn losses_are_named() {
    let file = Scratch::new("lost");
    let js = Builder::small().workers(0).build().unwrap();
    let trace = js.start_trace(&file.0).unwrap();
    let (reader, before) = trace.collector.take_reader();
    for _ in 0..RING {
        js.wait(js.schedule(|_| ()));
    }
    trace.collector.put_reader(reader);
    let traced = trace.finish().unwrap();
    assert!(traced.lost > 0, "{traced}");
    assert_eq!(traced.events, (before + RING) as u64, "{traced}");
    assert!(traced.to_string().contains(" more are lost: "), "{traced}");
    assert_eq!(
        file.read().losses.get(::trace::Loss::JobEvents),
        traced.lost
    );
}

/// Goal: what cannot be traced is said in one line. Method: a sink of the program's, a second trace, a folder
/// that is not there.
#[test]
fn refusals_are_one_line() {
    let file = Scratch::new("refused");
    let (rings, _reader) = Rings::new(16);
    let js = Builder::small().workers(0).sink(rings).build().unwrap();
    let said = |js: &JobSystem, path: &Path| js.start_trace(path).unwrap_err().to_string();
    let has_sink = said(&js, &file.0);
    assert!(has_sink.contains("own sink (Builder::sink)"), "{has_sink}");
    let js = Builder::small().workers(0).build().unwrap();
    let nowhere = said(&js, Path::new("no/such/folder/run.pftrace"));
    assert!(nowhere.starts_with("cannot write no/such/folder/run.pftrace: "));
    let trace = js.start_trace(&file.0).unwrap();
    let second = said(&js, &file.0);
    assert!(second.contains("finish that first"), "{second}");
    trace.finish().unwrap();
    js.start_trace(&file.0).unwrap().finish().unwrap();
    assert!(![has_sink, nowhere, second].concat().contains('\n'));
}

/// Set in processes that a test starts.
const CHILD: &str = "PACELINE_TEST_TRACED";

/// What [`the_environment_asks_for_a_trace`] runs in a process of its own.
#[test]
#[ignore = "part of another test"]
fn traced_child() {
    if std::env::var_os(CHILD).is_some() {
        match Builder::small().workers(1).build() {
            Ok(js) => frames(&js),
            Err(error) => println!("refused: {error}"),
        }
    }
}

fn traced_child_said(trace: &Path) -> String {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args([
            "--exact",
            "api::trace::tests::traced_child",
            "--ignored",
            "--nocapture",
        ])
        .env("PACELINE_TRACE", trace)
        .env(CHILD, "1")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Goal: a program without a line about traces writes one if the environment says so, from the first worker
/// to the end, and says in one line why it cannot. Method: this binary once more, in a process of its own.
#[test]
#[cfg_attr(miri, ignore = "an interpreter starts no process")]
fn the_environment_asks_for_a_trace() {
    let file = Scratch::new("environment");
    traced_child_said(&file.0);
    let recording = file.read();
    assert_eq!(count(&recording, EventKind::FrameEnd), 3);
    assert_eq!(recording.labels, ["physics", "draw", "update"]);
    let said = traced_child_said(Path::new("no/such/folder/run.pftrace"));
    let line = "refused: PACELINE_TRACE: cannot write no/such/folder/run.pftrace: ";
    assert!(said.contains(line), "{said}");
}

/// Goal: `PACELINE_TRACE` is the name of a file. Method: a name, and what is none.
#[test]
fn a_trace_goes_to_a_file() {
    let read = |text: &str| {
        let lookup = |name: &str| (name == "PACELINE_TRACE").then(|| text.into());
        let read = variable(&lookup, "PACELINE_TRACE", &read_pattern);
        read.map_err(|error| error.to_string())
    };
    assert_eq!(read(" a-%p.pftrace "), Ok(Some("a-%p.pftrace".to_owned())));
    for bad in ["", " ", "\u{fffd}.pftrace"] {
        let error = read(bad).unwrap_err();
        assert!(error.starts_with("PACELINE_TRACE: '"), "{error}");
        assert!(error.contains("use one such as run.pftrace"), "{error}");
    }
}
