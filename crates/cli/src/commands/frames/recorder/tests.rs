//! Goal and method stand at each test.

use std::collections::BTreeMap;

use event::{KernelEventKind, Nanos};

use super::*;

fn event(slot: u32, kind: EventKind) -> Event {
    let (time, job, arg) = (Nanos(u64::from(slot)), 1, 0);
    Event {
        time,
        job,
        arg,
        slot,
        kind,
    }
}

fn without_kernel(limit: usize) -> FrameRecorder {
    let (rings, reader) = Rings::new(4);
    FrameRecorder {
        rings,
        reader,
        limit,
        jobs: Vec::new(),
        beyond: 0,
        clocks: Clocks::default(),
        kernel: None,
        text: None,
    }
}

/// Goal: a recording has a bound; events after it are counted, and so are events that found their ring full.
/// Method: a recorder for three events gets five of one thread slot, whose ring holds four, and two of
/// another.
#[test]
fn more_events_than_fit_are_counted() {
    let mut recorder = without_kernel(3);
    let sink = recorder.sink();
    for slot in 0..2 {
        sink.slot_taken(slot);
    }
    (0..5).for_each(|_| sink.record(&event(0, EventKind::Park)));
    recorder.drain();
    (0..2).for_each(|_| sink.record(&event(1, EventKind::Park)));
    let js = paceline::Builder::new().workers(0).build().unwrap();
    let recording = recorder.finish(js).unwrap();
    let lost = recording.losses.get(Loss::JobEvents);
    assert_eq!((recording.jobs.len(), lost), (3, 4));
}

/// Goal: without the kernel, the thread that begins frames is "main", the others are workers, and all have
/// the numbers by which the system knows them. Method: a frame on thread slot 2.
#[test]
fn whoever_begins_frames_is_the_main_thread() {
    let events = vec![event(0, EventKind::Park), event(2, EventKind::FrameBegin)];
    let recording = join(Recording::default(), events, &[(0, 71), (2, 70)]);
    let threads = recording.threads.iter();
    let threads: Vec<_> = threads.map(|t| (t.task.0, &t.name[..], t.tid)).collect();
    assert_eq!(
        threads,
        [(0, "paceline 0", Some(71)), (1, "main", Some(70))]
    );
    assert_eq!(
        recording.slots,
        BTreeMap::from([(0, Task(0)), (2, Task(1))])
    );
    assert_eq!(recording.processes[0].pid, Some(std::process::id()));
}

/// Goal: threads that the kernel knows are found by their numbers, the newest of several with one number;
/// others are added. Method: a kernel's recording with two threads numbered 70.
#[test]
fn threads_are_joined_by_number() {
    let thread = |task, name: &str, tid| Thread {
        tid: Some(tid),
        ..Thread::new(Task(task), name, None)
    };
    let kernel = Recording {
        threads: vec![
            thread(3, "gone", 70),
            thread(8, "paceline", 70),
            thread(5, "hog", 12),
        ],
        ..Recording::default()
    };
    let events = vec![event(2, EventKind::FrameBegin)];
    let recording = join(kernel, events, &[(0, 71), (2, 70)]);
    assert_eq!(
        recording.slots,
        BTreeMap::from([(0, Task(9)), (2, Task(8))])
    );
    let names: Vec<&str> = recording.threads.iter().map(|t| &t.name[..]).collect();
    assert_eq!(names, ["gone", "main", "hog", "paceline 0"]);
}

/// When the kernel says that a task ran.
fn stretches(recording: &Recording, who: Task) -> Vec<(Nanos, Nanos)> {
    let mut stretches = Vec::new();
    let mut since = None;
    for event in &recording.kernel {
        let KernelEventKind::Switch { prev, next, .. } = event.what else {
            continue;
        };
        if prev == Some(who) {
            // A thread that already ran when recording began has run from the beginning.
            stretches.push((since.take().unwrap_or(Nanos::ZERO), event.time));
        }
        if next == Some(who) {
            since = Some(event.time);
        }
    }
    stretches.extend(since.map(|since| (since, Nanos::MAX)));
    stretches
}

/// Goal: both halves are of the same threads and on the same clock. Method: jobs on a worker and this thread,
/// with sleeps in between; every event of the job system must be at a time when the kernel says that its
/// thread ran, but for the kernel's rounding (1 us) and the distance of two reads of clocks.
#[test]
fn what_happens_on_a_thread_happens_while_it_runs() {
    const APART: Nanos = Nanos::from_micros(20);
    let mut recorder = FrameRecorder::start(LIMIT, None);
    if recorder.kernel.is_none() {
        return; // It has said so.
    }
    let builder = paceline::Builder::new().workers(1);
    let js = builder.sink(recorder.sink()).build().unwrap();
    for _ in 0..30 {
        let frame = js.frame("frame", std::time::Duration::from_millis(1));
        let body =
            |_: &paceline::Context<'_, Os>| (0..200_000).for_each(|i| _ = std::hint::black_box(i));
        let jobs: Vec<_> = (0..6).map(|_| frame.job("spins").schedule(body)).collect();
        for job in &jobs {
            js.wait(*job);
        }
        drop(frame);
        recorder.drain();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let recording = recorder.finish(js).unwrap();
    assert_eq!(recording.losses.get(Loss::KernelEvents), 0);
    let ran: BTreeMap<u32, Vec<(Nanos, Nanos)>> = recording
        .slots
        .iter()
        .map(|(slot, task)| (*slot, stretches(&recording, *task)))
        .collect();
    assert_eq!(ran.len(), 2);
    let mut begun = 0;
    for event in &recording.jobs {
        let runs =
            |(from, to): &(Nanos, Nanos)| *from <= event.time + APART && event.time <= *to + APART;
        assert!(ran[&event.slot].iter().any(runs), "{event:?}: {ran:?}");
        begun += u32::from(event.kind == EventKind::Begin);
    }
    assert_eq!(begun, 180);
}
