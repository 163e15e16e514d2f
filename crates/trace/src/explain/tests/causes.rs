//! A small recording for each cause.

use event::{Cpu, KernelEventKind, Left, Nanos, Task};

use crate::explain::{CauseKind, Confidence, Explanation, Selection, WaitKind, explain};
use crate::script::{Script, check, told};
use crate::timeline::Timeline;

pub(super) const UI: u32 = 0;
pub(super) const WORKER: u32 = 1;
pub(super) const HOG: u32 = 2;
pub(super) const NAMES: [&str; 3] = ["ui", "worker", "hog"];

pub(super) fn longest(told_by: &(Timeline, Explanation)) -> Vec<String> {
    told(&told_by.0, &told_by.1.waits[0])
}

/// Goal: a sleeping thread waits for its waker, which was preempted in between; its own wake-up comes last.
/// Method: one CPU, times chosen by hand.
#[test]
fn preempted() {
    let mut script = Script::new(&NAMES, 1);
    script.run(0, 0, UI);
    script.sleep(100, 0, Some(WORKER));
    script.run(130, 0, HOG);
    script.run(190, 0, WORKER);
    script.wake(200, Some(WORKER), UI);
    script.sleep(203, 0, Some(UI));
    let told = script.explain(300);
    assert_eq!(
        longest(&told),
        [
            "preempted 60 worker: hog=60",
            "running 40 worker:",
            "wake_latency 3 ui: worker=3"
        ]
    );
    let wait = &told.1.waits[0];
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Sleep, "sleep"));
    assert_eq!(wait.awaited.unwrap().thread, Task(WORKER));
    assert_eq!(told.0.preemptions(Task(WORKER)), 1);
}

/// Goal: what took the CPU of a thread is told, and nothing else; where its queue is not known, each instant
/// is split equally over the CPUs that it may run on, and the nanoseconds that do not divide go to the
/// largest remainder. Method: three CPUs, of which the thread may use all, then two; and the same with a move
/// after which its queue contradicts its next run.
#[test]
fn who_ran_instead() {
    let play = |cpus: &[u32], is_odd: bool| {
        let mut script = Script::new(&["ui", "worker", "a", "b", "c"], 3);
        script.pin(WORKER, cpus);
        script.run(0, 0, UI);
        script.run(0, 1, 3);
        script.run(0, 2, 4);
        script.sleep(10, 0, Some(WORKER));
        script.run(20, 0, 2);
        if is_odd {
            script.migrate(30, WORKER, 0, 1);
        }
        script.run(31, 0, WORKER);
        script.wake(40, Some(WORKER), UI);
        script.sleep(40, 0, Some(UI));
        longest(&script.explain(50)).swap_remove(1)
    };
    for cpus in [&[0, 1, 2][..], &[0, 1], &[0]] {
        assert_eq!(play(cpus, false), "preempted 11 worker: a=11");
    }
    assert_eq!(play(&[0, 1, 2], true), "preempted 11 worker: a=4 b=4 c=3");
    assert_eq!(play(&[0, 1], true), "preempted 11 worker: a=6 b=5");
}

/// Goal: a thread that is woken by an interrupt waited for no thread; if the kernel says that it was a
/// device, it was, and only then. Where nothing says what ended an uninterruptible sleep, it was one in the
/// kernel. Method: the same sleep with and without the kernel's event, and without a wake-up.
#[test]
fn interrupts_and_devices() {
    let play = |io: Option<bool>, state: Left, is_woken: bool| {
        let mut script = Script::new(&NAMES, 1);
        script.run(0, 0, UI);
        script.leave(10, 0, state, None);
        if is_woken {
            script.wake(60, None, UI);
        }
        if let Some(io) = io {
            let task = Task(UI);
            let function = None;
            script.kernel(60, 0, KernelEventKind::Blocked { task, io, function });
        }
        script.run(62, 0, UI);
        let timeline = script.timeline(70);
        let selection = Selection {
            threads: Some(vec![Task(UI)]),
            ..Selection::default()
        };
        let explanation = explain(&timeline, &selection);
        check(&explanation.waits[0]);
        let cause = &explanation.waits[0].causes[0];
        assert_eq!(cause.ns, Nanos(if is_woken { 50 } else { 52 }));
        (cause.kind, cause.confidence)
    };
    assert_eq!(
        play(None, Left::Sleeping, true),
        (CauseKind::Interrupt, Confidence::Known)
    );
    assert_eq!(
        play(Some(true), Left::Blocked, true),
        (CauseKind::Io, Confidence::Known)
    );
    assert_eq!(
        play(Some(false), Left::Blocked, true),
        (CauseKind::Interrupt, Confidence::Known)
    );
    assert_eq!(
        play(None, Left::Blocked, true),
        (CauseKind::Interrupt, Confidence::Known)
    );
    for io in [None, Some(false)] {
        assert_eq!(
            play(io, Left::Blocked, false),
            (CauseKind::Blocked, Confidence::Known)
        );
    }
    assert_eq!(
        play(None, Left::Sleeping, false),
        (CauseKind::Unknown, Confidence::Known)
    );
}

/// Goal: a sleep that no thread ended and no device is known for names the kernel's function in which it was,
/// and one because of a device does, too; sleeps in two functions are two causes. Method: the text of a
/// phone's kernel (`trappy-android8`: the GPU's driver powers up its regulator), and the page cache of
/// another.
#[test]
fn blocked_functions() {
    let mut text = String::new();
    for (from, to, context, io, caller) in [
        (0, 100, 'h', 0, "msm_rpm_wait_for_ack+0x5c/0x94"),
        (200, 250, 's', 0, "_regulator_enable_delay+0x88/0xb0"),
        (300, 330, 's', 1, "__lock_page+0xb8/0xe0"),
        (350, 370, 's', 0, "ffffffc000123456"),
    ] {
        let switch = |time: u64, (from, state, to): (&str, char, &str)| {
            let part = |which: &str, who: &str| {
                let (comm, pid) = if who == "a" {
                    ("a", 5)
                } else {
                    ("swapper/0", 0)
                };
                format!("{which}_comm={comm} {which}_pid={pid} {which}_prio=120")
            };
            let (prev, next) = (part("prev", from), part("next", to));
            let pid = if from == "a" { 5 } else { 0 };
            format!(
                "{from}-{pid} [000] d..3 1.{time:06}: sched_switch: {prev} prev_state={state} ==> {next}\n"
            )
        };
        let in_interrupt = format!("<idle>-0 [000] dN{context}4 1.{to:06}");
        text += &switch(from, ("a", 'D', "<idle>"));
        text +=
            &format!("{in_interrupt}: sched_blocked_reason: pid=5 iowait={io} caller={caller}\n");
        text += &format!("{in_interrupt}: sched_wakeup: comm=a pid=5 prio=120 target_cpu=000\n");
        text += &switch(to + 10, ("<idle>", 'R', "a"));
    }
    let timeline = Timeline::new(
        crate::read::read(text.as_bytes(), "phone").unwrap(),
        &crate::timeline::Options::default(),
    );
    let selection = Selection {
        threads: Some(timeline.find("a")),
        ..Selection::default()
    };
    let explanation = explain(&timeline, &selection);
    let causes = explanation.waits.iter().map(|wait| {
        check(wait);
        let cause = &wait.causes[0];
        let function = cause
            .function
            .map(|name| timeline.recording().names.word(name));
        let function = function.unwrap_or("-");
        format!(
            "{} {} {function} {}",
            cause.kind.word(),
            cause.ns.0,
            cause.confidence.word()
        )
    });
    assert_eq!(
        causes.collect::<Vec<_>>(),
        [
            "blocked 100000 msm_rpm_wait_for_ack known",
            "blocked 50000 _regulator_enable_delay known",
            "io 30000 __lock_page known",
            "blocked 20000 - known",
        ]
    );
}

/// Goal: of a thread whose first event is its own wake-up, the path leads on through its waker. Method: a
/// waker that ran, and an interrupt.
#[test]
fn before_the_first_wake_up() {
    let play = |by: Option<u32>| {
        let mut script = Script::new(&NAMES, 2);
        script.run(0, 0, WORKER);
        script.slice(UI, "wait", 10, 60);
        script.wake(50, by, UI);
        script.run(52, 1, UI);
        longest(&script.explain(100))
    };
    assert_eq!(play(Some(WORKER))[0], "running 40 worker:");
    assert_eq!(play(None)[0], "interrupt 40 ui:");
}

/// Goal: while a CPU is busy with an interrupt, its thread makes no progress. Method: one interrupt in the
/// middle of the waker's run, and a second one inside of it.
#[test]
fn interrupted() {
    let mut script = Script::new(&NAMES, 1);
    script.run(0, 0, UI);
    script.sleep(100, 0, Some(WORKER));
    for (time, begins) in [(120, true), (125, true), (130, false), (150, false)] {
        let what = KernelEventKind::Interrupt {
            begins,
            soft: false,
            number: 7,
        };
        script.kernel(time, 0, what);
    }
    script.wake(200, Some(WORKER), UI);
    script.sleep(200, 0, Some(UI));
    assert_eq!(
        longest(&script.explain(300)),
        ["running 70 worker:", "interrupted 30 worker:"]
    );
}

/// Goal: the user's facts about CPUs count more than the recording's. Method: the same recording with other
/// options.
#[test]
fn options() {
    let play = |capacity: Option<u32>, allowed: Option<u32>| {
        let mut script = Script::new(&NAMES, 2);
        script.run(0, 0, UI);
        script.run(0, 1, UI + 2);
        script.sleep(100, 0, Some(WORKER));
        script.wake(300, Some(WORKER), UI);
        script.sleep(300, 0, None);
        script.run(310, 0, UI);
        script
            .options
            .capacities
            .extend(capacity.map(|capacity| (Cpu(0), capacity)));
        script.options.capacities.insert(Cpu(1), 1024);
        let allowed = allowed.map(|cpu| (Task(UI), vec![Cpu(cpu)]));
        script.options.allowed.extend(allowed);
        longest(&script.explain(400))
    };
    let wake = "idle_exit 10 ui: idle=10";
    assert_eq!(play(None, None), ["running 200 worker:", wake]);
    let half = [
        "running 100 worker:",
        "small_core 100 worker: hog=100",
        wake,
    ];
    assert_eq!(play(Some(512), None), half);
    // Seen on a CPU that the user says it may not use: the events count.
    assert_eq!(play(None, Some(1)), ["running 200 worker:", wake]);
}

/// Goal: a thread all of whose CPUs are offline has no core. Method: its CPU goes away while it is runnable
/// and comes back.
#[test]
fn no_core() {
    let mut script = Script::new(&NAMES, 2);
    script.pin(WORKER, &[1]);
    script.run(0, 0, UI);
    script.run(0, 1, WORKER);
    script.sleep(10, 0, Some(HOG));
    script.run(20, 1, HOG + 1);
    script
        .recording
        .threads
        .push(crate::Thread::new(Task(3), "other", None));
    script.kernel(50, 1, KernelEventKind::Online(false));
    script.kernel(80, 1, KernelEventKind::Online(true));
    script.run(85, 1, WORKER);
    script.wake(90, Some(WORKER), UI);
    script.run(90, 0, UI);
    let told = script.explain(100);
    assert_eq!(
        longest(&told),
        [
            "preempted 35 worker: other=35",
            "no_core 30 worker: offline=30",
            "running 15 worker:"
        ]
    );
    let kinds: Vec<_> = told
        .1
        .inversions
        .iter()
        .map(|found| found.kind.word())
        .collect();
    assert_eq!(kinds, ["no_core", "preemption"]);
}

/// Goal: a thread that sleeps for a lock with an unknown holder waits for a lock, and one that sleeps for an
/// unknown reason for something unknown. Method: a recording without wakers, with and without a marker.
#[test]
fn unknown_and_locks() {
    let play = |name: &str| {
        let mut script = Script::new(&NAMES, 1);
        script.recording.origin.wakers = crate::Wakers::Unknown;
        script.run(0, 0, UI);
        script.slice(UI, name, 5, 95);
        script.sleep(10, 0, None);
        script.run(90, 0, UI);
        let timeline = script.timeline(100);
        let selection = Selection {
            slices: vec![name.to_owned()],
            ..Selection::default()
        };
        let explanation = explain(&timeline, &selection);
        check(&explanation.waits[0]);
        told(&timeline, &explanation.waits[0])
    };
    assert_eq!(play("lock bus"), ["lock 80 ui:", "running 10 ui:"]);
    assert_eq!(play("draw"), ["unknown 80 ui:", "running 10 ui:"]);
}

/// Goal: a chain of sleepers leads to the one at its end, each for the time that it was in the way. Method:
/// three threads, each of which wakes the one before it.
#[test]
fn chains() {
    let mut script = Script::new(&["ui", "middle", "last"], 2);
    script.run(0, 0, UI);
    script.run(0, 1, 1);
    script.sleep(10, 1, Some(2));
    script.sleep(20, 0, None);
    script.wake(70, Some(2), 1);
    script.run(75, 0, 1);
    script.sleep(80, 1, None);
    script.wake(90, Some(1), UI);
    script.run(92, 0, UI);
    let told = script.explain(100);
    // The sleep of the middle one is longer.
    let wait = told.1.waits.iter().position(|wait| wait.thread == Task(UI));
    assert_eq!(
        lines(&told, wait.unwrap()),
        [
            "running 50 last:",
            "running 15 middle:",
            "idle_exit 5 middle: idle=5",
            "wake_latency 2 ui: middle=2"
        ]
    );
}

pub(super) fn lines(told_by: &(Timeline, Explanation), wait: usize) -> Vec<String> {
    told(&told_by.0, &told_by.1.waits[wait])
}

/// Goal: the walk ends even if threads claim to have woken each other in a circle at one instant. Method: two
/// sleepers that wake each other.
#[test]
fn circles() {
    let mut script = Script::new(&NAMES, 2);
    script.run(0, 0, UI);
    script.run(0, 1, WORKER);
    script.sleep(10, 0, None);
    script.sleep(10, 1, None);
    for (by, task) in [(UI, WORKER), (WORKER, UI)] {
        let (by, task) = (Some(Task(by)), Task(task));
        let target = Cpu(0);
        script.kernel(50, 0, KernelEventKind::Waking { task, by, target });
    }
    script.run(60, 0, UI);
    script.run(60, 1, WORKER);
    let told = script.explain(100);
    assert_eq!(told.1.waits.len(), 2);
    assert_eq!(told.1.waits[0].length(), Nanos(50));
}

/// Goal: a sleep continues through a run that got nowhere, and ends with one that got somewhere, even if that
/// is cut short. Method: a thread that is woken after 50 us, runs for a while and is preempted for 100 us;
/// runs of 4.999 and of 5 us.
#[test]
fn runs_that_get_nowhere() {
    let play = |ran: u64| {
        let mut script = Script::new(&NAMES, 1);
        script.run(0, 0, UI);
        script.sleep(10_000, 0, Some(WORKER));
        script.wake(60_000, Some(WORKER), UI);
        script.run(61_000, 0, UI);
        script.run(61_000 + ran, 0, HOG);
        script.run(161_000 + ran, 0, UI);
        let told = script.explain(300_000);
        assert_eq!(told.1.waits.len(), 1);
        assert_eq!(told.1.waits[0].preemptions, Some(usize::from(ran < 5_000)));
        longest(&told)
    };
    assert_eq!(
        play(4_999),
        [
            "preempted 100000 ui: hog=100000",
            "running 50000 worker:",
            "running 4999 ui:",
            "wake_latency 1000 ui: worker=1000",
        ]
    );
    assert_eq!(
        play(5_000),
        ["running 50000 worker:", "wake_latency 1000 ui: worker=1000"]
    );
}

/// Goal: where no CPU is known, no thread is said to have run instead. Method: a worker of the job system
/// that starts late, without any kernel events.
#[test]
fn nobody_is_blamed_without_a_kernel() {
    use event::EventKind::{
        Begin, Completed, Created, End, Park, Ready, Unpark, WaitBegin, WaitEnd, Wake,
    };
    let mut script = Script::new(&NAMES, 0);
    for thread in &mut script.recording.threads {
        thread.allowed = None;
    }
    let events = [
        (0, WORKER, Park, 0, 0),
        (10_000, UI, Created, 1, 0),
        (10_000, UI, Ready, 1, 0),
        (10_000, UI, Wake, 0, WORKER.into()),
        (11_000, UI, WaitBegin, 1, 0),
        (200_000, WORKER, Unpark, 0, u64::from(UI) + 1),
        (201_000, WORKER, Begin, 1, 0),
        (301_000, WORKER, End, 1, 0),
        (301_000, WORKER, Completed, 1, 0),
        (302_000, UI, WaitEnd, 1, 0),
    ];
    for (time, thread, kind, job, arg) in events {
        script.job(time, thread, kind, job, arg);
    }
    let timeline = Timeline::new(script.recording, &script.options);
    let explanation = explain(&timeline, &Selection::default());
    let wait = &explanation.waits[0];
    check(wait);
    let late = wait.causes.iter();
    let late = late.filter(|cause| cause.kind == CauseKind::WakeLatency);
    let late: Vec<_> = late.map(|cause| (cause.thread, cause.ns)).collect();
    assert_eq!(late, [(Some(Task(WORKER)), Nanos(189_000))]);
    assert_eq!(wait.preemptions, None);
    assert!(
        explanation.inversions.is_empty(),
        "{:?}",
        explanation.inversions
    );
}
