//! The words for an explanation made by hand: the mutex on one CPU of the Pathfinder.

use event::{Nanos, Task};
use trace::explain::{
    Cause, CauseKind, Confidence, Explanation, Inversion, InversionKind, Remedy, Share, Wait,
    WaitKind, Who,
};
use trace::timeline::{Options, Timeline};
use trace::{Loss, Losses, Recording, Thread};

use super::sentence::merged;
use super::{Account, AccountJson, losses, short, wrapped};

const BUS: Task = Task(0);
const HOLDER: Task = Task(1);
const COMMS: Task = Task(2);
const IDLE_ONE: Task = Task(3);

fn share(who: Who, ns: u64) -> Share {
    Share { who, ns: Nanos(ns) }
}

fn cause(kind: CauseKind, thread: Task, ns: u64, by: Vec<Share>) -> Cause {
    Cause {
        kind,
        thread: Some(thread),
        job: None,
        ns: Nanos(ns),
        by,
        beside_idle: Nanos::ZERO,
        exit: None,
        function: None,
        confidence: Confidence::Inferred,
    }
}

fn thread(task: Task, name: &str) -> Thread {
    Thread {
        tid: Some(350 + task.0),
        ..Thread::new(task, name, None)
    }
}

/// The wait: 10.6 ms, of which the holder ran 2.1 and could have run 8.5.
fn wait() -> Wait {
    let comms = |ns| vec![share(Who::Task(COMMS), ns)];
    Wait {
        thread: BUS,
        kind: WaitKind::Slice,
        name: "lock bus".into(),
        begin: Nanos(1_234_000_000),
        end: Nanos(1_244_600_000),
        late: None,
        segments: Vec::new(),
        preemptions: None,
        awaited: None,
        causes: vec![
            cause(CauseKind::Preempted, HOLDER, 8_000_000, comms(8_000_000)),
            cause(CauseKind::Running, HOLDER, 2_100_000, Vec::new()),
            cause(CauseKind::WakeLatency, HOLDER, 400_000, comms(400_000)),
            cause(CauseKind::Running, BUS, 100_000, Vec::new()),
        ],
    }
}

fn inversion() -> Inversion {
    Inversion {
        kind: InversionKind::Lock,
        wait: 0,
        waiter: BUS,
        holder: HOLDER,
        runner: Who::Task(COMMS),
        by: vec![share(Who::Task(COMMS), 8_400_000)],
        beside_idle: Nanos::ZERO,
        begin: Nanos(1_235_000_000),
        queue: None,
        ns: Nanos(8_400_000),
        priorities: [Some(49), Some(120), Some(79)],
        confidence: Confidence::Inferred,
        remedies: vec![Remedy::PriorityInheritance],
    }
}

fn account(waits: Vec<Wait>, inversions: Vec<Inversion>) -> Account {
    let recording = Recording {
        threads: vec![
            thread(BUS, "high-bus"),
            thread(HOLDER, "low-holder"),
            thread(COMMS, "mid-comms"),
            thread(IDLE_ONE, "mid-comms"),
        ],
        ..Recording::default()
    };
    let timeline = Timeline::new(recording, &Options::default());
    let explanation = Explanation {
        groups: Vec::new(),
        waits,
        omitted: 0,
        inversions,
    };
    Account::new(timeline, explanation, Nanos(1_000_000_000))
}

/// Goal: the worst wait is one sentence with the waiter, the length, the place and time of the wait, the
/// thread that ran, and the holder of the lock; kinds of being runnable are one, a trifle is left out, and
/// threads of one name are told apart. Method: the wait above.
#[test]
fn a_wait_is_a_sentence() {
    let account = account(vec![wait()], vec![inversion()]);
    let expected = "high-bus waited 10.60 ms in `lock bus` at 0.234000 s: mid-comms (352) ran 8.40 ms of it \
                    while low-holder, which holds what it waits for, was runnable; low-holder ran 2.10 ms.";
    assert_eq!(account.sentence(account.worst().unwrap()), expected);
}

/// Goal: of a thread without scheduler events nothing says that it ran. Method: a frame of such a thread.
#[test]
fn what_is_not_known_did_not_run() {
    let frame = Wait {
        kind: WaitKind::Frame,
        name: "update 7".into(),
        causes: vec![cause(CauseKind::Awake, BUS, 10_600_000, Vec::new())],
        ..wait()
    };
    let account = account(vec![frame], Vec::new());
    let expected = "update 7 of high-bus took 10.60 ms at 0.234000 s: for 10.60 ms it is not known whether \
                    high-bus itself ran.";
    let worst = account.worst().unwrap();
    assert_eq!(account.sentence(worst), expected);
    let bars = account.bars(worst, 70);
    assert!(
        bars[0].starts_with("high-bus itself: not known"),
        "{bars:?}"
    );
}

/// Goal: every cause has a bar, the longest first, and the lines fit. Method: the wait above, in 70 columns.
#[test]
fn causes_are_bars() {
    let account = account(vec![wait()], Vec::new());
    let bars = account.bars(account.worst().unwrap(), 70);
    assert_eq!(bars.len(), 3, "{bars:?}");
    assert!(bars.iter().all(|bar| bar.chars().count() <= 70), "{bars:?}");
    let begins = [
        "low-holder runnable: mid-comms",
        "low-holder ran",
        "high-bus itself ran",
    ];
    for (bar, begin) in bars.iter().zip(begins) {
        assert!(bar.starts_with(begin), "{bar}");
    }
    assert!(
        bars[0].contains("8.40 ms") && bars[0].contains("79 %"),
        "{}",
        bars[0]
    );
}

/// Goal: the threads that had the CPUs are told in order, and other things have their own names. Method: a
/// wait with four threads that ran, and one with an idle CPU.
#[test]
fn those_who_ran_are_told_in_order() {
    let by = vec![
        share(Who::Task(COMMS), 500),
        share(Who::Idle, 300),
        share(Who::Unknown, 100),
        share(Who::Task(BUS), 100),
    ];
    let runnable = |by| Wait {
        end: Nanos(1_234_001_000),
        causes: vec![cause(CauseKind::Preempted, HOLDER, 1_000, by)],
        ..wait()
    };
    let text = |wait: Wait| account(vec![wait.clone()], Vec::new()).sentence(&wait);
    let several = text(runnable(by));
    assert!(several.contains(
        "mid-comms (352) ran 500 ns, an idle CPU 300 ns and 2 others 200 ns of it while"
    ));
    let idle = text(runnable(vec![share(Who::Idle, 1_000)]));
    assert!(
        idle.contains("a CPU was idle for 1.00 µs of it while low-holder was"),
        "{idle}"
    );
    let nobody = text(runnable(Vec::new()));
    assert!(
        nobody.contains("not known what ran for 1.00 µs"),
        "{nobody}"
    );
}

/// Goal: equal inversions are one line with their sum, and each line says what would help. Method: one that
/// comes twice and a placement.
#[test]
fn inversions_are_summed_up_and_come_with_remedies() {
    let placement = Inversion {
        kind: InversionKind::Placement,
        holder: BUS,
        runner: Who::Idle,
        by: vec![share(Who::Idle, 1_000_000)],
        ns: Nanos(1_000_000),
        remedies: vec![Remedy::WiderAffinity, Remedy::FewerThreads],
        ..inversion()
    };
    let text =
        account(vec![wait()], vec![inversion(), placement, inversion()]).inversions_text(120);
    let expected = "\
Inversions:
  lock: mid-comms (352) ran while low-holder held what high-bus waited for: 16.80 ms (inferred)
    remedy: a lock with priority inheritance
  placement: a CPU was idle that high-bus could have used: 1.00 ms (inferred)
    remedy: let high-bus use more CPUs; or fewer busy threads than CPUs";

    assert_eq!(text.unwrap(), expected);
    assert_eq!(account(vec![wait()], Vec::new()).inversions_text(80), None);
}

/// Goal: each reason that keeps one thread from running is told once, for the thread that lost most, however
/// many wait for that thread; waits that burn a CPU are told one by one. Method: three threads wait for one.
#[test]
fn who_else_waited_is_counted() {
    let waits = [BUS, COMMS, IDLE_ONE].map(|thread| Wait { thread, ..wait() });
    let of = |kind, wait: usize, ns| Inversion {
        kind,
        wait,
        waiter: waits[wait].thread,
        ns: Nanos(ns),
        ..inversion()
    };
    let lines = |kind| {
        let inversions = vec![of(kind, 0, 3_000), of(kind, 1, 7_000), of(kind, 2, 5_000)];
        let text = account(waits.to_vec(), inversions).inversions_text(200);
        let lines: Vec<String> = text.unwrap().lines().map(str::to_owned).collect();
        lines.into_iter().skip(1).step_by(2).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(InversionKind::Preemption),
        [
            "  preemption: mid-comms (352) ran instead of low-holder while mid-comms (352) and 2 others \
             waited for it: up to 7.00 µs (inferred)"
        ]
    );
    assert_eq!(lines(InversionKind::BusyWait).len(), 3);
}

/// Goal: an idle CPU is called one, also where other threads had more of the time, and the text never says
/// that a thread ran on it. Method: a placement and a lock with an idle CPU.
#[test]
fn idle_cpus_do_not_run() {
    let by = vec![share(Who::Task(COMMS), 900_000), share(Who::Idle, 100_000)];
    let placement = Inversion {
        kind: InversionKind::Placement,
        runner: Who::Idle,
        by,
        ..inversion()
    };
    let lock = Inversion {
        runner: Who::Idle,
        by: vec![share(Who::Idle, 8_400_000)],
        ..inversion()
    };
    let text = |inversion| account(vec![wait()], vec![inversion]).inversions_text(200);
    let placement = text(placement).unwrap();
    let expected =
        "placement: a CPU was idle that low-holder could have used while high-bus waited for it";
    assert!(placement.contains(expected), "{placement}");
    let lock = text(lock).unwrap();
    let expected =
        "lock: a CPU was idle while low-holder could have run and held what high-bus waited for";
    assert!(lock.contains(expected), "{lock}");
}

/// Goal: a name that the kernel cut behind a blank is shown without it, and threads that then have the same
/// name are told apart. Method: two such threads and another one.
#[test]
fn names_are_shown_without_blanks_around() {
    let mut account = account(vec![wait()], Vec::new());
    let recording = Recording {
        threads: vec![
            thread(BUS, "Runtime worker "),
            thread(HOLDER, "Runtime worker"),
        ],
        ..Recording::default()
    };
    let timeline = Timeline::new(recording, &Options::default());
    assert_eq!(timeline.find("Runtime worker"), [BUS, HOLDER]);
    account = Account::new(timeline, account.explanation, Nanos::ZERO);
    let names = [BUS, HOLDER].map(|task| account.thread(task));
    assert_eq!(names, ["Runtime worker (350)", "Runtime worker (351)"]);
}

/// Goal: the objects have the keys of the contract, times since the beginning, and sums that are right.
/// Method: read the JSON of the wait and the inversion back.
#[test]
fn json_has_the_keys_of_the_contract() {
    let account = account(vec![wait()], vec![inversion()]);
    let json = serde_json::to_value(AccountJson::of(&account)).unwrap();
    let thread = |position: &serde_json::Value| {
        let row = &json["who"][position.as_u64().unwrap() as usize];
        (
            row["thread"].as_str().unwrap(),
            row["tid"].as_u64().unwrap(),
        )
    };
    let wait = &json["waits"][0];
    assert_eq!(wait["thread"], "high-bus");
    assert_eq!(
        (&wait["tid"], &wait["name"]),
        (&350.into(), &"lock bus".into())
    );
    assert_eq!(wait["start_ns"], 234_000_000);
    assert_eq!(
        (&wait["duration_ns"], &wait["sum_ns"]),
        (&10_600_000.into(), &10_600_000.into())
    );
    let cause = &wait["causes"][0];
    assert_eq!(cause["kind"], "preempted");
    assert_eq!(thread(&cause["who"]), ("low-holder", 351));
    assert_eq!(thread(&cause["by"][0]["who"]).0, "mid-comms");
    assert_eq!(cause["by"][0]["ns"], 8_000_000);
    let inversion = &json["inversions"][0];
    for (key, value) in [("kind", "lock"), ("confidence", "inferred")] {
        assert_eq!(inversion[key], value);
    }
    let names = ["waiter", "holder", "runner"].map(|key| thread(&inversion[key]).0);
    assert_eq!(names, ["high-bus", "low-holder", "mid-comms"]);
    assert_eq!(
        (&json["version"], &json["least_share"]),
        (&2.into(), &0.0.into())
    );
    assert_eq!(
        (&inversion["start_ns"], &inversion["ns"]),
        (&235_000_000.into(), &8_400_000.into())
    );
    assert_eq!(inversion["remedies"][0], "priority_inheritance");
}

/// Goal: lengths have as many digits as one reads, and losses are told by name. Method: one of each.
#[test]
fn lengths_are_short_and_losses_have_names() {
    let lengths = [999, 1_000, 10_588_000, 335_900_000, 61_000_000_000].map(|ns| short(Nanos(ns)));
    assert_eq!(
        lengths,
        ["999 ns", "1.00 µs", "10.59 ms", "335.9 ms", "61.00 s"]
    );
    let lost = Losses::from_iter([(Loss::Malformed, 3), (Loss::Truncated, 7)]);
    let told = losses(&lost).unwrap();
    assert_eq!(told, "Lost or odd: malformed 3, truncated bytes 7.");
    assert_eq!(losses(&Losses::default()), None);
}

/// Goal: text fits its columns and is whole. Method: words in lines of 11, and one that is longer than a
/// line.
#[test]
fn text_is_wrapped_between_words() {
    assert_eq!(
        wrapped("one two three four", "", 11),
        ["one two", "three four"]
    );
    assert_eq!(
        wrapped("one two three", "  ", 10),
        ["  one two", "    three"]
    );
    assert_eq!(wrapped("extraordinary x", "", 5), ["extraordinary", "x"]);
}

/// Goal: causes that differ in jobs alone are one part to a person. Method: causes of two threads and three
/// jobs.
#[test]
fn causes_of_several_jobs_are_one_part() {
    let behind = |thread, job, ns| Cause {
        job: Some(job),
        ..cause(CauseKind::QueuedBehind, thread, ns, Vec::new())
    };
    let causes = [
        behind(BUS, 10, 7),
        behind(HOLDER, 11, 6),
        behind(HOLDER, 12, 5),
    ];
    let parts = merged(&causes).into_iter();
    let parts: Vec<_> = parts
        .map(|part| (part.thread, part.job, part.ns.0))
        .collect();
    let (first, second) = (Some(HOLDER), Some(BUS));
    assert_eq!(parts, [(first, None, 11), (second, Some(10), 7)]);
}
