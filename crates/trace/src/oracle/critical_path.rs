//! Our accounts, reduced to Perfetto's terms: the thread that had the baton, and its state.
//!
//! Perfetto's critical path is the one of the last waker, and differs: it says neither what ran instead nor
//! what a spinning thread waits for, and of deep chains its version 52 is known to lose parts
//! (google/perfetto#5704). So the compared waits are simple ones: those of the local recordings in which the
//! thread sleeps and one other thread wakes it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use crate::explain::{CauseKind, Selection, Wait, explain};
use crate::timeline::{Options, Timeline};

use super::ask;

/// Ticks of a microsecond at both ends of a row, the precision of the text's times.
const NEAR_NS: u64 = 2_000;

/// Time by slice (name and when it began), thread, and whether it ran, could run, or slept.
type Rows = BTreeMap<(String, u64, u32, &'static str), u64>;

/// For each slice of these names: the critical path, cut where its threads change state.
const QUERY: &str = "
    INCLUDE PERFETTO MODULE sched.thread_executing_span;
    WITH wanted AS (
        SELECT slice.name, slice.ts, slice.dur, track.utid
        FROM slice JOIN thread_track track ON slice.track_id = track.id
        WHERE slice.dur > 0 AND slice.name GLOB 'PATTERN*'
    ),
    path AS (
        SELECT wanted.name, wanted.ts AS slice_ts, p.ts, p.dur, p.utid
        FROM wanted, _thread_executing_span_critical_path(wanted.utid, wanted.ts, wanted.dur) p
    )
    SELECT path.name, path.slice_ts, thread.tid, state.state,
        SUM(MIN(path.ts + path.dur, state.ts + state.dur) - MAX(path.ts, state.ts))
    FROM path
    JOIN thread_state state ON state.utid = path.utid
        AND state.ts < path.ts + path.dur AND state.ts + state.dur > path.ts
    JOIN thread ON thread.utid = path.utid
    GROUP BY 1, 2, 3, 4";

fn bytes(file: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../testdata/traces/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    let packed = std::fs::File::open(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The trace processor's answer.
fn theirs(rows: &[String]) -> Rows {
    let mut all = Rows::new();
    for row in rows {
        let [name, begin, tid, state, ns] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let state = match state {
            "Running" => "ran",
            "R" | "R+" => "runnable",
            _ => "slept",
        };
        let key = (
            name.to_owned(),
            micros(begin.parse().unwrap()),
            tid.parse().unwrap(),
            state,
        );
        *all.entry(key).or_default() += ns.parse::<u64>().unwrap();
    }
    all
}

/// Our answer.
fn ours(timeline: &Timeline, waits: &[Wait]) -> Rows {
    let mut all = Rows::new();
    for wait in waits {
        for segment in &wait.segments {
            let state = match segment.kind {
                CauseKind::Running
                | CauseKind::SmallCore
                | CauseKind::LowFrequency
                | CauseKind::FrequencyLimit
                | CauseKind::Interrupted => "ran",
                CauseKind::Preempted
                | CauseKind::WakeLatency
                | CauseKind::IdleExit
                | CauseKind::NoCore
                | CauseKind::BusyWaitStolen => "runnable",
                _ => "slept",
            };
            let tid = segment
                .thread
                .and_then(|task| timeline.tid(task))
                .unwrap_or(0);
            let key = (wait.name.clone(), micros(wait.begin.0), tid, state);
            *all.entry(key).or_default() += segment.length().0;
        }
    }
    all
}

/// Their times have passed through a floating-point number, so that the last digit may differ.
fn micros(ns: u64) -> u64 {
    (ns + 500) / 1_000
}

/// Goal: simple waits agree with Perfetto's own critical path. Method: its trace processor and we account for
/// the same slices; each row of (slice, thread, state) differs by no more than 2 us. The first slice is left
/// out: Perfetto has nothing about a thread before the first wake-up of it that was recorded.
#[test]
fn simple_waits_agree_with_perfetto() {
    for (file, pattern, least) in [
        ("local-pathfinder-nopi.ftrace.txt.gz", "cycle", 75),
        ("local-pathfinder-pi.ftrace.txt.gz", "cycle", 65),
        ("local-futex.ftrace.txt.gz", "frame", 80),
    ] {
        let bytes = bytes(file);
        let Some(answers) = ask(&bytes, &[&QUERY.replace("PATTERN", pattern)]) else {
            return;
        };
        let recording = crate::read::read(&bytes[..], file).unwrap();
        let timeline = Timeline::new(recording, &Options::default());
        let selection = Selection {
            slices: vec![pattern.to_owned()],
            ..Selection::default()
        };
        let ours = ours(&timeline, &explain(&timeline, &selection).waits);
        let theirs = theirs(&answers[0]);
        let first = ours.keys().map(|key| key.1).min();
        let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
        let mut compared = 0;
        for key in keys.into_iter().filter(|key| Some(key.1) != first) {
            let of = |rows: &Rows| rows.get(key).copied().unwrap_or(0);
            let (theirs, ours) = (of(&theirs), of(&ours));
            assert!(
                theirs.abs_diff(ours) <= NEAR_NS,
                "{file}: {key:?}: Perfetto has {theirs} ns, we have {ours} ns"
            );
            compared += 1;
        }
        assert!(
            compared >= least,
            "{file}: only {compared} rows were compared"
        );
    }
}
