//! A small recording for each inversion, and for each sign of one.

use event::{Cpu, FutexCall, KernelEventKind, Nanos, Task};

use crate::explain::{Confidence, Explanation, Inversion, InversionKind, Remedy, Who};
use crate::script::{Script, told};
use crate::timeline::Timeline;
use crate::{nice, realtime};

const UI: u32 = 0;
const WORKER: u32 = 1;
const HOG: u32 = 2;
const NAMES: [&str; 3] = ["ui", "worker", "hog"];

/// The inversions of the longest wait of the first thread.
fn of_ui(explanation: &Explanation) -> Vec<&Inversion> {
    let waits = &explanation.waits;
    let ui = waits.iter().position(|wait| wait.thread == Task(UI));
    let all = explanation.inversions.iter();
    all.filter(|inversion| Some(inversion.wait) == ui).collect()
}

/// The waiter, the awaited thread and the one that ran, in words.
fn words(timeline: &Timeline, inversion: &Inversion) -> String {
    let runner = match inversion.runner {
        Who::Task(task) => timeline.name(task),
        other => format!("{other:?}"),
    };
    let by: u64 = inversion.by.iter().map(|share| share.ns.0).sum();
    assert_eq!(by, inversion.ns.0);
    format!(
        "{}: {} waits for {}, {runner} ran {}, {}, {}",
        inversion.kind.word(),
        timeline.name(inversion.waiter),
        timeline.name(inversion.holder),
        inversion.ns.0,
        inversion.confidence.word(),
        inversion.remedies[0].word()
    )
}

/// The classic: a thread of high priority wants a lock that one of low priority holds, and one in between
/// runs.
fn classic(more: impl Fn(&mut Script)) -> (Timeline, Explanation) {
    let mut script = Script::new(&["high", "low", "middle"], 1);
    script.recording.threads[0].priority = realtime(50);
    script.recording.threads[1].priority = nice(0);
    script.recording.threads[2].priority = realtime(20);
    script.run(0, 0, 1);
    script.run(100, 0, 0);
    more(&mut script);
    script.sleep(110, 0, Some(1));
    script.run(150, 0, 2);
    script.sleep(950, 0, Some(1));
    script.wake(1_000, Some(1), 0);
    script.run(1_002, 0, 0);
    script.explain(1_100)
}

/// Goal: a lock is told by each of its signs: a marker, a futex that both named, a priority that was lent;
/// each as sure as it is. Without any of them a sleep is no lock. Method: the classic inversion with each.
#[test]
fn locks() {
    let found = |more: fn(&mut Script)| {
        let (timeline, explanation) = classic(more);
        let found = of_ui(&explanation);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!(found[0].priorities, [Some(49), Some(120), Some(79)]);
        let wait = &explanation.waits[found[0].wait];
        assert!(told(&timeline, wait).contains(&"preempted 800 low: middle=800".to_owned()));
        words(&timeline, found[0])
    };
    let lock = |sure: &str| {
        format!("lock: high waits for low, middle ran 800, {sure}, priority_inheritance")
    };
    let marker = |script: &mut Script| script.slice(0, "lock bus", 105, 1_005);
    let holder = |script: &mut Script| script.slice(1, "low holds bus", 10, 998);
    let futex = |script: &mut Script| {
        script.futex(0, FutexCall::Wait, 106, 1_003);
        script.futex(1, FutexCall::Wake, 999, 1_001);
    };
    assert_eq!(found(marker), lock("assumed"));
    assert_eq!(
        found(|script| {
            script.slice(0, "lock bus", 105, 1_005);
            script.slice(1, "low holds bus", 10, 998);
        }),
        lock("inferred")
    );
    assert_eq!(
        found(|script| {
            script.slice(0, "lock bus", 105, 1_005);
            script.futex(0, FutexCall::Wait, 106, 1_003);
            script.futex(1, FutexCall::Wake, 999, 1_001);
        }),
        lock("known")
    );
    assert_eq!(
        found(|script| script.futex(0, FutexCall::LockPi, 106, 1_003)),
        lock("known")
    );
    // Android's runtime names the owner, which has to be the waker: number 101 is.
    assert_eq!(
        found(|script| script.slice(0, "Lock contention on a lock (owner tid: 101)", 105, 1_005)),
        lock("known")
    );
    assert_eq!(
        found(|script| script.slice(0, "monitor contention with owner x (102)", 105, 1_005)),
        lock("assumed")
    );
    let none = "preemption: high waits for low, middle ran 800, known, fewer_threads";
    assert_eq!(found(|_| ()), none);
    // A futex alone may be a condition, and a marker alone may be about another lock.
    let (timeline, explanation) = classic(futex);
    assert_eq!(words(&timeline, of_ui(&explanation)[0]), none);
    let (timeline, explanation) = classic(holder);
    assert_eq!(words(&timeline, of_ui(&explanation)[0]), none);
}

/// Goal: a lent priority shows the lock, whether it was given back just before the wake-up or after it, and
/// priorities are those of the moment. Method: the classic, with the loan's end at both places.
#[test]
fn lent_priorities() {
    for back in [999, 1_001] {
        let (timeline, explanation) = classic(|script| {
            let task = Task(1);
            let lend = |priority, lent| KernelEventKind::Priority {
                task,
                priority,
                lent,
            };
            script.kernel(108, 0, lend(49, true));
            script.kernel(back, 0, lend(120, false));
        });
        let found = of_ui(&explanation);
        assert_eq!(found[0].kind, InversionKind::Lock, "given back at {back}");
        assert_eq!(found[0].priorities, [Some(49), Some(49), Some(79)]);
        let priority = timeline.priority(Task(1), Nanos(500)).unwrap();
        assert_eq!((priority.own, priority.now), (120, 49));
    }
}

/// Goal: a simulated kernel names the lender; a thread that inherits twice has the better of the two, and
/// gives all of it back. Method: a loan of one thread's priority.
#[test]
fn inherited_priorities() {
    let (timeline, explanation) = classic(|script| {
        let task = Task(1);
        let inherit = |from| KernelEventKind::Inherit { task, from };
        script.kernel(108, 0, inherit(Some(Task(0))));
        script.kernel(1_001, 0, inherit(None));
    });
    assert_eq!(of_ui(&explanation)[0].kind, InversionKind::Lock);
    let lent = timeline.priority(Task(1), Nanos(500)).unwrap();
    assert_eq!((lent.now, lent.lender), (49, Some(Task(0))));
    let after = timeline.priority(Task(1), Nanos(1_050)).unwrap();
    assert_eq!((after.now, after.lender), (120, None));
}

/// One CPU, on which a thread spins until another one has done something.
fn spinning(name: &str, more: impl Fn(&mut Script)) -> (Timeline, Explanation) {
    let mut script = Script::new(&NAMES, 1);
    script.run(0, 0, UI);
    script.wake(5, Some(UI), WORKER);
    script.slice(UI, name, 10, 980);
    script.run(300, 0, WORKER);
    script.run(400, 0, HOG);
    script.run(600, 0, UI);
    script.run(900, 0, WORKER);
    more(&mut script);
    script.sleep(960, 0, Some(UI));
    script.explain(1_000)
}

/// Goal: a thread that spins until another one has done something keeps that one from running. Method: one
/// CPU; the awaited thread is told by a request, a slice, or the wake-up before.
#[test]
fn busy_waits() {
    let causes = [
        "busy_wait_stolen 590 worker: ui=590",
        "preempted 200 worker: hog=200",
    ];
    let found = |confidence: Confidence, (timeline, explanation): (Timeline, Explanation)| {
        let wait = &explanation.waits[0];
        assert_eq!(&told(&timeline, wait)[..2], causes);
        let awaited = wait.awaited.unwrap();
        assert_eq!(
            (awaited.thread, awaited.confidence),
            (Task(WORKER), confidence)
        );
        let sure = confidence.word();
        let found = of_ui(&explanation);
        assert_eq!(
            words(&timeline, found[0]),
            format!("busy_wait: ui waits for worker, ui ran 590, {sure}, park")
        );
        assert_eq!(
            words(&timeline, found[1]),
            format!("preemption: ui waits for worker, hog ran 200, {sure}, fewer_threads")
        );
    };
    let request = |script: &mut Script| script.request(UI, 8, WORKER, 950);
    found(Confidence::Inferred, spinning("wait for job", request));
    let slice = |script: &mut Script| script.slice(WORKER, "job", 310, 950);
    found(Confidence::Assumed, spinning("WaitForJobGroupID", slice));
    found(Confidence::Assumed, spinning("wait", |_| ()));
}

/// Goal: work is no wait: a slice whose name does not mean a wait is explained as work. Method: the same
/// recording with another name, asked for by name.
#[test]
fn work_is_no_wait() {
    let (timeline, _) = spinning("draw", |script| script.request(UI, 8, WORKER, 950));
    let mut selection = crate::explain::Selection {
        slices: vec!["draw".into()],
        ..Default::default()
    };
    let explanation = crate::explain::explain(&timeline, &selection);
    assert_eq!(told(&timeline, &explanation.waits[0])[0], "running 610 ui:");
    // Unless the user says that it is one.
    selection.busy = vec!["dra".into()];
    let explanation = crate::explain::explain(&timeline, &selection);
    assert_eq!(
        told(&timeline, &explanation.waits[0])[0],
        "busy_wait_stolen 590 worker: ui=590"
    );
}

/// Goal: a thread whose CPU was taken is told with what took it, and that another CPU was idle: to move is
/// the first remedy. Where its queue is not known, it is badly placed. Method: two CPUs; the worker stays in
/// the queue of the one that the hog has, or is moved where it does not run next.
#[test]
fn placement() {
    for (is_odd, expected) in [
        (
            false,
            "preemption: ui waits for worker, hog ran 300, known, move_away",
        ),
        (
            true,
            "placement: ui waits for worker, Idle ran 300, known, move_away",
        ),
    ] {
        let mut script = Script::new(&NAMES, 2);
        script.run(0, 0, UI);
        script.sleep(100, 0, Some(WORKER));
        script.run(200, 0, HOG);
        if is_odd {
            script.migrate(300, WORKER, 0, 1);
        }
        script.run(500, 0, WORKER);
        script.wake(600, Some(WORKER), UI);
        script.sleep(600, 0, Some(UI));
        let (timeline, explanation) = script.explain(700);
        let found = of_ui(&explanation);
        assert_eq!(words(&timeline, found[0]), expected);
        assert_eq!(found.len(), 1);
    }
}

/// Goal: where no CPU was busy, the remedy is CPUs that wake up sooner. Method: the worker is woken for the
/// CPU that it had left, and both CPUs idle until it begins.
#[test]
fn a_cpu_that_is_slow_to_wake_up() {
    let mut script = Script::new(&NAMES, 2);
    script.run(0, 0, UI);
    script.run(0, 1, WORKER);
    script.sleep(50, 1, None);
    script.wake_for(100, Some(UI), WORKER, 1);
    script.sleep(100, 0, None);
    script.run(500, 1, WORKER);
    script.wake(600, Some(WORKER), UI);
    script.sleep(600, 1, None);
    script.run(605, 0, UI);
    let (timeline, explanation) = script.explain(700);
    assert_eq!(
        words(&timeline, of_ui(&explanation)[0]),
        "idle_exit: ui waits for worker, Idle ran 400, known, lighter_sleep"
    );
}

/// Goal: a lent priority is no remedy where no thread is in the way of a lock's owner. Method: an interrupt
/// wakes the owner, and both CPUs idle until it runs.
#[test]
fn a_lock_beside_idle_cpus() {
    let mut script = Script::new(&["high", "low"], 2);
    script.run(0, 1, 1);
    script.sleep(50, 1, None);
    script.run(100, 0, 0);
    script.slice(0, "lock bus", 105, 1_005);
    script.sleep(110, 0, None);
    script.wake(150, None, 1);
    script.run(900, 1, 1);
    script.wake(1_000, Some(1), 0);
    script.sleep(1_001, 1, None);
    script.run(1_002, 0, 0);
    let (timeline, explanation) = script.explain(1_100);
    assert_eq!(
        words(&timeline, of_ui(&explanation)[0]),
        "lock: high waits for low, Idle ran 750, assumed, lighter_sleep"
    );
}

/// Goal: short delays are not reported. Method: the same recording with a longer least time.
#[test]
fn short_delays() {
    let (timeline, _) = classic(|script| script.slice(0, "lock bus", 105, 1_005));
    let count = |least: u64| {
        let selection = crate::explain::Selection {
            least: Nanos(least),
            ..Default::default()
        };
        crate::explain::explain(&timeline, &selection)
            .inversions
            .len()
    };
    assert_eq!((count(1), count(3), count(800), count(801)), (2, 1, 1, 0));
}

/// Goal: a better priority is no remedy for a thread that has it, nor against a thread that has the best of
/// all: then it is a real-time class, or fewer threads. Method: a thread of one program loses its CPU to one
/// of another, with priorities of each sort.
#[test]
fn a_better_priority_is_a_remedy_where_it_would_be_better() {
    let found = |priorities: [i32; 2]| {
        let mut script = Script::new(&["ui", "hog"], 1);
        for (thread, priority) in priorities.into_iter().enumerate() {
            script.recording.threads[thread].priority = priority;
            script.recording.threads[thread].process = None;
        }
        script.run(0, 0, 0);
        script.slice(0, "wait for job", 10, 980);
        script.run(300, 0, 1);
        script.run(700, 0, 0);
        let (_, explanation) = script.explain(1_000);
        let found = of_ui(&explanation);
        assert_eq!((found.len(), found[0].queue), (1, Some(Cpu(0))));
        assert_eq!(found[0].kind, InversionKind::Preemption);
        found[0].remedies.clone()
    };
    let (better, fewer) = (Remedy::SamePriority, Remedy::FewerThreads);
    for (priorities, expected) in [
        ([nice(0), nice(0)], vec![better]),
        ([nice(0), nice(-10)], vec![better]),
        ([nice(0), realtime(50)], vec![better]),
        ([nice(-10), nice(0)], vec![Remedy::RealtimeClass, fewer]),
        ([realtime(10), nice(0)], vec![fewer]),
        ([realtime(50), realtime(10)], vec![fewer]),
        ([nice(-10), realtime(99)], vec![fewer]),
    ] {
        assert_eq!(found(priorities), expected, "{priorities:?}");
    }
}
