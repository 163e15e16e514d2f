//! Binder: calls of another process, in the text of a kernel.

use event::Nanos;

use crate::explain::{CauseKind, Confidence, Selection, explain};
use crate::read::read;
use crate::script::check;
use crate::timeline::{Options, Timeline};

/// A thread calls a server, which calls a helper before it answers; then it sends something that needs no
/// answer. The kernel does not say what ended the server's sleep. Microseconds, CPU, thread, event.
const CALLS: &[(u64, u32, &str, &str)] = &[
    (0, 0, "idle", "> app"),
    (
        100,
        0,
        "app",
        "sends 1: dest_proc=20 dest_thread=0 reply=0 flags=0x10",
    ),
    (110, 0, "app", "wakes server"),
    (120, 0, "app", "> idle"),
    (130, 1, "idle", "> server"),
    (140, 1, "server", "receives 1"),
    (
        150,
        1,
        "server",
        "sends 2: dest_proc=30 dest_thread=0 reply=0 flags=0x10",
    ),
    (155, 1, "server", "wakes helper"),
    (160, 1, "server", "> idle"),
    (170, 0, "idle", "> helper"),
    (180, 0, "helper", "receives 2"),
    (
        300,
        0,
        "helper",
        "sends 3: dest_proc=20 dest_thread=21 reply=1 flags=0x0",
    ),
    (310, 0, "helper", "> idle"),
    (320, 1, "idle", "> server"),
    (330, 1, "server", "receives 3"),
    (
        400,
        1,
        "server",
        "sends 4: dest_proc=10 dest_thread=10 reply=1 flags=0x0",
    ),
    (410, 1, "server", "wakes app"),
    (420, 1, "server", "> idle"),
    (430, 0, "idle", "> app"),
    (440, 0, "app", "receives 4"),
    (
        450,
        0,
        "app",
        "sends 5: dest_proc=20 dest_thread=0 reply=0 flags=0x11",
    ),
    (500, 0, "app", "> idle"),
];

fn timeline() -> Timeline {
    let task = |name: &str| match name {
        "app" => ("app", 10),
        "server" => ("server", 21),
        "helper" => ("helper", 31),
        _ => ("swapper/0", 0),
    };
    let mut text = "# tracer: nop\n".to_owned();
    for (time, cpu, who, what) in CALLS {
        let (comm, tid) = task(who);
        let event = if let Some(next) = what.strip_prefix("> ") {
            let (next, next_tid) = task(next);
            format!(
                "sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state=S ==> \
                 next_comm={next} next_pid={next_tid} next_prio=120"
            )
        } else if let Some(woken) = what.strip_prefix("wakes ") {
            let (comm, tid) = task(woken);
            format!("sched_waking: comm={comm} pid={tid} prio=120 target_cpu=001")
        } else if let Some(number) = what.strip_prefix("receives ") {
            format!("binder_transaction_received: transaction={number}")
        } else {
            let (number, rest) = what["sends ".len()..].split_once(": ").unwrap();
            format!("binder_transaction: transaction={number} dest_node=3 {rest} code=0x1")
        };
        text += &format!("{comm}-{tid} [{cpu:03}] d..3 1.{time:06}: {event}\n");
    }
    let recording = read(text.as_bytes(), "phone").unwrap();
    assert!(recording.losses.is_empty(), "{:?}", recording.losses);
    Timeline::new(recording, &Options::default())
}

/// Goal: a call is a slice of both of its threads, from the transaction to the reply; calls nest, and what
/// needs no answer is none. Method: the calls above.
#[test]
fn calls_are_slices() {
    let timeline = timeline();
    let notes = timeline.recording().annotations.iter();
    let mut told: Vec<_> = notes
        .map(|note| {
            let on = timeline.name(note.on.unwrap());
            let micros = [note.begin, note.end].map(|time| time.0 / 1_000 - 1_000_000);
            (micros, on, note.name.clone())
        })
        .collect();
    told.sort();
    let call = |begin, end, on: &str, name: &str| ([begin, end], on.to_owned(), name.to_owned());
    assert_eq!(
        told,
        [
            call(100, 440, "app", "binder call to server"),
            call(140, 400, "server", "binder call from app"),
            call(150, 330, "server", "binder call to helper"),
            call(180, 300, "helper", "binder call from server"),
        ]
    );
}

/// Goal: an account goes from the caller to the server and on to what that one called, also where no wake-up
/// says so; that is inferred. Method: the app's sleep in its call.
#[test]
fn an_account_follows_calls() {
    let timeline = timeline();
    let selection = Selection {
        threads: Some(timeline.find("app")),
        ..Selection::default()
    };
    let found = explain(&timeline, &selection);
    let wait = &found.waits[0];
    check(wait);
    let ran = wait
        .causes
        .iter()
        .filter(|one| one.kind == CauseKind::Running);
    let ran = ran.map(|cause| {
        let name = cause.thread.map(|task| timeline.name(task));
        (name.unwrap_or_default(), cause.ns, cause.confidence)
    });
    let micros = Nanos::from_micros;
    assert_eq!(
        ran.collect::<Vec<_>>(),
        [
            ("helper".to_owned(), micros(130), Confidence::Inferred),
            ("server".to_owned(), micros(120), Confidence::Known),
        ]
    );
}
