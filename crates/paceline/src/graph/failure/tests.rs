//! Goal: the number of failures that are kept is bounded, and a forgotten failure is not taken for a success.

use std::panic::Location;

use platform::Os;

use super::*;
use crate::border::UserValue;

/// How many failures are kept here: few, since Miri runs these tests, too.
const KEPT: usize = 64;

fn failures() -> Failures<Os> {
    Failures::new(1 << 16, KEPT)
}

fn label() -> Label {
    Label {
        name: "failed",
        site: Location::caller(),
    }
}

fn is_forgotten(failures: &Failures<Os>, job: Ticket) -> bool {
    matches!(failures.verdict(job), Err(WaitError::Forgotten))
}

fn is_known(failures: &Failures<Os>, job: Ticket) -> bool {
    matches!(failures.verdict(job), Err(WaitError::Abandoned { .. }))
}

fn abandon(failures: &Failures<Os>, job: Ticket) -> usize {
    let surplus = failures.add(job, Failure::Abandoned { label: label() });
    surplus.0.iter().flatten().count()
}

/// Method: more failures than are kept, each in a slot of its own. The last ones are known. The others are
/// known to have failed. Other jobs of these slots have not failed.
#[test]
fn old_failures_are_forgotten_but_not_taken_back() {
    let failures = failures();
    let ticket = |index| Ticket::new(index, 5);
    let all = KEPT as u32 + 10;
    let surplus: usize = (0..all)
        .map(|index| abandon(&failures, ticket(index)))
        .sum();
    assert_eq!(surplus, 10);
    for index in 0..all {
        assert!(failures.has(ticket(index)));
        assert_eq!(is_forgotten(&failures, ticket(index)), index < 10);
        assert_eq!(is_known(&failures, ticket(index)), index >= 10);
        for other in [Ticket::new(index, 4), Ticket::new(index, 6)] {
            assert!(failures.verdict(other).is_ok());
        }
    }
    assert!(failures.verdict(ticket(all)).is_ok());
    assert!(failures.verdict(ticket((1 << 16) - 1)).is_ok());
}

/// Method: all failures are in the same slot; their generations tell them apart.
#[test]
fn failures_of_one_slot_are_told_apart() {
    let failures = failures();
    let ticket = |generation| Ticket::new(7, generation);
    let last = 2 * (KEPT as u64 + 10);
    // Every second job fails.
    let failed = (2..=last).step_by(2);
    failed
        .clone()
        .for_each(|generation| _ = abandon(&failures, ticket(generation)));
    let kept = failed.skip(10);
    for generation in kept {
        assert!(is_known(&failures, ticket(generation)), "{generation}");
        assert!(failures.verdict(ticket(generation - 1)).is_ok());
    }
}

/// Method: parts of one scope fail. The first failure is kept until it is taken, whatever else fails
/// meanwhile.
#[test]
fn the_first_failure_of_a_scope_is_kept_until_it_is_taken() {
    let failures = failures();
    let scope = Ticket::new(9, 3);
    let part = |text: &'static str| Failure::panicked(label(), Payload::new(Box::new(text)));
    assert_eq!(
        failures
            .keep(scope, part("first"))
            .0
            .iter()
            .flatten()
            .count(),
        0
    );
    assert_eq!(
        failures
            .keep(scope, part("second"))
            .0
            .iter()
            .flatten()
            .count(),
        1
    );
    for index in 10..2 * KEPT as u32 {
        abandon(&failures, Ticket::new(index, 2));
    }
    match failures.take(scope).0 {
        Some(WaitError::Panicked { message, .. }) => assert_eq!(&*message, "first"),
        _ => panic!("it was not kept"),
    }
    assert!(failures.take(scope).0.is_none());
}

/// Method: a job with a handle fails, and then more others fail than are kept. Its failure is known as long
/// as the handle exists, and after that as long as any other.
#[test]
fn what_a_handle_holds_is_not_forgotten() {
    let failures = failures();
    let job = Ticket::new(9, 3);
    let label = label();
    let surplus = failures.keep(job, Failure::Abandoned { label });
    assert_eq!(surplus.0.iter().flatten().count(), 0);
    for index in 10..2 * KEPT as u32 {
        abandon(&failures, Ticket::new(index, 2));
    }
    assert!(is_known(&failures, job));
    assert_eq!(failures.let_go(job).0.iter().flatten().count(), 1);
    assert!(is_known(&failures, job));
    for index in 10..10 + KEPT as u32 {
        abandon(&failures, Ticket::new(index, 3));
    }
    assert!(is_forgotten(&failures, job));
}

/// Method: jobs of one scope fail, with names and without, and one of them is cancelled by another. The scope
/// raises the first failure that no wait has reported, and the rest is handed back to be dropped.
#[test]
fn a_scope_raises_the_first_failure_that_was_not_reported() {
    let panicked = |text: &'static str| Failure::panicked(label(), UserValue::new(Box::new(text)));
    let jobs = [1, 2, 3].map(|index| Ticket::new(index, 1));
    let raised = |reported: &[usize], has_anonymous: bool| {
        let (failures, scope) = (failures(), Ticket::new(0, 1));
        let lately = Keep::Lately;
        drop(failures.add_in(scope, jobs[0], panicked("first"), lately));
        let cause = failures.cause_of(jobs[0]).expect("it has just failed");
        let cancelled = Failure::Cancelled {
            label: label(),
            cause,
        };
        drop(failures.add_in(scope, jobs[1], cancelled, lately));
        if has_anonymous {
            drop(failures.keep(scope, panicked("anonymous")));
        }
        drop(failures.add_in(scope, jobs[2], panicked("last"), lately));
        for &job in reported {
            assert!(failures.verdict(jobs[job]).is_err());
        }
        // The scope is over, and the next job in its slot has failed, too.
        abandon(&failures, Ticket::new(0, 2));
        let (error, rest) = failures.take(scope);
        (
            error.map(|error| error.to_string()),
            rest.into_payloads().count(),
        )
    };
    let expect = |reported: &[usize], has_anonymous, text: Option<&str>, rest| {
        let (raised, left) = raised(reported, has_anonymous);
        assert_eq!(
            (raised.is_some(), left),
            (text.is_some(), rest),
            "{reported:?}"
        );
        if let (Some(raised), Some(text)) = (raised, text) {
            assert!(raised.ends_with(text), "{raised}");
        }
    };
    expect(&[], false, Some("panicked: first"), 0);
    expect(&[0], false, Some("panicked: last"), 0);
    expect(&[0, 2], false, None, 0);
    expect(&[2], true, Some("panicked: first"), 1);
    expect(&[0], true, Some("panicked: anonymous"), 0);
    expect(&[0, 2], true, Some("panicked: anonymous"), 0);
}
