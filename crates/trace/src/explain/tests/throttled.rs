//! Threads that a quota of CPU time keeps from running: told, or found out.

use event::{Cpu, KernelEventKind, Nanos, Task};

use super::causes::lines;
use crate::Clock;
use crate::explain::{Confidence, Explanation, InversionKind, Remedy};
use crate::script::Script;
use crate::timeline::{Since, Spent, State, Timeline};

const UI: u32 = 0;
const WORKER: u32 = 1;
const HOG: u32 = 2;
const NAMES: [&str; 3] = ["ui", "worker", "hog"];

/// A worker that is put aside while it runs, and a waiter that is woken while it is put aside.
fn told() -> Script {
    let mut script = Script::new(&NAMES, 1);
    script.run(0, 0, UI);
    script.sleep(100, 0, Some(WORKER));
    script.throttle(150, WORKER, true);
    script.leave(150, 0, event::Left::Runnable, None);
    script.throttle(250, WORKER, false);
    script.run(252, 0, WORKER);
    script.throttle(290, UI, true);
    script.wake(300, Some(WORKER), UI);
    script.sleep(310, 0, None);
    script.throttle(400, UI, false);
    script.run(405, 0, UI);
    script
}

/// Goal: time for which a thread is put aside, as the recording tells, is a cause of its own, known; its
/// waits for a turn before and after are not. Method: a thread that is put aside while it runs and one that
/// is woken while it is, with times chosen by hand.
#[test]
fn what_is_told_is_known() {
    let found = told().explain(500);
    assert_eq!(
        lines(&found, 0),
        [
            "throttled 100 ui: idle=90 worker=10",
            "throttled 100 worker: idle=100",
            "running 98 worker:",
            "idle_exit 5 ui: idle=5",
            "idle_exit 2 worker: idle=2",
        ]
    );
    let (timeline, explanation) = found;
    let causes = &explanation.waits[0].causes;
    assert!(
        causes
            .iter()
            .all(|cause| cause.confidence == Confidence::Known)
    );
    let worker: Vec<State> = timeline
        .stays(Task(WORKER))
        .map(|stay| stay.state)
        .collect();
    let here = State::Running(Cpu(0));
    assert_eq!(
        worker[1..],
        [
            here,
            State::Throttled(Since::Preempted),
            State::Runnable(Since::Preempted),
            here,
            State::Sleeping
        ]
    );
    let quota = explanation.inversions.iter();
    let mut quota = quota.filter(|one| one.kind == InversionKind::Throttled);
    let first = quota.next().expect("an inversion");
    assert_eq!(first.remedies, [Remedy::RaiseQuota, Remedy::FitQuota]);
}

/// Goal: a thread that is put aside has lost its CPU once, and its times sum up. Method: the same recording.
#[test]
fn to_be_put_aside_is_one_preemption() {
    let timeline = told().timeline(500);
    let expected = Spent {
        running: Nanos(108),
        runnable: Nanos(102),
        throttled: Nanos(100),
        preempted: Nanos(102),
        sleeping: Nanos(190),
        voluntary: 1,
        involuntary: 1,
        ..Spent::default()
    };
    assert_eq!(timeline.spent(Task(WORKER)), expected);
    assert_eq!(timeline.preemptions(Task(WORKER)), 1);
    let within = |begin, end| timeline.preemptions_in(WORKER, (Nanos(begin), Nanos(end)));
    assert_eq!([within(140, 160), within(200, 300)], [1, 0]);
    assert_eq!(timeline.spent(Task(UI)).throttled, Nanos(100));
}

/// Goal: contradictory events do no harm: a running thread is not put aside, an end without a beginning is
/// nothing. Method: such events.
#[test]
fn odd_events() {
    let mut script = Script::new(&NAMES, 1);
    script.throttle(5, WORKER, false);
    script.run(10, 0, WORKER);
    script.throttle(20, WORKER, true);
    script.throttle(21, WORKER, true);
    script.leave(30, 0, event::Left::Runnable, Some(HOG));
    script.run(40, 0, WORKER);
    script.run(50, 0, HOG);
    let timeline = script.timeline(60);
    let states: Vec<State> = timeline
        .stays(Task(WORKER))
        .map(|stay| stay.state)
        .collect();
    let here = State::Running(Cpu(0));
    let aside = State::Throttled(Since::Preempted);
    let ready = State::Runnable(Since::Preempted);
    assert_eq!(states, [State::Unknown, here, aside, here, ready]);
}

/// Goal: an idle CPU on which others of a thread's group are put aside is not one that the thread could have
/// used, unless it is of no such group. Method: the worker waits behind the hog while the other CPU is idle,
/// where a thread is put aside for the first half of that.
#[test]
fn a_cpu_without_time_left_is_not_idle() {
    let play = |worker_is_rationed: bool| {
        let mut script = Script::new(&["ui", "worker", "hog", "other"], 2);
        if worker_is_rationed {
            script.throttle(1, WORKER, true);
            script.throttle(2, WORKER, false);
        }
        script.run(5, 1, 3);
        script.run(10, 0, UI);
        let other = |begins| KernelEventKind::Throttle {
            task: Task(3),
            begins,
        };
        script.kernel(90, 1, other(true));
        script.leave(90, 1, event::Left::Runnable, None);
        script.sleep(100, 0, Some(WORKER));
        script.run(200, 0, HOG);
        script.kernel(300, 1, other(false));
        script.run(400, 0, WORKER);
        script.wake(500, Some(WORKER), UI);
        script.sleep(500, 0, Some(UI));
        let (_, explanation) = script.explain(600);
        let wait = explanation
            .waits
            .iter()
            .find(|wait| wait.thread == Task(UI))
            .unwrap();
        let segments = wait.segments.iter();
        let segments =
            segments.filter_map(|one| Some((one.inversion?, one.beside_idle, one.length().0)));
        segments.collect::<Vec<_>>()
    };
    use InversionKind::Preemption;
    assert_eq!(
        play(true),
        [(Preemption, false, 100), (Preemption, true, 100)]
    );
    assert_eq!(play(false), [(Preemption, true, 200)]);
}

/// A change of a recording.
type Play = fn(&mut Script);

/// In nanoseconds.
const MS: u64 = 1_000_000;

/// Two CPUs; the second has something to do all the time. The worker runs on the first, is told to leave, and
/// runs there again 10 ms later; nothing else is there to do.
fn beside(more: impl Fn(&mut Script)) -> (Timeline, Explanation) {
    let mut script = Script::new(&["ui", "worker", "hog", "other"], 2);
    script.run(0, 1, HOG);
    script.migrate(0, HOG, 0, 1);
    script.run(0, 0, UI);
    script.sleep(MS, 0, Some(WORKER));
    more(&mut script);
    script.run(12 * MS, 0, WORKER);
    script.wake(13 * MS, Some(WORKER), UI);
    script.sleep(13 * MS, 0, Some(UI));
    script.explain(14 * MS)
}

fn goes_idle(script: &mut Script) {
    script.leave(2 * MS, 0, event::Left::Runnable, None);
}

/// The worker sleeps, and an interrupt wakes it on its CPU, which is idle.
fn is_woken(script: &mut Script) {
    script.sleep(MS + MS / 2, 0, None);
    script.wake(2 * MS, None, WORKER);
}

/// The verdict on the time from 2 ms to 12 ms: the causes, how sure they are, and the inversion.
fn verdict((timeline, explanation): &(Timeline, Explanation)) -> String {
    let wait = explanation
        .waits
        .iter()
        .find(|wait| wait.thread == Task(UI))
        .expect("it waits");
    let mut words = Vec::new();
    for segment in &wait.segments {
        let is_in = segment.begin >= Nanos(2 * MS) && segment.end <= Nanos(12 * MS);
        if is_in
            && segment
                .thread
                .is_some_and(|task| timeline.name(task) == "worker")
        {
            let (length, kind) = (segment.length().0 / 1000, segment.kind.word());
            let inversion = segment.inversion.map_or("none", InversionKind::word);
            let sure = segment.confidence.word();
            words.push(format!("{kind} {length} {inversion} {sure}"));
        }
    }
    words.join(", ")
}

fn check_verdicts(table: &[(&str, Play, &str)]) {
    for (about, more, expected) in table {
        assert_eq!(verdict(&beside(*more)), *expected, "{about}");
    }
}

/// Goal: a thread beside its own CPU, which goes idle for long, is taken to be throttled, and only there.
/// Method: a table of the other threads that can run there in between.
#[test]
fn an_idle_cpu_of_its_own_tells() {
    check_verdicts(&[
        (
            "it loses its CPU to nobody",
            goes_idle,
            "throttled 10000 throttled assumed",
        ),
        (
            "another program's thread runs in between",
            |script| {
                goes_idle(script);
                script.run(5 * MS, 0, 3);
                script.sleep(6 * MS, 0, None);
            },
            "throttled 3000 throttled assumed, preempted 1000 preemption known, \
             throttled 6000 throttled assumed",
        ),
        (
            "another program's thread runs first",
            |script| {
                script.run(2 * MS, 0, 3);
                script.sleep(6 * MS, 0, None);
            },
            "preempted 4000 preemption known, throttled 6000 throttled assumed",
        ),
        (
            "its CPU is gone",
            |script| {
                script.kernel(2 * MS, 0, KernelEventKind::Online(false));
                goes_idle(script);
                script.kernel(12 * MS - 1, 0, KernelEventKind::Online(true));
            },
            "preempted 9999 preemption known, preempted 0 placement known",
        ),
    ]);
}

/// Goal: an idle CPU tells nothing of a thread that was moved or woken meanwhile. Method: a table of moves
/// and wake-ups in between.
#[test]
fn a_cpu_that_is_not_its_own_any_more_tells_nothing() {
    check_verdicts(&[
        (
            "it is moved to a CPU that is busy, and back",
            |script| {
                goes_idle(script);
                script.migrate(2 * MS, WORKER, 0, 1);
                script.migrate(12 * MS, WORKER, 1, 0);
            },
            "preempted 10000 preemption known",
        ),
        (
            "it is moved and nothing says that it came back",
            |script| {
                goes_idle(script);
                script.migrate(2 * MS, WORKER, 0, 1);
            },
            "preempted 10000 placement known",
        ),
        (
            "it is woken in between: it was asleep",
            |script| {
                goes_idle(script);
                script.wake(11 * MS, None, WORKER);
            },
            "preempted 10000 placement known",
        ),
        (
            "it is woken, and its CPU does nothing: it may be slow",
            is_woken,
            "idle_exit 10000 idle_exit assumed",
        ),
        (
            "it is woken, and its CPU goes back to sleep",
            |script| {
                is_woken(script);
                script.kernel(2 * MS + 10, 0, KernelEventKind::Idle(Some(1)));
            },
            "throttled 10000 throttled assumed",
        ),
    ]);
}

/// Removes the events that say which threads were moved.
fn unmoved(script: &mut Script) {
    let moves = |event: &event::KernelEvent| matches!(event.what, KernelEventKind::Migrate { .. });
    script.recording.kernel.retain(|event| !moves(event));
}

/// Goal: nothing is said of a quota where no event says which threads were moved, where it is not for long,
/// or where the recording is of a simulated kernel, which would say so. Where all CPUs are idle for long, a
/// quota is in doubt. Method: the same recording, changed.
#[test]
fn nothing_is_made_up() {
    let without = |change: fn(&mut Script)| {
        verdict(&beside(|script| {
            goes_idle(script);
            change(script);
        }))
    };
    let table: [(Play, &str); 4] = [
        (unmoved, "preempted 10000 placement known"),
        (
            |script| {
                unmoved(script);
                script.sleep(2 * MS, 1, None);
            },
            "preempted 10000 placement assumed",
        ),
        (
            |script| script.recording.origin.clock = Clock::Virtual,
            "preempted 10000 placement known",
        ),
        (
            |script| script.run(3 * MS - 1, 0, WORKER),
            "preempted 999 placement known",
        ),
    ];
    for (change, expected) in table {
        assert_eq!(without(change), expected);
    }
    let found = beside(|script| {
        is_woken(script);
        script.sleep(2 * MS, 1, None);
    });
    let exits = found.1.inversions.iter();
    let mut exits = exits.filter(|one| one.kind == InversionKind::IdleExit);
    let remedies = &exits.next().expect("one").remedies;
    assert_eq!(remedies, &[Remedy::LighterSleep, Remedy::RaiseQuota]);
}
