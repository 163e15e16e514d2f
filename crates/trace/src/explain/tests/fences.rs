//! Fences of devices, in the text of a kernel.

use crate::explain::{CauseKind, Confidence, Selection, explain};
use crate::read::read;
use crate::timeline::{Options, Timeline};

const WAIT: &str = "driver=v3d timeline=v3d render context=7 seqno=41";

/// A thread of an app waits for a fence in a frame. `signal`: the lines about what ends that. Columns are
/// CPU, flags and time in microseconds.
fn timeline(signal: &str) -> Timeline {
    let switch = |prev: &str, next: &str| {
        let [prev, next] = [prev, next].map(|name| match name {
            "app" => ("app", 10),
            "gpu-worker" => ("gpu-worker", 20),
            _ => ("swapper/0", 0),
        });
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=D ==> next_comm={} next_pid={} \
             next_prio=120",
            prev.0, prev.1, next.0, next.1
        )
    };
    let text = format!(
        "# tracer: nop\n\
         app-10 [000] .... 0.000100: tracing_mark_write: B|10|frame 1\n\
         app-10 [000] .... 0.000110: dma_fence_wait_start: {WAIT}\n\
         app-10 [000] d... 0.000120: {}\n\
         {signal}\
         <idle>-0 [000] d... 0.000420: {}\n\
         app-10 [000] .... 0.000430: dma_fence_wait_end: {WAIT}\n\
         app-10 [000] .... 0.000500: tracing_mark_write: E\n",
        switch("app", "idle"),
        switch("idle", "app"),
    );
    let recording = read(text.as_bytes(), "fences").unwrap();
    assert!(recording.losses.is_empty(), "{:?}", recording.losses);
    Timeline::new(recording, &Options::default())
}

/// What the time of the frame went to: kind, thread, length.
fn causes(timeline: &Timeline) -> Vec<(CauseKind, Option<String>, u64, Confidence)> {
    let selection = Selection::default();
    let explanation = explain(timeline, &selection);
    let wait = explanation.waits.iter().find(|wait| wait.name == "frame 1");
    let wait = wait.unwrap_or_else(|| panic!("{explanation:?}"));
    let mut causes: Vec<_> = wait
        .segments
        .iter()
        .map(|segment| {
            let thread = segment.thread.map(|task| timeline.name(task).to_owned());
            let length = segment.length().0 / 1_000;
            (segment.kind, thread, length, segment.confidence)
        })
        .collect();
    causes.retain(|(.., length, _)| *length >= 50);
    causes
}

/// Goal: a thread that sleeps for a fence sleeps because of a device, if an interrupt or nothing known ends
/// that; if a thread signals the fence, the path leads to that thread. Method: the same wait, signalled in an
/// interrupt, by nothing that is known, and by a worker thread that says nothing else of it.
#[test]
fn a_fence_leads_to_what_signals_it() {
    let device = |length| {
        let app = Some("app".to_owned());
        (CauseKind::Io, app, length, Confidence::Known)
    };
    let in_interrupt = format!(
        "<idle>-0 [000] d.h. 0.000400: dma_fence_signaled: {WAIT}\n\
         <idle>-0 [000] d.h. 0.000405: sched_waking: comm=app pid=10 prio=120 target_cpu=000\n"
    );
    assert_eq!(causes(&timeline(&in_interrupt))[0].0, CauseKind::Io);
    assert!(
        causes(&timeline("")).contains(&device(300)),
        "{:?}",
        causes(&timeline(""))
    );
    let by_a_thread = format!(
        "<idle>-0 [001] d... 0.000150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
         prev_state=R ==> next_comm=gpu-worker next_pid=20 next_prio=120\n\
         gpu-worker-20 [001] .... 0.000400: dma_fence_signaled: {WAIT}\n"
    );
    let found = causes(&timeline(&by_a_thread));
    let worker = Some("gpu-worker".to_owned());
    let ran = found.iter().find(|(_, thread, ..)| *thread == worker);
    assert!(
        ran.is_some_and(|(kind, _, length, _)| *kind == CauseKind::Running && *length >= 240),
        "{found:?}"
    );
}
