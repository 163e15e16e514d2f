//! Timelines of small recordings.

use event::{Cpu, EventKind, KernelEventKind, Left, Nanos, Task};

use super::{Options, Since, State, Timeline, Who};
use crate::script::Script;
use crate::{Annotation, Loss, Wakers};

const PREEMPTED: State = State::Runnable(Since::Preempted);
const WOKEN: State = State::Runnable(Since::Woken);

fn states(timeline: &Timeline, task: u32) -> Vec<(u64, State)> {
    let stays = timeline.stays(Task(task));
    stays.map(|stay| (stay.begin.0, stay.state)).collect()
}

fn runs(timeline: &Timeline, cpu: u32) -> Vec<(u64, Who)> {
    let runs = timeline.runs(Cpu(cpu));
    runs.map(|(begin, _, who)| (begin.0, who)).collect()
}

/// Goal: the state before the first switch of a CPU is the one that this switch shows. Method: one switch.
#[test]
fn before_the_first_switch() {
    let mut script = Script::new(&["a", "b"], 1);
    script.recording.kernel.clear();
    script.kernel(5, 1, KernelEventKind::Frequency(1_000));
    let (prev, next) = (Some(Task(0)), Some(Task(1)));
    let state = Left::Sleeping;
    script.kernel(20, 0, KernelEventKind::Switch { prev, state, next });
    let timeline = script.timeline(30);
    let here = State::Running(Cpu(0));
    assert_eq!(states(&timeline, 0), [(5, here), (20, State::Sleeping)]);
    assert_eq!(states(&timeline, 1), [(5, State::Unknown), (20, here)]);
    assert_eq!(
        runs(&timeline, 0),
        [(5, Who::Task(Task(0))), (20, Who::Task(Task(1)))]
    );
    assert_eq!(runs(&timeline, 1), [(5, Who::Unknown)]);
    assert!(timeline.losses().is_empty());
}

/// Goal: where switches do not fit together, the newer one is right, the time between is unknown, and it is
/// counted. Method: a thread that leaves a CPU where another one was; one that appears on a second CPU; one
/// that continues after its end.
#[test]
fn contradictions() {
    let switch = |prev: Option<u32>, state, next: Option<u32>| KernelEventKind::Switch {
        prev: prev.map(Task),
        state,
        next: next.map(Task),
    };
    let mut script = Script::new(&["a", "b", "c"], 2);
    script.kernel(10, 0, switch(None, Left::Runnable, Some(0)));
    script.kernel(20, 0, switch(Some(1), Left::Runnable, Some(2)));
    let timeline = script.timeline(30);
    assert_eq!(timeline.losses().get(Loss::Contradictions), 1);
    let here = State::Running(Cpu(0));
    assert_eq!(
        states(&timeline, 0),
        [(0, State::Unknown), (10, here), (20, State::Unknown)]
    );
    assert_eq!(states(&timeline, 1), [(0, State::Unknown), (20, PREEMPTED)]);

    let mut script = Script::new(&["a", "b", "c"], 2);
    script.kernel(10, 0, switch(None, Left::Runnable, Some(0)));
    script.kernel(20, 1, switch(None, Left::Runnable, Some(0)));
    script.kernel(30, 1, switch(Some(0), Left::Dead, None));
    script.kernel(40, 1, switch(None, Left::Runnable, Some(0)));
    let timeline = script.timeline(50);
    assert_eq!(timeline.losses().get(Loss::Contradictions), 2);
    let a = Who::Task(Task(0));
    assert_eq!(
        runs(&timeline, 0),
        [(0, Who::Idle), (10, a), (20, Who::Unknown)]
    );
    assert_eq!(
        runs(&timeline, 1),
        [(0, Who::Idle), (20, a), (30, Who::Idle), (40, a)]
    );
}

/// Goal: a run of which only the end was recorded is found again where its beginning is told: by a wake-up
/// and an idle CPU, or by the thread's own events. Method: a thread that leaves an idle CPU after it was
/// woken, without jobs, with one soon after, with one long after; one that was preempted and has a job while
/// the other one is believed to run; one without a wake-up.
#[test]
fn switches_that_were_lost() {
    const MICRO: u64 = 1_000;
    const MILLI: u64 = 1_000_000;
    let out = KernelEventKind::Switch {
        prev: Some(Task(1)),
        state: Left::Sleeping,
        next: None,
    };
    let here = State::Running(Cpu(0));
    // The time of its first event after the wake-up, and the time at which it is taken to have begun.
    let cases = [
        (None, 0),
        (Some(150 * MICRO), 150 * MICRO),
        (Some(MILLI), 0),
    ];
    for (job, after) in cases {
        let mut script = Script::new(&["a", "b"], 1);
        script.run(10, 0, 0);
        script.sleep(20, 0, None);
        script.wake(MILLI, None, 1);
        if let Some(job) = job {
            script.job(MILLI + job, 1, EventKind::Claimed, 7, 0);
        }
        script.kernel(3 * MILLI, 0, out);
        let timeline = script.timeline(4 * MILLI);
        let begin = MILLI + after;
        let states = states(&timeline, 1);
        assert!(states.contains(&(begin, here)), "{job:?}: {states:?}");
        assert!(states.contains(&(MILLI, WOKEN)), "{states:?}");
        assert!(runs(&timeline, 0).contains(&(begin, Who::Task(Task(1)))));
        assert!(timeline.is_inferred(1, Nanos(begin)));
        assert_eq!(timeline.losses().get(Loss::FromIdle), 1);
        assert_eq!(timeline.losses().get(Loss::Contradictions), 0);
    }

    let mut script = Script::new(&["a", "b"], 1);
    script.run(10, 0, 1);
    script.leave(20, 0, Left::Runnable, Some(0));
    script.job(40, 1, EventKind::Claimed, 7, 0);
    script.kernel(50, 0, out);
    let timeline = script.timeline(60);
    let known = [(20, State::Unknown), (40, here), (50, State::Sleeping)];
    assert!(states(&timeline, 1).ends_with(&known));
    assert!(states(&timeline, 0).contains(&(40, State::Unknown)));
    assert_eq!(timeline.losses().get(Loss::Contradictions), 1);

    let mut script = Script::new(&["a", "b"], 1);
    script.run(10, 0, 1);
    script.sleep(20, 0, None);
    script.kernel(50, 0, out);
    let timeline = script.timeline(60);
    assert!(states(&timeline, 1).contains(&(20, State::Unknown)));
    assert_eq!(timeline.losses().get(Loss::Contradictions), 1);
}

/// Goal: from where events are missing until a CPU's next switch its thread is not known. Method: a gap while
/// a thread runs.
#[test]
fn gaps() {
    let mut script = Script::new(&["a", "b"], 1);
    script.run(10, 0, 0);
    script.kernel(20, 0, KernelEventKind::Lost { events: 7 });
    let switch = KernelEventKind::Switch {
        prev: Some(Task(1)),
        state: Left::Runnable,
        next: Some(Task(0)),
    };
    script.kernel(30, 0, switch);
    let timeline = script.timeline(40);
    let here = State::Running(Cpu(0));
    assert_eq!(
        states(&timeline, 0),
        [
            (0, State::Unknown),
            (10, here),
            (20, State::Unknown),
            (30, here)
        ]
    );
    // As it ran at the end of the gap, it is taken to have run in it.
    assert_eq!(
        states(&timeline, 1),
        [(0, State::Unknown), (20, here), (30, PREEMPTED)]
    );
    assert!(timeline.losses().is_empty());
}

/// Goal: a wake-up of a thread that runs or could run changes nothing; one that comes while its thread is
/// about to fall asleep counts if it turns out that there was no other. Method: each of them.
#[test]
fn early_wake_ups() {
    let mut script = Script::new(&["a", "b"], 2);
    script.run(10, 0, 0);
    script.wake(15, None, 0);
    script.run(20, 0, 1);
    script.wake(25, None, 0);
    script.run(30, 0, 0);
    let timeline = script.timeline(40);
    let here = State::Running(Cpu(0));
    assert_eq!(
        states(&timeline, 0),
        [(0, State::Unknown), (10, here), (20, PREEMPTED), (30, here)]
    );

    let mut script = Script::new(&["a", "b"], 2);
    script.run(10, 0, 0);
    script.run(10, 1, 1);
    script.wake(15, Some(1), 0);
    script.sleep(16, 0, None);
    script.run(20, 0, 0);
    let timeline = script.timeline(40);
    assert_eq!(
        states(&timeline, 0),
        [(0, State::Unknown), (10, here), (16, WOKEN), (20, here)]
    );
}

/// Goal: a thread may run where the kernel let it run since its CPUs were last changed: a thread that is
/// moved by "migration/N", for which it waits, has been given other CPUs. Method: a thread that pins itself,
/// as Linux traces it, and one that is moved while it could run.
#[test]
fn where_threads_may_run() {
    let mut script = Script::new(&["a", "migration/0"], 2);
    for thread in &mut script.recording.threads {
        thread.allowed = None;
    }
    let moved = |to| KernelEventKind::Migrate {
        task: Task(0),
        from: Cpu(1 - to),
        to: Cpu(to),
    };
    script.run(5, 1, 0);
    script.kernel(7, 1, moved(0));
    script.run(10, 0, 0);
    script.wake(20, Some(0), 1);
    script.leave(21, 0, Left::Blocked, Some(1));
    script.wake(22, Some(1), 0);
    script.kernel(23, 0, moved(1));
    script.sleep(24, 0, None);
    script.run(25, 1, 0);
    let timeline = script.timeline(40);
    let both = vec![Cpu(0), Cpu(1)];
    assert_eq!(timeline.allowed(Task(0), Nanos(15)), (both, false));
    assert_eq!(timeline.allowed(Task(0), Nanos(30)), (vec![Cpu(1)], false));
}

/// Goal: slices end as they began, inner ones first; slices without an end last until the end of the
/// recording, and ends without a beginning are left out; both are counted. An annotation about a thread is a
/// slice, too, but a finding of an explanation is not. Method: a few of each.
#[test]
fn slices() {
    let mut script = Script::new(&["a", "b"], 1);
    script.slice(1, "other", 12, 18);
    script.slice(0, "outer", 10, 30);
    script.slice(0, "inner", 15, 20);
    let open = script.recording.names.number("open");
    let mark = |time, what| crate::Mark {
        time: Nanos(time),
        on: Task(0),
        what,
    };
    script.recording.marks.push(mark(5, crate::MarkKind::End));
    script
        .recording
        .marks
        .push(mark(40, crate::MarkKind::Begin(open)));
    script.recording.annotations.push(Annotation {
        on: Some(Task(0)),
        track: "measured".into(),
        name: "found".into(),
        begin: Nanos(12),
        end: Nanos(18),
    });
    script.recording.annotations.push(Annotation {
        on: Some(Task(0)),
        track: format!("{}waits", Annotation::FOUND),
        name: "wait for what was explained before".into(),
        begin: Nanos(11),
        end: Nanos(19),
    });
    let timeline = script.timeline(50);
    let names = &timeline.recording().names;
    let slices = timeline.slices(Task(0)).iter();
    let found: Vec<_> = slices
        .map(|slice| (names.word(slice.name), slice.begin.0, slice.end.0))
        .collect();
    assert_eq!(
        found,
        [
            ("outer", 10, 30),
            ("found", 12, 18),
            ("inner", 15, 20),
            ("open", 40, 50)
        ]
    );
    let losses = timeline.losses();
    assert_eq!(
        (losses.get(Loss::Unbegun), losses.get(Loss::Unfinished)),
        (1, 1)
    );
}

/// Goal: events that are out of order are put in order, and counted. Method: the same recording backwards.
#[test]
fn order() {
    let play = |backwards: bool| {
        let mut script = Script::new(&["a", "b"], 1);
        script.run(10, 0, 0);
        script.run(20, 0, 1);
        script.sleep(30, 0, None);
        if backwards {
            script.recording.kernel.reverse();
        }
        Timeline::new(script.recording, &Options::default())
    };
    let (forwards, backwards) = (play(false), play(true));
    for task in [0, 1] {
        assert_eq!(states(&forwards, task), states(&backwards, task));
    }
    assert_eq!(backwards.losses().get(Loss::OutOfOrder), 3);
}

/// Goal: without wakers, an interrupt is not guessed. Method: a wake-up without a waker in recordings that
/// know wakers, know them by where threads are put on queues, and do not: on the CPU that the thread is put
/// on, where that may mean a wake-up by another CPU, and on another one.
#[test]
fn wakers() {
    for (wakers, target, kind) in [
        (Wakers::Decided, 0, "interrupt"),
        (Wakers::Decided, 1, "interrupt"),
        (Wakers::Queued, 0, "unknown"),
        (Wakers::Queued, 1, "interrupt"),
        (Wakers::Unknown, 0, "unknown"),
        (Wakers::Unknown, 1, "unknown"),
    ] {
        let mut script = Script::new(&["a", "b"], 2);
        script.recording.origin.wakers = wakers;
        script.run(10, 0, 0);
        script.sleep(20, 0, None);
        script.wake_for(30, None, 0, target);
        script.run(31, 0, 0);
        let timeline = script.timeline(40);
        let selection = crate::explain::Selection {
            threads: Some(vec![Task(0)]),
            ..Default::default()
        };
        let found = crate::explain::explain(&timeline, &selection);
        assert_eq!(found.waits[0].causes[0].kind.word(), kind);
    }
}

/// Goal: a stretch of a thread's or a CPU's time is a part of the whole. Method: every stretch between the
/// moments of a small recording, and beside them, against all stays and runs filtered.
#[test]
fn stretches_are_parts_of_the_whole() {
    let switch = |prev: Option<u32>, state, next: Option<u32>| KernelEventKind::Switch {
        prev: prev.map(Task),
        state,
        next: next.map(Task),
    };
    let mut script = Script::new(&["a", "b", "never"], 1);
    script.kernel(10, 0, switch(None, Left::Runnable, Some(0)));
    script.kernel(20, 0, switch(Some(0), Left::Runnable, Some(1)));
    script.kernel(30, 0, switch(Some(1), Left::Sleeping, Some(0)));
    script.kernel(30, 0, switch(Some(0), Left::Sleeping, None));
    let timeline = script.timeline(50);
    for (begin, end) in (0..60).flat_map(|begin| (begin + 1..60).map(move |end| (begin, end))) {
        let (begin, end) = (Nanos(begin), Nanos(end));
        let touches = |from: Nanos, to: Nanos| from < to && from < end && to > begin;
        for task in [0, 1, 2, 9].map(Task) {
            let all = timeline.stays(task);
            let all: Vec<_> = all.filter(|stay| touches(stay.begin, stay.end)).collect();
            let within = timeline.stays_within(task, begin, end);
            let within: Vec<_> = within.filter(|stay| stay.begin < stay.end).collect();
            assert_eq!(within, all, "{task:?} {begin} {end}");
        }
        let all = timeline.runs(Cpu(0));
        let all: Vec<_> = all.filter(|(from, to, _)| touches(*from, *to)).collect();
        let within = timeline.runs_within(Cpu(0), begin, end);
        let within: Vec<_> = within.filter(|(from, to, _)| from < to).collect();
        assert_eq!(within, all, "{begin} {end}");
    }
}

/// Goal: a CPU is offline from when it goes until it comes back, and before its first return. Method: one
/// that goes and returns, one that returns first, one without such events; stretches that begin or end
/// within.
#[test]
fn offline_times_are_told() {
    let mut script = Script::new(&["a"], 3);
    script.kernel(10, 0, KernelEventKind::Online(false));
    script.kernel(30, 0, KernelEventKind::Online(true));
    script.kernel(20, 1, KernelEventKind::Online(true));
    let timeline = script.timeline(50);
    let offline = |cpu, begin, end| -> Vec<(u64, u64)> {
        let parts = timeline.offline_within(Cpu(cpu), Nanos(begin), Nanos(end));
        parts.into_iter().map(|(from, to)| (from.0, to.0)).collect()
    };
    assert_eq!(offline(0, 0, 50), [(10, 30)]);
    assert_eq!(
        [offline(0, 15, 20), offline(0, 10, 40)],
        [[(15, 20)], [(10, 30)]]
    );
    assert_eq!(offline(1, 5, 50), [(5, 20)]);
    assert!(offline(0, 30, 50).is_empty() && offline(2, 0, 50).is_empty());
}
