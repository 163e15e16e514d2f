//! Fair tasks on several CPUs.

use event::{Cpu, Nanos};

use super::{Linux, TICK};
use crate::Attr;
use crate::testing::{Change, Machine, SPIN, Script, Step, Stint, ms, us};

const FAIR: [&str; 3] = ["eevdf-6.18", "eevdf-6.6", "cfs-4.12"];

/// Goal: no CPU idles while another one has two tasks. Method: eight tasks of 10 ms on four CPUs, all begun
/// at once, take 20 ms; the CPU of one that ends earlier takes over a waiting task.
#[test]
fn an_idle_cpu_takes_what_waits() {
    for policy in FAIR {
        let mut machine = Machine::named(policy, 4, 4, TICK);
        for length in [4, 4, 8, 8, 12, 12, 16, 16] {
            machine.add(Script::once(Attr::default(), &[Step::Run(ms(length))]));
        }
        machine.go(ms(40));
        let last = machine.stints.iter().map(|stint| stint.to).max();
        assert!(last <= Some(ms(28)), "{policy}: {last:?}");
        let all: u64 = machine.accounts.iter().map(|account| account.cpu.0).sum();
        assert_eq!(all, ms(80).0);
    }
}

/// Goal: a CPU that idles takes one of two spinners at its third look: the waiting one has just been put
/// aside, by a tick, and is left alone twice. If it has waited for long, it goes at the first one. Method:
/// the other CPU is away until just after a tick (ticks are every 4 ms), or until 1 ms after; the CPU time of
/// 60 ms tells until when it was idle.
#[test]
fn an_idle_cpu_takes_a_spinner_at_its_third_look() {
    // Tasks that switch at every tick here.
    for policy in ["eevdf-6.18", "eevdf-6.6"] {
        for (online, taken) in [(us(28_100), ms(36)), (ms(29), ms(29))] {
            let mut machine = Machine::named(policy, 2, 2, TICK);
            for _ in 0..2 {
                machine.add(Script::forever(Attr::default(), &[SPIN]));
            }
            machine.plan(ms(5), Change::Offline(Cpu(1)));
            machine.plan(online, Change::Online(Cpu(1)));
            machine.go(ms(60));
            let used: u64 = machine.accounts.iter().map(|account| account.cpu.0).sum();
            assert_eq!(ms(120).0 - used + ms(5).0, taken.0, "{policy}");
        }
    }
}

/// Goal: three spinners on two CPUs share in turn. Method: 10 s; each within 20 % of two thirds.
#[test]
fn three_spinners_share_two_cpus() {
    for policy in FAIR {
        let mut machine = Machine::named(policy, 2, 2, TICK);
        for _ in 0..3 {
            machine.add(Script::forever(Attr::default(), &[SPIN]));
        }
        machine.go(ms(10_000));
        for task in 0..3 {
            let off = machine.cpu_of(task).0.abs_diff(ms(6_667).0);
            assert!(off < ms(1333).0, "{policy}: {:?}", machine.accounts);
        }
    }
}

/// Goal: balance divides weights, not numbers, and leaves what may not move. Method: a spinner of nice −5
/// and three of nice 0 on two CPUs: the heavy one has a CPU to itself for most of the time. A spinner that
/// is pinned beside another one stays.
#[test]
fn balance_divides_weights() {
    for policy in FAIR {
        let mut machine = Machine::named(policy, 2, 2, TICK);
        machine.add(Script::forever(Attr::nice(-5), &[SPIN]));
        for _ in 0..3 {
            machine.add(Script::forever(Attr::default(), &[SPIN]));
        }
        machine.go(ms(4000));
        assert!(
            machine.cpu_of(0) > ms(3200),
            "{policy}: {}",
            machine.cpu_of(0)
        );
        // 4145 against 2048: the difference is less than what could move.
        let mut machine = Machine::named(policy, 2, 2, TICK);
        for cpu in [0, 1, 1] {
            machine.add(Script::forever(Attr::default(), &[SPIN]).on(cpu));
        }
        let heavy = machine.add(Script::forever(Attr::nice(-5), &[SPIN]));
        machine.go(ms(1000));
        let mut mine = machine.stints.iter().filter(|stint| stint.task == heavy);
        assert!(
            mine.all(|stint| stint.cpu == Cpu(0)),
            "{policy}: the heavy one moved"
        );
        let mut machine = Machine::named(policy, 2, 2, TICK);
        machine.add(Script::forever(Attr::default(), &[SPIN]).on(0));
        machine.add(Script::forever(Attr::default(), &[SPIN]).on(0));
        machine.go(ms(400));
        assert!(machine.stints.iter().all(|stint| stint.cpu == Cpu(0)));
        assert!(
            machine.cpu_of(0).0.abs_diff(ms(200).0) <= ms(12).0,
            "{policy}"
        );
    }
}

/// Goal: tasks leave a CPU that goes away, and come back. Method: four spinners on two CPUs, one of which
/// is offline for 100 ms; all CPU time is used, before, during and after.
#[test]
fn tasks_leave_a_cpu_that_goes_away() {
    for policy in FAIR {
        let mut machine = Machine::named(policy, 2, 2, TICK);
        for _ in 0..4 {
            let steps = [Step::Run(ms(3)), Step::Sleep(us(10))];
            machine.add(Script::forever(Attr::default(), &steps));
        }
        machine.plan(ms(101), Change::Offline(Cpu(1)));
        machine.plan(ms(201), Change::Online(Cpu(1)));
        machine.go(ms(101));
        let sum = |machine: &Linux| -> u64 {
            let accounts = machine.accounts.iter();
            accounts.map(|account| account.cpu.0).sum()
        };
        assert!(sum(&machine) > ms(200).0, "{policy}: {}", sum(&machine));
        machine.go(ms(201));
        let there =
            |stint: &&Stint| stint.cpu == Cpu(1) && stint.from > ms(101) && stint.from < ms(201);
        assert_eq!(machine.stints.iter().find(there), None, "{policy}");
        assert!(sum(&machine) > ms(299).0, "{policy}: {}", sum(&machine));
        machine.go(ms(301));
        assert!(sum(&machine) > ms(498).0, "{policy}: {}", sum(&machine));
    }
}

/// Goal: a task that sleeps while it competes (delayed dequeue) wakes up where it does, although another CPU
/// idles. Method: it runs for 3.9 ms beside a spinner, sleeps for 0.2 ms; it must not run before the next
/// tick. In 6.6 it goes to the idle CPU at once.
#[test]
fn a_sleeper_in_debt_stays() {
    for (policy, next) in [("eevdf-6.18", ms(8)), ("eevdf-6.6", us(4_100))] {
        let mut machine = Machine::named(policy, 2, 2, TICK);
        machine.add(Script::once(Attr::default(), &[Step::Run(us(3_950))]).on(1));
        let steps = [Step::Run(us(3_900)), Step::Sleep(us(200))];
        let sleeper = machine.add(Script::forever(Attr::default(), &steps));
        machine.add(Script::forever(Attr::default(), &[SPIN]).on(0));
        machine.go(ms(11));
        let stints = machine.stints.iter().filter(|stint| stint.task == sleeper);
        let from: Vec<Nanos> = stints.map(|stint| stint.from).collect();
        assert_eq!(from[..2], [Nanos::ZERO, next], "{policy}");
    }
}

/// Goal: it wakes up elsewhere if its CPU has gone meanwhile. Method: a task that sleeps in debt, again and
/// again, beside a spinner on each of two CPUs; its CPU goes offline. The class checks itself after every
/// decision.
#[test]
fn a_sleeper_in_debt_leaves_a_cpu_that_goes_away() {
    let mut machine = Machine::named("eevdf-6.18", 2, 2, TICK);
    machine.add(Script::forever(Attr::default(), &[SPIN]).on(0));
    machine.add(Script::forever(Attr::default(), &[SPIN]).on(1));
    let sleeper = machine.add(Script::forever(
        Attr::default(),
        &[Step::Run(ms(3)), Step::Sleep(us(100))],
    ));
    machine.go(ms(400));
    let homes = |machine: &Linux, from: Nanos| -> Vec<Cpu> {
        let stints = machine.stints.iter();
        let mine = stints.filter(|stint| stint.task == sleeper && stint.from > from);
        mine.map(|stint| stint.cpu).collect()
    };
    let home = *homes(&machine, Nanos::ZERO).last().expect("it ran");
    machine.plan(ms(410), Change::Offline(home));
    machine.go(ms(600));
    let after = homes(&machine, ms(411));
    assert!(!after.is_empty() && after.iter().all(|&cpu| cpu != home));
}

/// Goal: a task preempted by a real-time task goes to a CPU that idles already: a fair task at the next tick,
/// a real-time task at once. Method: the intruder is pinned to CPU 0 and comes at 5 ms.
#[test]
fn a_cpu_that_idles_is_kicked() {
    for policy in FAIR {
        for (attr, moves) in [(Attr::default(), ms(8)), (Attr::fifo(10), ms(5))] {
            let mut machine = Machine::named(policy, 2, 2, TICK);
            let victim = machine.add(Script::forever(attr, &[SPIN]));
            machine.add(Script::forever(Attr::fifo(20), &[SPIN]).on(0).begins(ms(5)));
            machine.go(ms(20));
            let stints = machine.stints.iter().filter(|stint| stint.task == victim);
            let stints: Vec<_> = stints.map(|stint| (stint.cpu, stint.from)).collect();
            assert_eq!(stints, [(Cpu(0), Nanos::ZERO), (Cpu(1), moves)], "{policy}");
        }
    }
}
