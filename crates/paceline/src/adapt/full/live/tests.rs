//! The view of a machine that changes from refresh to refresh.

use event::{Random, Resized};
use platform::{Os, Quota};

use super::*;
use crate::adapt::workers::RefusedWorker;

fn machine(cpus: u32, quota_millis: Option<u64>) -> Limits {
    let quota = quota_millis.and_then(|millis| Quota::new(100 * millis, 100_000));
    Limits {
        quota,
        ..Limits::of((0..cpus).collect())
    }
}

fn fitting(cpus: u32) -> MachineView {
    MachineView::new(
        machine(cpus, None),
        WorkersRequest::Fitting { reserve: 1 },
        64,
    )
}

/// Goal: growing counts at once, shrinking when it was seen twice. Method: a machine that loses three CPUs
/// for a moment, then for good, then loses more of them, and gets all back.
#[test]
fn shrinking_is_confirmed_and_growing_is_not() {
    let mut view = fitting(8);
    let mut found = Vec::new();
    for cpus in [5, 8, 5, 5, 4, 3, 3, 8] {
        let learned = view.learn(machine(cpus, None));
        found.push((view.width, view.workers(), learned.must_confirm));
    }
    let expected = [
        (8, 7, true),
        (8, 7, false),
        (8, 7, true),
        (5, 4, false),
        (5, 4, true),
        (5, 4, true),
        (3, 2, false),
        (8, 7, false),
    ];
    assert_eq!(found, expected);
}

/// Goal: a quota counts, and stops spinning at once, before it is confirmed. Method: a quota of one and a
/// half CPUs of four.
#[test]
fn a_quota_counts_and_stops_spinning_at_once() {
    let mut view = fitting(4);
    assert!(!view.width_now().is_rationed);
    view.learn(machine(4, Some(1_500)));
    let width = view.width_now();
    assert_eq!((width.threads, width.is_rationed), (4, true));
    assert_eq!(Width::unpack(width.pack()), width);
    let learned = view.learn(machine(4, Some(1_500)));
    assert_eq!(learned.change, Some(Resized::Narrower));
    assert_eq!((view.width, view.workers()), (2, 1));
    let learned = view.learn(machine(4, None));
    assert_eq!(learned.change, Some(Resized::Wider));
    assert!(!view.width_now().is_rationed);
}

/// Goal: a requested number of workers is a ceiling if it fitted the machine, and stays otherwise. Method:
/// numbers from none to more than there are CPUs, on a machine of four that shrinks and grows.
#[test]
fn a_requested_number_is_respected() {
    let workers = |workers, width| {
        let width_then = 4;
        let request = WorkersRequest::Exactly {
            workers,
            width_then,
        };
        request.workers(width)
    };
    for width in [1, 2, 3, 4, 8] {
        assert_eq!(workers(0, width), 0, "none means none");
        assert_eq!(workers(1, width), 1);
        assert_eq!(workers(4, width), width.min(4));
        assert_eq!(workers(5, width), 5, "meant that way");
    }
}

/// Goal: after a refusal as many workers are wanted as the system has started, whatever the machine does,
/// until a refresh tries again; where the system starts no threads none does. Method: a machine that grows
/// after both kinds of refusal.
#[test]
fn refused_workers_are_wanted_again_where_that_is_of_use() {
    for (kind, again) in [
        (RefusalKind::Exhausted, true),
        (RefusalKind::Unsupported, false),
    ] {
        let mut view = fitting(4);
        let error = SpawnError::new(kind, "refused");
        view.refused = Some(RefusedWorker { before: 1, error });
        assert_eq!((view.workers(), view.workers_if_started()), (1, 3));
        let learned = view.learn(machine(6, None));
        assert_eq!(learned.is_undermanned, again);
        assert_eq!(view.workers(), if again { 5 } else { 1 });
        assert!(!view.learn(machine(6, None)).is_undermanned);
    }
}

/// Goal: whatever the machine does, the width grows at once, shrinks to a number that two refreshes in a
/// row have found, and stays otherwise. It is never zero, and the number of workers follows. Method: random
/// machines, a thousand refreshes each, against that rule in other words.
#[test]
fn the_width_follows_any_machine() {
    let (machines, refreshes) = if cfg!(miri) { (1, 50) } else { (20, 1_000) };
    for seed in 0..machines {
        let mut random = Random::new(seed);
        let mut view = fitting(1 + random.below(16) as u32);
        let mut before = view.width;
        for _ in 0..refreshes {
            let (cpus, quota) = (random.below(5) as u32, random.below(8_000));
            let quota = (random.below(2) == 0).then_some(quota);
            let limits = machine(cpus, quota);
            let found = limits.effective_parallelism();
            let was = view.width;
            let learned = view.learn(limits);
            let wanted = match found {
                _ if found >= was => found,
                _ if found == before => found,
                _ => was,
            };
            assert_eq!(view.width, wanted, "seed {seed}");
            assert_eq!(learned.change.is_some(), wanted != was);
            assert_eq!(learned.must_confirm, found < wanted);
            assert_eq!(view.workers(), (wanted - 1).max(1));
            before = found;
        }
    }
}

/// Goal: CPUs that come back are noticed, and so are CPUs that were not there at the beginning. Method: one
/// CPU goes and comes back while another one appears.
#[test]
fn cpus_that_come_are_noticed() {
    let mut view = fitting(2);
    assert!(!view.learn(machine(2, None)).has_new_cpus);
    assert!(!view.learn(machine(1, None)).has_new_cpus);
    assert!(view.learn(machine(3, None)).has_new_cpus);
    assert!(view.seen().iter().eq(0..3));
}

#[test]
fn common_cpus_are_those_of_both_or_all() {
    let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
    assert_eq!(common(&set(&[0, 1]), None), set(&[0, 1]));
    assert_eq!(common(&set(&[0, 1]), Some(&set(&[1, 2]))), set(&[1]));
    assert_eq!(common(&set(&[0, 1]), Some(&set(&[2]))), set(&[0, 1]));
}

/// Goal: there is one refresh a period, and none before its time. The next one is due sooner if no thread
/// has done the last one, or if its findings have to be confirmed. Method: the words, without a machine.
#[test]
fn one_refresh_is_due_a_period() {
    let live: LiveMachine<Os> = LiveMachine::new(fitting(2), None, Some(Nanos(5)));
    assert!(!live.takes_turn(PERIOD + Nanos(4)));
    let first = PERIOD + Nanos(5);
    assert!(live.takes_turn(first));
    assert!(
        !live.takes_turn(first) && !live.request_refresh(),
        "one is requested"
    );
    // No worker had time for it.
    assert!(live.takes_turn(first + CONFIRM) && live.request_refresh());
    live.refreshed(first, false);
    assert!(!live.takes_turn(first + PERIOD - Nanos(1)));
    assert!(live.takes_turn(first + PERIOD));
    live.refreshed(first, true);
    assert!(live.takes_turn(first + CONFIRM));
    let never: LiveMachine<Os> = LiveMachine::new(fitting(2), None, None);
    assert!(!never.takes_turn(Nanos(u64::MAX - 1)));
}
