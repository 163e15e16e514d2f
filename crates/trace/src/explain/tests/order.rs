//! Which waits come first.

use event::{Nanos, Task};

use crate::explain::{Selection, WaitKind, explain};
use crate::script::{Script, check};
use crate::{Annotation, Counter};

const MS: u64 = 1_000_000;

fn note(thread: u32, name: &str, begin: u64, end: u64) -> Annotation {
    Annotation {
        on: Some(Task(thread)),
        track: "frame timeline".into(),
        name: name.into(),
        begin: Nanos(begin * MS),
        end: Nanos(end * MS),
    }
}

/// The names of the waits, with how late each was in milliseconds.
fn order(script: Script, selection: &Selection) -> Vec<String> {
    let timeline = script.timeline(200 * MS);
    let explanation = explain(&timeline, selection);
    let told = explanation.waits.iter().map(|wait| {
        check(wait);
        match wait.late {
            Some(late) => format!("{} +{}", wait.name, late.0 / MS),
            None => wait.name.clone(),
        }
    });
    told.collect()
}

/// Goal: frames that missed their deadline come first, by how much; then those of the display's server, then
/// frames and waits by length, and waits of drivers last, however long they are. Plans are no waits, unless
/// they are asked for. Method: a frame timeline of a program and of the server beside longer waits.
#[test]
fn late_frames_first() {
    let script = || {
        let mut script = Script::new(&["app", "surfaceflinger", "crtc_commit:1"], 2);
        script.run(0, 0, 0);
        script.recording.annotations = vec![
            note(0, "frame timeline 7, expected", 10, 20),
            note(0, "frame timeline 7, late, App Deadline Missed", 10, 25),
            note(0, "frame timeline 8, expected", 30, 40),
            note(0, "frame timeline 8", 30, 39),
            note(0, "frame timeline 9, expected", 50, 60),
            note(0, "frame timeline 9, late, Buffer Stuffing", 55, 67),
            note(1, "frame timeline 7, expected", 10, 12),
            note(1, "frame timeline 7, dropped", 10, 90),
        ];
        script.slice(0, "wait for job", 100 * MS, 130 * MS);
        script.slice(0, "doFrame", 140 * MS, 150 * MS);
        script.slice(1, "wait for vsync", 100 * MS, 190 * MS);
        script.slice(2, "wait for fence", 1, 199 * MS);
        script
    };
    assert_eq!(
        order(script(), &Selection::default()),
        [
            "frame timeline 9, late, Buffer Stuffing +7",
            "frame timeline 7, late, App Deadline Missed +5",
            "frame timeline 7, dropped +78",
            "wait for job",
            "doFrame",
            "wait for fence",
            "wait for vsync",
        ]
    );
    let named = |text: &str| Selection {
        slices: vec![text.into()],
        ..Selection::default()
    };
    let all = order(script(), &named("frame timeline"));
    assert_eq!(all.len(), 4);
    assert_eq!(order(script(), &named("expected")).len(), 4);
}

/// Goal: without a frame timeline the display's period tells which frames are late. Method: pulses of the
/// display every 10 ms, frames of 9 and of 13 ms, and a longer wait.
#[test]
fn frames_longer_than_a_period_are_late() {
    let script = |pulses: u64| {
        let mut script = Script::new(&["app"], 1);
        script.run(0, 0, 0);
        script.recording.counters.push(Counter {
            name: "VSYNC-app".into(),
            unit: String::new(),
            process: None,
            values: (0..pulses)
                .map(|at| (Nanos(at * 10 * MS), (at % 2) as i64))
                .collect(),
        });
        script.slice(0, "doFrame 1", 10 * MS, 19 * MS);
        script.slice(0, "doFrame 2", 20 * MS, 33 * MS);
        script.slice(0, "wait for job", 40 * MS, 70 * MS);
        script
    };
    assert_eq!(
        order(script(10), &Selection::default()),
        ["doFrame 2 +3", "wait for job", "doFrame 1"]
    );
    assert_eq!(
        order(script(2), &Selection::default()),
        ["wait for job", "doFrame 2", "doFrame 1"]
    );
}

/// Goal: where sleeps are all there is, those of daemons and of the kernel's threads are left out and
/// counted; without others there are turns, and if there are none either, those sleeps. Method: a thread that
/// works half of the time, one that hardly ever does, and one of the kernel's, all woken by a fourth one.
#[test]
fn sleeps_of_daemons_are_left_out() {
    let play = |names: &[&str]| {
        let mut script = Script::new(names, 2);
        script.run(0, 1, 3);
        for round in 0..10 {
            let at = round * 20 * MS;
            for (thread, from, length) in
                [(0, 1, 10 * MS), (1, 12 * MS, 1_000), (2, 13 * MS, 5 * MS)]
            {
                script.wake(at + from, Some(3), thread);
                script.run(at + from + 1, 0, thread);
                script.sleep(at + from + length, 0, None);
            }
        }
        let timeline = script.timeline(200 * MS);
        let explanation = explain(&timeline, &Selection::default());
        let waits = explanation.waits.iter();
        let mut of: Vec<_> = waits
            .map(|wait| format!("{} of {}", wait.name, timeline.name(wait.thread)))
            .collect();
        of.sort_unstable();
        of.dedup();
        (of, explanation.omitted)
    };
    let (of, omitted) = play(&["ui", "adbd", "kworker/0:1", "waker"]);
    assert_eq!((of, omitted > 10), (vec!["sleep of ui".to_owned()], true));
    let (of, omitted) = play(&["rcu_preempt", "adbd", "kworker/0:1", "waker"]);
    assert_eq!((of, omitted > 10), (vec!["turn of adbd".to_owned()], true));
    let (of, omitted) = play(&["rcu_preempt", "irq/7", "kworker/0:1", "waker"]);
    assert_eq!((of.len(), omitted), (3, 0));
}

/// Goal: the recorder's wait for the recorded program is no finding, and that program comes before others
/// that wait longer. Without those facts the longest wait is first. Method: a recorder that waits for a
/// program, and a foreign thread that sleeps longer than the program's; then the recorder is asked for.
#[test]
fn the_recorded_program_comes_first() {
    let script = |is_told: bool| {
        let mut script = Script::new(&["recorder", "program", "waker", "foreign"], 4);
        for (thread, cpu) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            script.run(0, cpu, thread);
            let pid = Some(thread + 500);
            script.recording.processes.push(crate::Process {
                pid,
                ..crate::Process::new(format!("{thread}"))
            });
            script.recording.threads[thread as usize].process = Some(thread as usize + 1);
        }
        if is_told {
            script.recording.origin.recorder = Some(500);
            script.recording.origin.recorded = [501].into();
        }
        for (thread, from, to) in [(1, 20, 40), (3, 30, 60), (0, 10, 90)] {
            script.sleep(from * MS, thread, None);
            script.wake(to * MS, Some(2), thread);
            script.run(to * MS, thread, thread);
        }
        let by_time = |event: &event::KernelEvent| event.time;
        script.recording.kernel.sort_by_key(by_time);
        script
    };
    let found = |is_told, threads| {
        let timeline = script(is_told).timeline(100 * MS);
        let selection = Selection {
            threads,
            ..Selection::default()
        };
        let waits = explain(&timeline, &selection).waits;
        waits.iter().map(|wait| wait.thread.0).collect::<Vec<u32>>()
    };
    assert_eq!(found(true, None), [1, 3]);
    assert_eq!(found(false, None), [0, 3, 1]);
    assert_eq!(found(true, Some(vec![Task(0)])), [0]);
}

/// Goal: a recorded program that never sleeps is told, too, from its beginning to its end, whether or not it
/// lost its CPU; a foreign thread of that kind is not. Method: a program and a foreign thread that only run,
/// beside one that sleeps and is woken.
#[test]
fn a_recorded_program_that_only_runs_is_told() {
    let mut script = Script::new(&["program", "foreign", "sleeper", "waker"], 4);
    script.recording.origin.recorded = [100].into();
    script.run(10 * MS, 0, 0);
    script.run(10 * MS, 1, 1);
    script.run(10 * MS, 2, 2);
    script.run(10 * MS, 3, 3);
    script.sleep(20 * MS, 2, None);
    script.wake(40 * MS, Some(3), 2);
    script.run(40 * MS, 2, 2);
    script.leave(70 * MS, 0, event::Left::Dead, None);
    script.leave(70 * MS, 1, event::Left::Dead, None);
    let timeline = script.timeline(100 * MS);
    let waits = explain(&timeline, &Selection::default()).waits;
    let told: Vec<_> = waits
        .iter()
        .map(|wait| (wait.thread.0, wait.kind, wait.length().0 / MS))
        .collect();
    assert_eq!(told, [(0, WaitKind::Turn, 60), (2, WaitKind::Sleep, 20)]);
}
