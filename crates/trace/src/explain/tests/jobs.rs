//! Waits for jobs of our own job system.

use event::{EventKind, Nanos, Task};

use crate::explain::{Selection, WaitKind, explain, names};
use crate::script::{Script, told};
use crate::{Annotation, Loss};

const MAIN: u32 = 0;
const WORKER: u32 = 1;
const OTHER: u32 = 2;

/// Main makes jobs 1 → 2 and waits for 2; job 3 is in the way of job 1. Two CPUs.
fn graph() -> Script {
    let mut script = Script::new(&["main", "worker", "other"], 2);
    script.recording.labels = vec![
        "none".into(),
        "first".into(),
        "second".into(),
        "third".into(),
    ];
    script.run(0, 0, MAIN);
    script.run(0, 1, WORKER);
    for job in [3, 1, 2] {
        script.job(5, MAIN, EventKind::Created, job, job);
    }
    script.job(5, MAIN, EventKind::Edge, 2, 1);
    script.job(5, MAIN, EventKind::Ready, 3, 0);
    script.job(6, MAIN, EventKind::Ready, 1, 0);
    script
}

fn body(script: &mut Script, thread: u32, job: u64, begin: u64, end: u64) {
    script.job(begin, thread, EventKind::Begin, job, 0);
    script.job(end, thread, EventKind::End, job, 0);
    script.job(end, thread, EventKind::Completed, job, 0);
}

/// Goal: a waiter that spins still waits for its job: the path goes to the thread that ran it, before that to
/// the jobs it waited for, and to what was in the way of those. Method: two jobs and a third one in the way;
/// the worker is preempted once while the waiter spins on the other CPU.
#[test]
fn along_dependencies() {
    let mut script = graph();
    script.job(10, MAIN, EventKind::WaitBegin, 2, 0);
    body(&mut script, WORKER, 3, 8, 40);
    body(&mut script, WORKER, 1, 42, 60);
    script.job(60, WORKER, EventKind::Ready, 2, 0);
    body(&mut script, WORKER, 2, 63, 100);
    script.run(70, 1, OTHER);
    script.run(80, 1, WORKER);
    script.job(105, MAIN, EventKind::WaitEnd, 2, 0);
    let (timeline, explanation) = script.explain(200);
    let wait = &explanation.waits[0];
    assert_eq!(
        (wait.kind, &*wait.name, wait.length()),
        (WaitKind::Job, "second", Nanos(95))
    );
    assert_eq!(wait.awaited.unwrap().thread, Task(WORKER));
    assert_eq!(
        told(&timeline, wait),
        [
            "running 50 worker:",
            "queued_behind 30 worker:",
            "busy_wait_stolen 10 worker: main=5 other=5",
            "running 5 main:"
        ]
    );
    let behind = wait.causes[1].job.unwrap();
    assert_eq!(timeline.label(behind), Some("third"));
    assert_eq!(
        explanation.inversions[0].runner,
        crate::explain::Who::Task(Task(MAIN))
    );
}

/// Goal: a waiter that runs the job it waits for burns nothing, even while another part of that job could
/// run. Method: main runs the second piece of the awaited job while the worker, with the first piece, is
/// preempted.
#[test]
fn helping_is_no_busy_wait() {
    let mut script = graph();
    script.job(10, MAIN, EventKind::WaitBegin, 1, 0);
    script.job(12, WORKER, EventKind::Begin, 1, 0);
    script.job(15, MAIN, EventKind::Begin, 1, 0);
    script.run(20, 1, OTHER);
    script.job(50, MAIN, EventKind::End, 1, 0);
    script.run(60, 1, WORKER);
    script.job(70, WORKER, EventKind::End, 1, 0);
    script.job(70, WORKER, EventKind::Completed, 1, 0);
    script.job(70, MAIN, EventKind::WaitEnd, 1, 0);
    let (timeline, explanation) = script.explain(100);
    assert_eq!(
        told(&timeline, &explanation.waits[0]),
        [
            "preempted 30 worker: other=30",
            "running 20 worker:",
            "busy_wait_stolen 10 worker: main=5 other=5"
        ]
    );
}

/// Goal: a job without a body ends when the jobs that it waits for do, and the path goes to those; if it
/// waits for none, to the thread that ended it. Method: main waits for a barrier after job 1, then for an
/// event that another thread gives.
#[test]
fn jobs_without_bodies() {
    let mut script = graph();
    script.run(8, 1, OTHER);
    script.job(9, MAIN, EventKind::Created, 7, 0);
    script.job(9, MAIN, EventKind::Edge, 7, 1);
    script.job(10, MAIN, EventKind::WaitBegin, 7, 0);
    script.run(12, 1, WORKER);
    body(&mut script, WORKER, 1, 15, 60);
    script.job(61, WORKER, EventKind::Completed, 7, 0);
    script.job(62, MAIN, EventKind::WaitEnd, 7, 0);
    script.job(70, MAIN, EventKind::Created, 8, 0);
    script.job(71, MAIN, EventKind::WaitBegin, 8, 0);
    script.run(75, 1, OTHER);
    script.job(90, OTHER, EventKind::Completed, 8, 0);
    script.job(91, MAIN, EventKind::WaitEnd, 8, 0);
    let (timeline, explanation) = script.explain(100);
    let stolen = "busy_wait_stolen 2 worker: main=1 other=1";
    assert_eq!(
        told(&timeline, &explanation.waits[0]),
        ["running 49 worker:", stolen, "running 1 main:"]
    );
    assert_eq!(
        told(&timeline, &explanation.waits[1]),
        [
            "running 15 other:",
            "busy_wait_stolen 4 other: main=2 worker=2",
            "running 1 main:"
        ]
    );
}

/// Goal: a job that no thread is known to have run was not ready, or no thread ran it. Method: a wait that
/// times out.
#[test]
fn not_ready() {
    let mut script = Script::new(&["main", "worker"], 1);
    script.run(0, 0, MAIN);
    script.job(10, MAIN, EventKind::WaitBegin, 9, 0);
    script.job(15, MAIN, EventKind::Ready, 9, 0);
    script.job(60, MAIN, EventKind::WaitEnd, 9, 3);
    script.job(60, MAIN, EventKind::Completed, 9, 2);
    let (timeline, explanation) = script.explain(100);
    assert_eq!(
        told(&timeline, &explanation.waits[0]),
        ["not_ready 45 nobody:", "running 5 main:"]
    );
}

/// Goal: without a kernel's events the job system's own tell which threads slept and which woke them. Nothing
/// tells whether the others ran, and no cause says that they did. Method: a wait that parks, with the
/// worker's events only.
#[test]
fn without_a_kernel() {
    let mut script = graph();
    script.recording.kernel.clear();
    script.job(8, WORKER, EventKind::Unpark, 0, 0);
    script.job(10, MAIN, EventKind::WaitBegin, 1, 0);
    script.job(12, MAIN, EventKind::Park, 1, 0);
    body(&mut script, WORKER, 1, 20, 60);
    script.job(62, WORKER, EventKind::Wake, 0, MAIN.into());
    script.job(65, MAIN, EventKind::Unpark, 1, 0);
    script.job(66, MAIN, EventKind::WaitEnd, 1, 0);
    let (timeline, explanation) = script.explain(100);
    let wait = &explanation.waits[0];
    assert_eq!(
        told(&timeline, wait),
        [
            "awake 52 worker:",
            "wake_latency 3 main: unknown=3",
            "awake 1 main:"
        ]
    );
}

/// Goal: the job system's events happen where the kernel says that their threads ran; other ones are moved
/// and counted. Method: a body whose beginning and end were stamped a little too early and too late.
#[test]
fn clamped() {
    let mut script = graph();
    script.job(10, MAIN, EventKind::WaitBegin, 1, 0);
    script.sleep(20, 1, None);
    script.wake(40, None, WORKER);
    script.run(45, 1, WORKER);
    body(&mut script, WORKER, 1, 43, 92);
    script.sleep(90, 1, None);
    script.job(95, MAIN, EventKind::WaitEnd, 1, 0);
    let (timeline, explanation) = script.explain(100);
    assert_eq!(timeline.losses().get(Loss::Clamped), 3);
    let wait = &explanation.waits[0];
    assert_eq!(told(&timeline, wait)[0], "running 55 worker:");
    assert!(told(&timeline, wait).contains(&"running 5 main:".to_owned()));
}

/// Goal: frames and waits of our own are found by their names, a frame by its label, as slices are. So are
/// findings of an earlier explanation in the file, which are otherwise ignored. Method: a wait in a frame, a
/// slice and such a finding; each is asked for.
#[test]
fn by_name() {
    let mut script = graph();
    script.job(7, MAIN, EventKind::FrameBegin, 73, 0);
    script.job(10, MAIN, EventKind::WaitBegin, 2, 0);
    body(&mut script, WORKER, 1, 42, 60);
    script.job(60, WORKER, EventKind::Ready, 2, 0);
    body(&mut script, WORKER, 2, 63, 100);
    script.job(105, MAIN, EventKind::WaitEnd, 2, 0);
    script.job(110, MAIN, EventKind::FrameEnd, 73, 0);
    script.recording.labels.push("update".into());
    let label = script.recording.labels.len() as u64;
    script.job(112, MAIN, EventKind::FrameBegin, 74, 0);
    script.job(118, MAIN, EventKind::FrameEnd, 74, label << 32 | 1);
    script.slice(OTHER, "second thoughts", 20, 30);
    script.recording.annotations.push(Annotation {
        on: Some(Task(MAIN)),
        track: format!("{}waits", Annotation::FOUND),
        name: "wait for job: found before".into(),
        begin: Nanos(8),
        end: Nanos(108),
    });
    let timeline = script.timeline(200);
    let found = |texts: &[&str]| -> Vec<String> {
        let slices = texts.iter().map(|text| (*text).to_owned()).collect();
        let selection = Selection {
            slices,
            ..Selection::default()
        };
        let waits = explain(&timeline, &selection).waits.into_iter();
        waits.map(|wait| wait.name).collect()
    };
    assert_eq!(found(&["frame 7"]), ["frame 73"]);
    assert_eq!(found(&["second"]), ["second", "second thoughts"]);
    assert_eq!(found(&["found"]), ["wait for job: found before"]);
    assert_eq!(found(&["third"]), [""; 0]);
    assert_eq!(found(&[]), ["frame 73", "second", "update 74"]);
    let names: Vec<String> = names(&timeline).into_iter().collect();
    assert_eq!(
        names,
        [
            "frame 73",
            "second",
            "second thoughts",
            "update 74",
            "wait for job: found before"
        ]
    );
}
