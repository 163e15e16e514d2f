//! Records of the simulated kernel's rounds, kept beside this file. Crate `scx` puts the same messages before
//! the same policies through its own kernel.

use super::*;
use crate::Attr;
use crate::ops::{Ext, Model, WaitFor, rustland, waitfor::WaitForConstants};
use crate::testing::{SPIN, Script, Shape, Step, ms, run, us};

/// How many rounds are kept of each.
const ROUNDS: usize = 60;

/// Frames of a main thread and a worker that has used its share up, beside four hogs on two CPUs.
fn scripts() -> Vec<Script> {
    let main = [
        Step::Run(us(300)),
        Step::Send(0),
        Step::Say(Some(1)),
        Step::Receive(1),
        Step::Say(None),
        Step::Sleep(ms(7)),
    ];
    let worker = [
        Step::Run(ms(3)),
        Step::Receive(0),
        Step::Run(ms(1)),
        Step::Send(1),
    ];
    let hog = |nice| Script::forever(Attr::nice(nice), &[SPIN]);
    let frames = [&main[..], &worker].map(|steps| Script::forever(Attr::default(), steps));
    let hogs = [0, 0, 3, -2].map(hog);
    frames.into_iter().chain(hogs).collect()
}

/// The record of a policy in the simulated kernel.
fn record<O: Ops>(ops: O, model: Model) -> String {
    let shape = Shape {
        cpus: 2,
        tick: ms(4),
    };
    let mut class = Ext::new(Recorded::new(ops, ROUNDS), model);
    run(&mut class, shape, &scripts(), ms(400));
    class.into_ops().take()
}

fn compare(found: &str, kept: &str, name: &str) {
    let differs = found
        .lines()
        .zip(kept.lines())
        .find(|(new, old)| new != old);
    assert!(
        found == kept,
        "{name} should hold this (first line that differs: {differs:?}):\n{found}"
    );
    let rounds = read_rounds(kept).expect("it was written here");
    assert_eq!(rounds.len(), ROUNDS);
    let again: String = rounds.iter().map(RoundRecord::to_string).collect();
    assert_eq!(again, kept);
}

/// Goal: the records are the simulated kernel's, and reading undoes writing. Method: the policies whose
/// decisions crate `scx` repeats, in the same scene, against the files.
#[test]
fn records_are_those_of_the_simulated_kernel() {
    let constants = WaitForConstants::default();
    let model = Model::kicking(constants.slice, ms(4));
    let found = record(WaitFor::new(constants), model);
    assert!(found.contains("wait 0 for 1"), "{found}");
    compare(&found, include_str!("waitfor.txt"), "waitfor.txt");

    let constants = rustland::Constants::default();
    let model = Model::scx(constants.slice, ms(4));
    let found = record(rustland::merged(constants), model);
    compare(&found, include_str!("rustland-333.txt"), "rustland-333.txt");

    let found = record(rustland::pre333(constants), model);
    let kept = include_str!("rustland-pre333.txt");
    compare(&found, kept, "rustland-pre333.txt");
}

/// Goal: a wait for threads of which none is known is read as it was written. Method: a round with such a
/// wait, as a real kernel had it, and one with two.
#[test]
fn a_wait_for_threads_that_are_not_known_is_read() {
    let round = RoundRecord {
        waits: vec![(Task(3), Vec::new()), (Task(4), vec![Task(5), Task(6)])],
        ..RoundRecord::default()
    };
    assert_eq!(read_rounds(&round.to_string()), Ok(vec![round]));
}

/// Goal: a line that is no record is refused by its number. Method: lines of each kind with a fault.
#[test]
fn what_is_no_record_is_refused() {
    for text in [
        "held 3",
        "round 1 online 2 running 1 wanted x idle -",
        "round 1 online 2 running 1 wanted 0 idle [3]",
        "round 1 online 2 running 1 wanted 0 idle -\nmessage 1 cpu 0",
        "round 1 online 2 running 1 wanted 0 idle -\nwait 1 for a",
        "round 1 online 2 running 1 wanted 0 idle -\nnonsense",
    ] {
        let said = read_rounds(text).expect_err(text);
        let line = format!("line {} is not of a round", text.lines().count());
        assert!(said.starts_with(&line), "{said}");
    }
}
