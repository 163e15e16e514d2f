//! What the CPUs have to do with it: which one was taken, idle, small, or slow.

use event::{Cpu, KernelEventKind, Nanos, Task};

use super::causes::{HOG, NAMES, UI, WORKER, longest};
use crate::explain::{Confidence, IdleExit};
use crate::script::{Script, told};

/// Goal: the thread that took a CPU has all of the time, known, and beside it stands that another CPU was
/// idle; of a thread that is pulled elsewhere without an event, too. Method: the worker is preempted beside
/// an idle CPU, and runs next on the same CPU, or on the idle one; nothing says which CPUs it may use but
/// that it was seen there.
#[test]
fn the_taken_cpu() {
    for next in [0, 1] {
        let mut script = Script::new(&NAMES, 2);
        script.recording.threads[WORKER as usize].allowed = None;
        script.run(0, 1, WORKER);
        script.sleep(10, 1, None);
        script.wake(20, None, WORKER);
        script.run(21, 0, WORKER);
        script.run(30, 0, UI);
        script.sleep(100, 0, Some(WORKER));
        script.run(200, 0, HOG);
        script.run(500, next, WORKER);
        script.wake(600, Some(WORKER), UI);
        script.sleep(600, next, None);
        script.run(601, 0, UI);
        let (timeline, explanation) = script.explain(700);
        let wait = explanation
            .waits
            .iter()
            .find(|wait| wait.thread == Task(UI))
            .unwrap();
        let cause = &wait.causes[0];
        assert_eq!(
            told(&timeline, wait)[0],
            "preempted 300 worker: hog=300",
            "{next}"
        );
        assert_eq!(
            (cause.beside_idle, cause.confidence),
            (Nanos(300), Confidence::Known)
        );
        let inversion = explanation
            .inversions
            .iter()
            .find(|it| it.holder == Task(WORKER))
            .unwrap();
        assert_eq!(
            (
                inversion.kind.word(),
                inversion.beside_idle.0,
                inversion.remedies[0].word()
            ),
            ("preemption", 300, "move_away")
        );
    }
}

/// Goal: a thread whose CPU is idle from the wake-up until it runs waits for that CPU to leave its idle
/// state, which is told; a CPU that runs something before is no such case. Method: the wake-up for an idle
/// CPU, in two states and in none that is known, and with another thread in between.
#[test]
fn idle_exits() {
    let play = |state: Option<u8>, between: bool| {
        let mut script = Script::new(&NAMES, 3);
        script.run(0, 0, UI);
        script.run(0, 1, WORKER);
        script.sleep(50, 1, None);
        script.kernel(60, 1, KernelEventKind::Idle(state));
        script.wake_for(100, Some(UI), WORKER, 1);
        script.sleep(101, 0, None);
        if between {
            script.run(200, 1, HOG);
            script.sleep(300, 1, None);
        }
        script.kernel(390, 1, KernelEventKind::Idle(None));
        script.run(400, 1, WORKER);
        script.wake_for(500, Some(WORKER), UI, 0);
        script.sleep(501, 1, None);
        script.run(502, 0, UI);
        let (timeline, explanation) = script.explain(600);
        let wait = explanation
            .waits
            .iter()
            .find(|wait| wait.thread == Task(UI))
            .unwrap();
        let causes = wait
            .causes
            .iter()
            .filter(|cause| cause.thread == Some(Task(WORKER)));
        let exits: Vec<_> = causes
            .filter_map(|cause| Some((cause.exit?, cause.ns.0, cause.confidence)))
            .collect();
        (told(&timeline, wait), exits)
    };
    let exit = |state| IdleExit { cpu: Cpu(1), state };
    for state in [Some(2), Some(0), None] {
        let (told, exits) = play(state, false);
        assert_eq!(told[0], "idle_exit 299 worker: idle=299");
        assert_eq!(exits, [(exit(state), 299, Confidence::Known)]);
    }
    let (told, exits) = play(Some(2), true);
    assert_eq!(told[0], "wake_latency 200 worker: hog=100 idle=100");
    assert_eq!(exits, [(exit(Some(2)), 99, Confidence::Known)]);
}

/// Goal: on a CPU of half the capacity, half of the time is lost; at a third of the frequency, two thirds; of
/// both, the remaining parts are multiplied. The lost part names the thread that had the fast CPU. Method:
/// one run in three parts.
#[test]
fn slow_cpus() {
    let mut script = Script::new(&NAMES, 2);
    script.capacities(&[512, 1024]);
    script.kernel(0, 0, KernelEventKind::Frequency(3_000_000));
    script.run(0, 0, UI);
    script.run(0, 1, HOG);
    script.sleep(100, 0, Some(WORKER));
    script.kernel(200, 0, KernelEventKind::Frequency(1_000_000));
    script.wake(260, Some(WORKER), UI);
    script.sleep(260, 0, Some(UI));
    let told = script.explain(300);
    // 100 at half speed, 60 at a sixth.
    assert_eq!(
        longest(&told),
        [
            "running 60 worker:",
            "small_core 60 worker: hog=60",
            "low_frequency 40 worker:"
        ]
    );
    let found = told.1.inversions.iter();
    let found: Vec<_> = found
        .map(|it| (it.kind.word(), it.ns.0, it.remedies[0].word()))
        .collect();
    assert_eq!(
        found,
        [
            ("placement", 60, "leave_out_slow_cores"),
            ("low_frequency", 40, "raise_frequency")
        ]
    );
}

/// Goal: a frequency that is low because of a limit is told apart from one that is low without any, and a CPU
/// of larger capacity is no better place while it is slower itself. Method: one run on a small CPU, at a
/// third of the highest frequency; a limit of two thirds; the large CPU at a fifth of its own frequency, and
/// at all of it.
#[test]
fn limited_frequencies() {
    let play = |large_khz: u32| {
        let mut script = Script::new(&NAMES, 2);
        script.capacities(&[512, 1024]);
        script.kernel(0, 0, KernelEventKind::Frequency(3_000_000));
        script.kernel(0, 1, KernelEventKind::Frequency(5_000_000));
        script.kernel(1, 0, KernelEventKind::FrequencyLimit(2_000_000));
        script.kernel(1, 0, KernelEventKind::Frequency(1_000_000));
        script.kernel(1, 1, KernelEventKind::Frequency(large_khz));
        script.run(2, 0, UI);
        script.sleep(100, 0, Some(WORKER));
        script.wake(160, Some(WORKER), UI);
        script.sleep(160, 0, Some(UI));
        let (timeline, explanation) = script.explain(300);
        let kinds: Vec<_> = explanation
            .inversions
            .iter()
            .map(|it| it.kind.word())
            .collect();
        (crate::script::told(&timeline, &explanation.waits[0]), kinds)
    };
    let (causes, kinds) = play(500_000);
    assert_eq!(
        causes,
        [
            "low_frequency 30 worker:",
            "running 10 worker:",
            "small_core 10 worker: idle=10",
            "frequency_limit 10 worker:",
        ]
    );
    assert_eq!(kinds, ["low_frequency", "frequency_limit"]);
    let (causes, kinds) = play(5_000_000);
    assert_eq!(causes[2], "small_core 10 worker: idle=10");
    assert_eq!(kinds, ["placement", "low_frequency", "frequency_limit"]);
}
