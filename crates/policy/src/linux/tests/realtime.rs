//! `SCHED_FIFO` and `SCHED_RR`.

use event::{Cpu, Nanos, Task};

use super::{Linux, TICK, run};
use crate::testing::{Change, Machine, SPIN, Script, Step, ms, us};
use crate::{Attr, Discipline};

/// Goal: two hogs take turns of exactly 100 ms (V6; measured: 100.0), as policy and as a discipline of their
/// own. Method: the stints.
#[test]
fn round_robin_has_stints_of_100_ms() {
    for (policy, attr) in [
        ("rr", Attr::default()),
        ("eevdf-6.18", Attr::round_robin(10)),
    ] {
        let scripts = vec![Script::forever(attr, &[SPIN]); 2];
        let machine = run(policy, 2, scripts, ms(2000));
        for task in [0, 1] {
            let lengths = machine.lengths(task);
            assert!(lengths.len() >= 8, "{policy}: {lengths:?}");
            assert!(
                lengths[..lengths.len() - 1]
                    .iter()
                    .all(|&length| length == ms(100))
            );
        }
    }
}

/// Goal: a FIFO task runs until it blocks: equals wait, a yield lets each of them run once, and without
/// equals it does nothing (V6: one yield in the whole run). Method: a poller beside a task that computes for
/// 233 ms: it yields once, before that, and never again until the other one is done.
#[test]
fn a_yield_under_fifo_goes_behind_equals() {
    let poller = Script::forever(Attr::default(), &[Step::Run(us(1)), Step::Yield]);
    let compute = Script::once(Attr::default(), &[Step::Run(ms(233))]);
    let scripts = vec![poller, compute];
    let machine = run("fifo", 2, scripts, ms(233));
    assert_eq!(machine.cpu_of(1), ms(233) - us(1));
    assert_eq!(machine.cpu_of(0), us(1));
    // Of a lesser priority, the other one never runs.
    let poller = Script::forever(Attr::fifo(2), &[Step::Run(us(1)), Step::Yield]);
    let compute = Script::forever(Attr::fifo(1), &[SPIN]);
    let machine = run("fifo", 2, vec![poller, compute], ms(20));
    assert_eq!(
        (machine.cpu_of(0), machine.cpu_of(1)),
        (ms(20), Nanos::ZERO)
    );
}

/// Goal: real-time tasks go before all fair ones, at once, and the higher priority before the lower; a
/// preempted one goes on before its equals. Method: a fair spinner and three tasks that begin later; the
/// order of the running tasks.
#[test]
fn the_highest_priority_runs() {
    let scripts = vec![
        Script::forever(Attr::nice(-20), &[SPIN]),
        Script::once(Attr::fifo(10), &[Step::Run(ms(5))]).begins(ms(1)),
        Script::once(Attr::fifo(10), &[Step::Run(ms(5))]).begins(ms(2)),
        Script::once(Attr::round_robin(20), &[Step::Run(ms(5))]).begins(ms(3)),
    ];
    let machine = run("cfs-4.12", 2, scripts, ms(30));
    let order: Vec<(u32, u64)> = machine
        .stints
        .iter()
        .map(|stint| (stint.task.0, stint.from.0 / 1_000_000))
        .collect();
    assert_eq!(order, [(0, 0), (1, 1), (3, 3), (1, 8), (2, 11), (0, 16)]);
}

/// Goal: inheritance works: a task whose priority is raised runs at once, one whose is lowered leaves at
/// once, and goes before its equals. Method: L (10) and a hog M (20) that keeps it from running; L is
/// raised to 30 and back, as a mutex that H waits for does.
#[test]
fn a_raised_priority_counts_at_once() {
    for policy in ["fifo", "eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        let mut machine = Machine::named(policy, 1, 2, TICK);
        let low = machine.add(Script::forever(Attr::fifo(10), &[SPIN]));
        let equal = machine.add(Script::forever(Attr::fifo(10), &[SPIN]));
        let middle = Script::once(Attr::fifo(20), &[Step::Run(ms(300))]);
        let middle = machine.add(middle.begins(ms(1)));
        machine.plan(ms(5), Change::Attr(low, Attr::fifo(30)));
        machine.plan(ms(10), Change::Attr(low, Attr::fifo(10)));
        machine.go(ms(400));
        let order: Vec<(Task, Nanos)> = machine
            .stints
            .iter()
            .map(|stint| (stint.task, stint.from))
            .collect();
        let expected = [
            (low, ms(0)),
            (middle, ms(1)),
            (low, ms(5)),
            (middle, ms(10)),
            (low, ms(306)),
        ];
        assert_eq!(order, expected, "{policy}");
        assert_eq!(machine.cpu_of(equal.0), Nanos::ZERO);
    }
}

/// Goal: a fair task can become a real-time one and come back, while it runs, waits or sleeps, and its
/// share of the fair time is half again afterwards. Method: two spinners and a sleeper; each change, the
/// class's own checks after every decision, and the shares of 4 s after.
#[test]
fn tasks_change_between_the_classes() {
    for policy in ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"] {
        for raised in [0, 1, 2] {
            let mut machine = Machine::named(policy, 1, 2, TICK);
            machine.add(Script::forever(Attr::default(), &[SPIN]));
            machine.add(Script::forever(Attr::default(), &[SPIN]));
            machine.add(Script::forever(
                Attr::default(),
                &[Step::Run(us(900)), Step::Sleep(ms(9))],
            ));
            for round in 0..20 {
                let task = Task(raised);
                machine.plan(ms(50 * round + 21), Change::Attr(task, Attr::fifo(5)));
                machine.plan(ms(50 * round + 27), Change::Attr(task, Attr::default()));
            }
            machine.go(ms(1100));
            let before = [0, 1].map(|task| machine.cpu_of(task).0);
            machine.go(ms(5100));
            let [a, b] = [0, 1].map(|task| machine.cpu_of(task).0 - before[task as usize]);
            assert!(a.abs_diff(b) <= ms(24).0, "{policy}, {raised}: {a} and {b}");
        }
    }
}

/// Goal: a real-time task takes over where it slept if a lesser task runs there, else goes where the least
/// is; one that waits is taken over by a CPU with a lesser task. Method: two CPUs; tasks that begin one after
/// the other, and one whose better leaves it behind.
#[test]
fn real_time_tasks_find_a_cpu() {
    let mut machine = Machine::named("eevdf-6.18", 2, 2, TICK);
    let pinned = machine.add(Script::forever(Attr::fifo(30), &[Step::Sleep(ms(1)), SPIN]).on(0));
    let fair = machine.add(Script::forever(Attr::default(), &[SPIN]));
    let low = machine.add(Script::forever(Attr::fifo(10), &[SPIN]));
    let high = Script::once(Attr::fifo(20), &[Step::Run(ms(10))]);
    let high = machine.add(high.begins(ms(30)));
    machine.go(ms(29));
    let current = |machine: &Linux, cpu| {
        let mut latest = machine.stints.iter().rev();
        latest
            .find(|stint| stint.cpu == Cpu(cpu))
            .map(|stint| stint.task)
    };
    // The fair task has no CPU left; the low one has been pulled to CPU 1 if it was not there.
    assert_eq!(current(&machine, 0), Some(pinned));
    assert_eq!(current(&machine, 1), Some(low));
    machine.go(ms(35));
    assert_eq!(current(&machine, 1), Some(high));
    machine.go(ms(50));
    assert_eq!(current(&machine, 1), Some(low));
    assert!(
        machine.cpu_of(fair.0) <= ms(5),
        "{}",
        machine.cpu_of(fair.0)
    );
}

/// Goal: a CPU that goes over to a lesser task takes over a real-time task that waits elsewhere, at its next
/// tick. Method: the one on CPU 0 ends at 20.5 ms, and leaves a fair one; another one waits on CPU 1.
#[test]
fn a_waiting_real_time_task_is_taken_over() {
    let mut machine = Machine::named("cfs-4.12", 2, 2, TICK);
    machine.add(Script::forever(Attr::default(), &[SPIN]).on(0));
    machine.add(Script::once(Attr::fifo(30), &[Step::Run(us(20_500))]).on(0));
    let low = machine.add(Script::forever(Attr::fifo(10), &[SPIN]));
    machine.add(Script::forever(Attr::fifo(20), &[SPIN]).on(1).begins(ms(2)));
    machine.go(ms(30));
    let stints = machine.stints.iter().filter(|stint| stint.task == low);
    let stints: Vec<_> = stints.map(|stint| (stint.cpu, stint.from)).collect();
    assert_eq!(stints, [(Cpu(1), ms(0)), (Cpu(0), ms(24))]);
}

/// Goal: disciplines given are kept under `fifo` and `rr`. Method: an RR pair under `fifo`, a FIFO pair
/// under `rr`.
#[test]
fn a_discipline_that_is_given_is_kept() {
    let scripts = vec![Script::forever(Attr::round_robin(5), &[SPIN]); 2];
    let machine = run("fifo", 2, scripts, ms(250));
    assert_eq!((machine.cpu_of(0), machine.cpu_of(1)), (ms(150), ms(100)));
    let scripts = vec![Script::forever(Attr::fifo(5), &[SPIN]); 2];
    let machine = run("rr", 2, scripts, ms(250));
    assert_eq!((machine.cpu_of(0), machine.cpu_of(1)), (ms(250), ms(0)));
    let batch = Attr {
        discipline: Discipline::Batch,
        ..Attr::default()
    };
    let scripts = vec![
        Script::forever(batch, &[SPIN]),
        Script::forever(Attr::fifo(1), &[SPIN]),
    ];
    let machine = run("fifo", 2, scripts, ms(20));
    assert_eq!(machine.cpu_of(0), Nanos::ZERO, "0 is below all priorities");
}

/// Goal: only real-time tasks lend their priority, and only to lesser ones; a fair task becomes a FIFO task
/// meanwhile. Method: a table.
#[test]
fn priorities_are_lent_downwards() {
    let machine = |policy| Machine::named(policy, 1, 1, TICK);
    let eevdf = machine("eevdf-6.18");
    let nice = Attr::nice(-20);
    let lent = |waiter, holder| eevdf.class.lend(&waiter, &holder);
    assert_eq!(lent(Attr::nice(-20), Attr::nice(19)), None);
    assert_eq!(lent(Attr::nice(-20), Attr::fifo(1)), None);
    assert_eq!(lent(Attr::fifo(30), Attr::fifo(30)), None);
    assert_eq!(lent(Attr::fifo(20), Attr::round_robin(30)), None);
    assert_eq!(
        lent(Attr::fifo(30), Attr::round_robin(10)),
        Some(Attr::round_robin(30))
    );
    let fair = Attr {
        nice: -20,
        ..Attr::fifo(5)
    };
    assert_eq!(lent(Attr::round_robin(5), nice), Some(fair));
    // Where all are FIFO tasks, those of no discipline lend, too.
    let low = Attr::default();
    let high = Attr {
        priority: 7,
        ..Attr::default()
    };
    assert_eq!(machine("fifo").class.lend(&high, &low), Some(Attr::fifo(7)));
}
