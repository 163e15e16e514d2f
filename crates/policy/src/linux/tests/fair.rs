//! Stints and shares of fair tasks on one CPU, as measured on Linux 6.18.44 with 2 CPUs at 250 Hz
//! (`sched_switch`).

use event::{Nanos, Task};

use super::{TICK, run};
use crate::testing::{Change, Machine, SPIN, Script, Step, ms, us};
use crate::{Attr, Discipline};

fn spinners(attrs: &[Attr]) -> Vec<Script> {
    attrs
        .iter()
        .map(|attr| Script::forever(attr.clone(), &[SPIN]))
        .collect()
}

fn with_slice(slice: Nanos) -> Attr {
    Attr {
        slice: Some(slice),
        ..Attr::default()
    }
}

fn of(discipline: Discipline) -> Attr {
    Attr {
        discipline,
        ..Attr::default()
    }
}

/// Goal: a slice of 1.4 ms is a tick of 4 ms: two spinners have stints of exactly 4 ms and half of the CPU
/// each. Method: 1.5 s (V1), 187 or 188 stints each; measured were 189.
#[test]
fn two_spinners_alternate_every_tick() {
    for policy in ["eevdf-6.18", "eevdf-6.6"] {
        let machine = run(
            policy,
            2,
            spinners(&[Attr::default(), Attr::default()]),
            ms(1500),
        );
        for task in [0, 1] {
            let lengths = machine.lengths(task);
            assert!(
                (186..=188).contains(&lengths.len()),
                "{policy}: {}",
                lengths.len()
            );
            let whole = &lengths[..lengths.len() - 1];
            assert!(
                whole.iter().all(|&length| length == TICK),
                "{policy}: {lengths:?}"
            );
            let off = machine.cpu_of(task).0.abs_diff(ms(750).0);
            assert!(off <= TICK.0, "{policy}: {off} ns off");
        }
    }
}

/// Goal: three spinners take strict turns (V2). Method: the task of each stint.
#[test]
fn three_spinners_rotate() {
    for policy in ["eevdf-6.18", "eevdf-6.6"] {
        let attrs = [Attr::default(), Attr::default(), Attr::default()];
        let machine = run(policy, 2, spinners(&attrs), ms(1500));
        let order: Vec<Task> = machine.stints.iter().map(|stint| stint.task).collect();
        assert!(order.len() > 370);
        for turn in order.windows(4) {
            assert!(
                turn[0] == turn[3] && turn[0] != turn[1] && turn[1] != turn[2],
                "{turn:?}"
            );
        }
    }
}

/// Goal: niceness divides the CPU by weights, in stints of whole ticks (V3): 12 and 4 ms for nice 0 and 5.
/// Method: 20 s; the ratio of CPU time within 3 % of the weights'; of the stints, by far most.
#[test]
fn niceness_divides_by_weights() {
    for policy in ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        for (nice, weight) in [(5, 335), (10, 110)] {
            let attrs = [Attr::nice(0), Attr::nice(nice)];
            let machine = run(policy, 2, spinners(&attrs), ms(20_000));
            // Ratio against ratio, in thousandths.
            let thousandths = machine.cpu_of(0).0 * weight * 1000 / (machine.cpu_of(1).0 * 1024);
            assert!(
                (970..=1030).contains(&thousandths),
                "{policy}, {nice}: {thousandths}"
            );
        }
    }
    let attrs = [Attr::nice(0), Attr::nice(5)];
    let machine = run("eevdf-6.18", 2, spinners(&attrs), ms(20_000));
    for (task, length) in [(0, ms(12)), (1, ms(4))] {
        let lengths = machine.lengths(task);
        let usual = lengths.iter().filter(|&&other| other == length).count();
        assert!(
            usual * 100 > lengths.len() * 90,
            "{usual} of {} are {length}",
            lengths.len()
        );
    }
}

/// Goal: custom slices end at ticks, too: 0.3 and 3 ms change nothing, 10 ms are 12, 20 ms are 20; the
/// share stays half. As measured: 4, 4, 11 to 12, about 20 ms. 6.6 does not know them. Method: two
/// spinners with the same slice, and two with different ones.
#[test]
fn custom_slices_end_at_ticks() {
    let stint = |policy: &str, slices: [Nanos; 2]| {
        let machine = run(policy, 2, spinners(&slices.map(with_slice)), ms(4000));
        let off = machine.cpu_of(0).0.abs_diff(ms(2000).0);
        assert!(off <= ms(20).0, "{policy}, {slices:?}: {off} ns off");
        [0, 1].map(|task| {
            let lengths = machine.lengths(task);
            let inner = &lengths[..lengths.len() - 1];
            assert!(
                inner.iter().all(|&length| length == inner[0]),
                "{slices:?}: {inner:?}"
            );
            inner[0]
        })
    };
    for (slice, expected) in [(us(300), 4), (ms(3), 4), (ms(10), 12), (ms(20), 20)] {
        assert_eq!(
            stint("eevdf-6.18", [slice, slice]),
            [ms(expected); 2],
            "{slice}"
        );
        assert_eq!(stint("eevdf-6.6", [slice, slice]), [ms(4); 2], "{slice}");
    }
    assert_eq!(stint("eevdf-6.18", [us(300), ms(3)]), [ms(4); 2]);
}

/// Goal: with `HRTICK` a slice ends when it is over: two and three spinners take turns of 1.4 ms on two CPUs,
/// as measured on a kernel that has it, custom slices are turns of their length, the shortest one for all,
/// and shares stay as they are. Method: the lengths of stints.
#[test]
fn a_timer_ends_slices() {
    let lengths = |attrs: &[Attr]| {
        let machine = run("eevdf-6.18-hrtick", 2, spinners(attrs), ms(4000));
        let tasks = 0..attrs.len() as u32;
        let usual = tasks.map(|task| {
            let mut lengths = machine.lengths(task);
            lengths.sort_unstable();
            lengths[lengths.len() / 2]
        });
        (usual.collect::<Vec<_>>(), machine.cpu_of(0))
    };
    let usual = Attr::default;
    let (turns, share) = lengths(&[usual(), usual()]);
    assert_eq!(turns, [us(1400); 2]);
    assert!(share.0.abs_diff(ms(2000).0) <= ms(2).0, "{share}");
    assert_eq!(lengths(&[usual(), usual(), usual()]).0, [us(1400); 3]);
    assert_eq!(
        lengths(&[with_slice(us(500)), with_slice(us(500))]).0,
        [us(500); 2]
    );
    assert_eq!(
        lengths(&[with_slice(ms(6)), with_slice(ms(6))]).0,
        [ms(6); 2]
    );
    assert_eq!(lengths(&[with_slice(us(500)), usual()]).0, [us(500); 2]);
    let (_, share) = lengths(&[Attr::nice(5), Attr::nice(0)]);
    let expected = ms(4000).0 * 335 / (335 + 1024);
    assert!(share.0.abs_diff(expected) <= expected / 30, "{share}");
}

/// How long a task that first wakes up 1 ms after a tick, and sleeps for 19.9 ms at a time, waits for a
/// spinner, at most. The first time it runs there is no spinner yet.
fn wake_latency(policy: &str, sleeper: Attr, spinner: Attr) -> Nanos {
    let sleeper = Script::forever(sleeper, &[Step::Run(us(100)), Step::Sleep(us(19_900))]);
    let spinner = Script::forever(spinner, &[SPIN]);
    let scripts = vec![sleeper.begins(ms(1)), spinner.begins(ms(2))];
    run(policy, 2, scripts, ms(2000)).accounts[0].longest_wait
}

/// Goal: a task that wakes up gets in at once if it asked for a short slice, and else when the protection of
/// the running task is over; batch and idle tasks never preempt, and any task preempts an idle one. Method: a
/// task that runs 0.1 of each 20 ms, beside a spinner.
#[test]
fn who_wakes_up_and_is_in_a_hurry_gets_in() {
    let usual = Attr::default;
    let latency = |sleeper, spinner| wake_latency("eevdf-6.18", sleeper, spinner);
    assert_eq!(latency(with_slice(us(300)), usual()), Nanos::ZERO);
    assert!(latency(usual(), usual()) > Nanos::ZERO);
    assert!(latency(usual(), usual()) <= TICK);
    let batch = Attr {
        discipline: Discipline::Batch,
        ..with_slice(us(300))
    };
    assert!(latency(batch, usual()) > Nanos::ZERO);
    assert_eq!(latency(usual(), of(Discipline::Idle)), Nanos::ZERO);
    // It has had more than its share of 3 in 1027, and waits until that is made up for.
    assert!(latency(of(Discipline::Idle), usual()) > ms(8));
    // 6.6 knows no short slices.
    assert!(wake_latency("eevdf-6.6", with_slice(us(300)), usual()) > Nanos::ZERO);
    // CFS pays sleepers.
    assert_eq!(wake_latency("cfs-4.12", usual(), usual()), Nanos::ZERO);
    assert!(wake_latency("cfs-4.12", of(Discipline::Batch), usual()) > Nanos::ZERO);
}

/// Goal: `SCHED_IDLE` gets 3 of 1027. Method: beside a spinner of nice 0.
#[test]
fn idle_tasks_get_what_is_left() {
    for policy in ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        let attrs = [of(Discipline::Idle), Attr::default()];
        let machine = run(policy, 2, spinners(&attrs), ms(60_000));
        let expected = ms(60_000).0 * 3 / 1027;
        let off = machine.cpu_of(0).0.abs_diff(expected);
        assert!(
            off < expected / 10,
            "{policy}: {} of {expected}",
            machine.cpu_of(0)
        );
    }
}

/// Goal: CFS's stints are shares of a period, rounded up to a tick: 12 ms of 24 for two spinners on 8 CPUs
/// end at the first tick after. Method: the stints.
#[test]
fn a_share_of_a_period_ends_at_the_tick_after() {
    let machine = run(
        "cfs-4.12",
        8,
        spinners(&[Attr::default(), Attr::default()]),
        ms(3000),
    );
    let lengths = machine.lengths(0);
    assert!(
        lengths[..lengths.len() - 1]
            .iter()
            .all(|&length| length == ms(16)),
        "{lengths:?}"
    );
}

/// Goal: a change of niceness counts from then on, for the one that runs as for one that waits. Method: two
/// equal spinners for 2 s, then one of nice 5 for 10 s.
#[test]
fn a_change_of_niceness_counts_at_once() {
    for policy in ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        for task in [Task(0), Task(1)] {
            let mut machine = Machine::named(policy, 1, 2, TICK);
            for script in spinners(&[Attr::default(), Attr::default()]) {
                machine.add(script);
            }
            machine.plan(ms(2001), Change::Attr(task, Attr::nice(5)));
            machine.go(ms(2001));
            let before = [0, 1].map(|task| machine.cpu_of(task).0);
            machine.go(ms(12_001));
            let [a, b] = [0, 1].map(|task| machine.cpu_of(task).0 - before[task as usize]);
            let (nice, normal) = if task == Task(0) { (a, b) } else { (b, a) };
            let thousandths = normal * 335 * 1000 / (nice * 1024);
            assert!(
                (970..=1030).contains(&thousandths),
                "{policy}, {task:?}: {thousandths}"
            );
        }
    }
}

/// Goal: sleeping pays off no debt where dequeue is delayed. Method: a task that runs for 3.9 ms and then
/// sleeps for 0.1 ms before each tick, beside a spinner, must not get more than half by more than a tick's
/// worth; it is the one that is over its share at each end.
#[test]
fn sleeping_pays_off_no_debt() {
    let sleeper = Script::forever(
        Attr::default(),
        &[Step::Run(us(3_900)), Step::Sleep(us(100))],
    );
    let scripts = vec![sleeper, Script::forever(Attr::default(), &[SPIN])];
    let machine = run("eevdf-6.18", 2, scripts, ms(4000));
    let (sleeper, spinner) = (machine.cpu_of(0), machine.cpu_of(1));
    assert_eq!(sleeper + spinner, ms(4000));
    assert!(sleeper <= ms(2000) + TICK, "{sleeper}");
}
