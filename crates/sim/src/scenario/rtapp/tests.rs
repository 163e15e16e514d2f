//! Files of rt-app, written for these tests, and the scenarios that they become.

use proptest::prelude::*;

use super::*;
use crate::scenario::run;
use crate::{Machine, Outcome, SimConfig};

fn read(text: &str) -> Scenario {
    Scenario::from_rt_app("test", text).unwrap_or_else(|error| panic!("{error}"))
}

fn us(micros: u64) -> Span {
    Span::fixed(Nanos(micros * 1_000))
}

/// Two tasks with phases, timers and a lock.
const PLAYER: &str = r#"{
    /* a player and what decodes for it */
    "global": { "duration": 2, "default_policy": "SCHED_OTHER", "pi_enabled": true, "calibration": "CPU0" },
    "tasks": {
        "decode": {
            "instance": 2, "loop": 3, "cpus": [1, 2], "priority": -4, "delay": 500,
            "lock": "m", "run": 100, "unlock": "m", "sleep": 50, "run1": 20, "yield": ""
        },
        "play": {
            "policy": "SCHED_FIFO",
            "phases": {
                "light": { "loop": 10, "run0": 1000, "timer0": { "ref": "unique", "period": 30000 } },
                "heavy": {
                    "runtime": 4000, "timer": { "ref": "tick", "period": 9000, "mode": "absolute" }
                }
            }
        },
        "spare": { "instance": 0, "run": 1 }
    }
}"#;

/// Goal: properties and events get the meanings of rt-app's tutorial, in the file's order. Method: a file
/// with most of them, field by field.
#[test]
fn tasks_become_threads() {
    let scenario = read(PLAYER);
    assert_eq!(scenario.until, Some(Nanos::from_secs(2)));
    assert_eq!(scenario.inheriting_mutexes, ["m"]);
    let [decode, play] = &scenario.threads[..] else {
        panic!("{:?}", scenario.threads);
    };
    assert_eq!((decode.count, decode.nice), (2, -4));
    assert_eq!(decode.repeat, Repeat::Times(3));
    assert_eq!(
        (&decode.cpus[..], decode.start),
        (&[1, 2][..], Some(Nanos(500_000)))
    );
    let expected = [
        Phase::Lock("m".into()),
        Phase::Work(us(100)),
        Phase::Unlock("m".into()),
        Phase::Sleep(us(50)),
        Phase::Work(us(20)),
        Phase::Yield,
    ];
    assert_eq!(decode.phases, expected);
    assert_eq!((play.discipline, play.priority), (DisciplineName::Fifo, 10));
    assert_eq!(play.repeat, Repeat::Word(Forever::Forever));
    let timer = |name: &str, period: u64, absolute: bool, shared: bool| Phase::Timer {
        name: name.into(),
        period: us(period),
        absolute,
        shared,
    };
    let light = vec![Phase::Work(us(1000)), timer("unique", 30_000, false, false)];
    let expected = [
        Phase::Repeat {
            times: 10,
            phases: light,
        },
        Phase::Spin(us(4000)),
        timer("tick", 9_000, true, true),
    ];
    assert_eq!(play.phases, expected);
}

/// Goal: conditions, suspension and barriers become the phases they stand for. Method: each event once.
#[test]
fn events_that_wait_become_conditions() {
    let scenario = read(
        r#"{"tasks": {
            "a": { "loop": 1, "sync": {"ref": "c", "mutex": "m"}, "suspend": "", "barrier": "b" },
            "b": { "loop": 1, "wait": {"ref": "c", "mutex": "m"}, "signal": "c", "broad": "c",
                   "resume": "a", "barrier": "b" }
        }}"#,
    );
    let wait = Phase::Await {
        condition: "c".into(),
        mutex: Some("m".into()),
    };
    let expected = [
        Phase::Lock("m".into()),
        Phase::Signal("c".into()),
        wait.clone(),
        Phase::Unlock("m".into()),
        Phase::Await {
            condition: suspended("a"),
            mutex: None,
        },
        Phase::Barrier("b".into()),
    ];
    assert_eq!(scenario.threads[0].phases, expected);
    let expected = [
        wait,
        Phase::Signal("c".into()),
        Phase::Broadcast("c".into()),
        Phase::Broadcast(suspended("a")),
        Phase::Barrier("b".into()),
    ];
    assert_eq!(scenario.threads[1].phases, expected);
}

/// Goal: files that were read run, and take the time they should. Method: on three ideal CPUs: a timer that
/// immunizes a period of 19 us against a sleep of 3, a producer and a consumer with a condition, a barrier,
/// and a suspended task; the ends of all are known by hand.
#[test]
fn tasks_run_as_they_say() {
    let ended = |text: &str| {
        let config = SimConfig::on(Machine::ideal(3), POLICY, 1);
        let report = run(&read(text), config).report;
        assert_eq!(report.outcome, Outcome::Finished, "{report}");
        let ended = report.threads.iter().map(|thread| thread.ended.0 / 1_000);
        ended.collect::<Vec<_>>()
    };
    let timer = r#"{"tasks": {"a": { "loop": 3, "run": 5, "sleep": 3,
        "timer": {"ref": "unique", "period": 19} }}}"#;
    assert_eq!(ended(timer), [57]);
    let condition = r#"{"tasks": {
        "first": { "loop": 1, "lock": "m", "wait": {"ref": "c", "mutex": "m"}, "run": 10, "unlock": "m" },
        "then":  { "loop": 1, "run": 30, "lock": "m", "signal": "c", "unlock": "m", "run": 1 }
    }}"#;
    assert_eq!(ended(condition), [40, 31]);
    let barrier = r#"{"tasks": {
        "a": { "instance": 2, "loop": 2, "runtime": 10, "barrier": "b" },
        "b": { "loop": 2, "sleep": 25, "barrier": "b" }
    }}"#;
    assert_eq!(ended(barrier), [50, 50, 50]);
    let suspended = r#"{"tasks": {
        "late":  { "loop": 1, "suspend": "late", "run": 7 },
        "waker": { "loop": 1, "run": 20, "resume": "late" }
    }}"#;
    assert_eq!(ended(suspended), [27, 20]);
}

/// Goal: a relative timer counts from where it was missed, an absolute one does not. Method: the tutorial's
/// picture: periods of 20 us of which one takes 30, followed by ones of 10.
#[test]
fn timers_are_relative_or_absolute() {
    for (mode, end) in [("relative", 70), ("absolute", 60)] {
        let text = format!(
            r#"{{"tasks": {{"a": {{ "loop": 1, "phases": {{
                "long":  {{ "run": 30, "timer": {{"ref": "uniqueA", "period": 20, "mode": "{mode}"}} }},
                "short": {{ "loop": 2, "run": 10,
                            "timer": {{"ref": "uniqueA", "period": 20, "mode": "{mode}"}} }}
            }} }}}}}}"#
        );
        let config = SimConfig::on(Machine::ideal(1), POLICY, 1);
        let report = run(&read(&text), config).report;
        assert_eq!(report.now, Nanos(end * 1_000), "{mode}");
    }
}

/// Goal: for an unsupported or senseless part, the error is one line that names task and event. Method: one
/// of each.
#[test]
fn what_is_not_supported_is_named() {
    let task = |task: &str| format!(r#"{{"tasks": {{"t": {{ "loop": 1, {task} }} }} }}"#);
    for (text, words) in [
        (
            task(r#""mem": 5"#),
            &["\"t\"", "\"mem\"", "not supported"][..],
        ),
        (task(r#""fork": "x""#), &["\"t\"", "fork"]),
        (task(r#""run": 1.5"#), &["\"t\"", "\"run\"", "whole number"]),
        (task(r#""run3": -5"#), &["\"run3\"", "0 to"]),
        (task(r#""walk": 5"#), &["\"walk\"", "events are"]),
        (task(r#""running": 5"#), &["\"running\"", "events are"]),
        (task(r#""run": 1, "util_min": 5"#), &["util_min"]),
        (
            task(r#""run": 1, "policy": "SCHED_DEADLINE""#),
            &["policy", "SCHED_RR"],
        ),
        (task(r#""run": 1, "priority": 40"#), &["\"t\"", "nice 40"]),
        (task(r#""timer": {"ref": "x"}"#), &["\"timer\"", "period"]),
        (
            task(r#""timer": {"ref": "x", "period": 0}"#),
            &["\"t\"", "period"],
        ),
        (task(r#""wait": "c""#), &["\"wait\"", "object"]),
        (
            task(r#""run": 5, "phases": {"p": {"run": 5}}"#),
            &["into phases"],
        ),
        (
            task(r#""phases": {"p": {"cpus": [0], "run": 5}}"#),
            &["\"p\"", "cpus", "whole tasks"],
        ),
        (task(r#""phases": {}"#), &["does nothing"]),
        (
            r#"{"tasks": {"t": {"run": 5}}}"#.into(),
            &["\"t\"", "for ever"],
        ),
        (
            r#"{"tasks": {"t": {"loop": 999999999, "lock": "m"}}}"#.into(),
            &["that take no time"],
        ),
        (r#"{"tasks": {}}"#.into(), &["neither"]),
        (r#"{"threads": {}}"#.into(), &["\"threads\"", "tasks"]),
        ("{\n\"tasks\": ,}".into(), &["line 2"]),
        ("[".repeat(100_000), &["recursion"]),
    ] {
        let error = Scenario::from_rt_app("f.json", &text)
            .unwrap_err()
            .to_string();
        assert!(
            !error.contains('\n') && error.starts_with("rt-app file f.json: "),
            "{error}"
        );
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

/// The bytes that replace others.
const BYTES: &[u8] = b"{}[]\",:09-.a/*\\ \n";

proptest! {
    /// Goal: mutilated files never panic, and errors are one line. Method: a file in which bytes are
    /// replaced, and that is cut off.
    #[test]
    fn mutilated_files_never_panic(
        length in 0..PLAYER.len(),
        changes in prop::collection::vec((0..PLAYER.len(), prop::sample::select(BYTES.to_vec())), 0..6),
    ) {
        let mut bytes = PLAYER.as_bytes().to_vec();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        for text in [&bytes[..], &bytes[..length]] {
            let text = std::str::from_utf8(text).expect("all of it is ASCII");
            if let Err(error) = Scenario::from_rt_app("f", text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
