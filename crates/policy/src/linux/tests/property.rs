//! Random tables against laws that hold for any of them.

use event::{Cpu, Nanos, Random, Task};

use super::TICK;
use crate::testing::{Change, Machine, SPIN, Script, Step, ms, us};
use crate::{Attr, Discipline, Mask};

const FAIR: [&str; 4] = ["eevdf-6.18", "eevdf-6.18-hrtick", "eevdf-6.6", "cfs-4.12"];

fn a_fair_attr(random: &mut Random) -> Attr {
    let slices = [
        None,
        None,
        Some(us(100)),
        Some(us(300)),
        Some(ms(3)),
        Some(ms(20)),
    ];
    let disciplines = [
        Discipline::Fair,
        Discipline::Fair,
        Discipline::Fair,
        Discipline::Batch,
        Discipline::Idle,
    ];
    Attr {
        discipline: disciplines[random.below(5) as usize],
        nice: random.within(0, 39) as i8 - 20,
        slice: slices[random.below(6) as usize],
        ..Attr::default()
    }
}

fn some_steps(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.within(1, 4) {
        // Of any magnitude from 1 µs to 10 ms.
        let magnitude = 10u64.pow(random.within(3, 6) as u32);
        let time = Nanos(random.within(magnitude, 10 * magnitude));
        match random.below(4) {
            0 => steps.push(Step::Sleep(time)),
            1 => steps.extend([Step::Run(time), Step::Yield]),
            _ => steps.push(Step::Run(time)),
        }
    }
    // It has to begin with something that runs.
    steps.insert(0, Step::Run(Nanos(random.within(1_000, 5_000_000))));
    steps
}

/// Goal: whatever tasks do, the class's own checks hold (bounded lag, right sums, sorted lists), it queues
/// the ready tasks and no others, no CPU idles beside its own queue, and no time is counted twice. Method:
/// 120 random tables for each policy on 1 to 4 CPUs, with several ticks or none, masks, new attributes and a
/// CPU that goes away; all are checked after each decision.
#[test]
fn laws_of_any_table() {
    for policy in FAIR {
        for seed in 0..120 {
            let mut random = Random::new(seed);
            let cpus = random.within(1, 4) as usize;
            let ticks = [TICK, TICK, ms(1), ms(10), Nanos(3_333_333), Nanos::ZERO];
            let tick = ticks[random.below(6) as usize];
            let mut machine = Machine::named(policy, cpus, cpus, tick);
            let tasks = random.within(2, 9);
            let mut scripts = Vec::new();
            for _ in 0..tasks {
                let mut script =
                    Script::forever(a_fair_attr(&mut random), &some_steps(&mut random));
                if random.below(4) == 0 {
                    script.attr = Attr::fifo(random.within(1, 3) as u8);
                    script.steps.push(Step::Sleep(ms(random.within(20, 60))));
                }
                if random.below(4) == 0 {
                    script.mask = Mask::of([Cpu(random.below(cpus as u64) as u32)]);
                }
                script.begins = us(random.below(50_000));
                if random.below(4) == 0 {
                    script.rounds = random.within(1, 100);
                }
                scripts.push(script);
            }
            scripts.sort_by_key(|script| script.begins);
            for script in scripts {
                machine.add(script);
            }
            let mut time = Nanos::ZERO;
            for _ in 0..random.below(8) {
                time += us(random.within(1, 200_000));
                let task = Task(random.below(tasks) as u32);
                let change = match random.below(4) {
                    0 => Change::Offline(Cpu(cpus as u32 - 1)),
                    1 => Change::Online(Cpu(cpus as u32 - 1)),
                    _ => Change::Attr(task, a_fair_attr(&mut random)),
                };
                let last = cpus == 1 && matches!(change, Change::Offline(_));
                if !last {
                    machine.plan(time, change);
                }
            }
            machine.label = format!("{policy}, seed {seed}");
            machine.go(ms(1000));
            let all: u64 = machine.accounts.iter().map(|account| account.cpu.0).sum();
            let stints = machine.stints.iter().map(|stint| (stint.to - stint.from).0);
            assert_eq!(all, stints.sum::<u64>(), "{policy}, seed {seed}");
            assert!(all <= cpus as u64 * ms(1000).0, "{policy}, seed {seed}");
        }
    }
}

/// Goal: n tasks that always run share one CPU by weight, each within the bounds of lag, and no time is lost.
/// Method: 200 random sets of spinners; Σ of CPU time = elapsed, exactly; no task has more than a slice and a
/// tick too much, nor less than that and the excess of the others, spread over all.
#[test]
fn spinners_share_by_weight() {
    for policy in ["eevdf-6.18", "eevdf-6.6"] {
        for seed in 0..200 {
            let mut random = Random::new(1000 + seed);
            let count = random.within(2, 8) as usize;
            let mut machine = Machine::named(policy, 1, 8, TICK);
            let mut weights = Vec::new();
            let mut slices = Vec::new();
            for _ in 0..count {
                let nice = random.within(0, 10) as i8 - 5;
                let slice = [None, Some(us(200)), Some(ms(9))][random.below(3) as usize];
                let attr = Attr {
                    slice,
                    ..Attr::nice(nice)
                };
                weights.push(super::super::weights::Weight::of(&attr).value() as u64);
                slices.push(slice.unwrap_or(us(2_800)));
                machine.add(Script::forever(attr, &[SPIN]));
            }
            machine.go(ms(5000));
            let all: u64 = machine.accounts.iter().map(|account| account.cpu.0).sum();
            assert_eq!(all, ms(5000).0, "{policy}, seed {seed}");
            let sum: u64 = weights.iter().sum();
            let ahead: u64 = slices.iter().map(|slice| slice.0 + 2 * TICK.0).sum();
            for task in 0..count {
                let ideal = ms(5000).0 * weights[task] / sum;
                let had = machine.cpu_of(task as u32).0;
                let bound = slices[task].0 + TICK.0;
                let spread = ahead * weights[task] / sum;
                let within = ideal - (bound + spread)..=ideal + bound;
                assert!(
                    within.contains(&had),
                    "{policy}, seed {seed}: {had}, of {within:?}"
                );
            }
        }
    }
}

/// Goal: no task starves. Method: spinners of equal weight, sleepers and pollers among them, on one CPU: the
/// longest wait is that for all others' longest stints, twice.
#[test]
fn nobody_starves() {
    for policy in FAIR {
        for seed in 0..60 {
            let mut random = Random::new(2000 + seed);
            let count = random.within(2, 8);
            let mut machine = Machine::named(policy, 1, 2, TICK);
            for _ in 0..count {
                let steps = match random.below(2) {
                    0 => vec![SPIN],
                    _ => some_steps(&mut random),
                };
                machine.add(Script::forever(Attr::default(), &steps));
            }
            machine.go(ms(3000));
            // CFS: a period of 12 ms, and a tick more for every task.
            let stint = TICK.0 * 2 + ms(12).0 / count;
            let bound = Nanos(2 * count * stint);
            for account in &machine.accounts {
                assert!(
                    account.longest_wait <= bound,
                    "{policy}, {seed}: {account:?}, {bound}"
                );
            }
        }
    }
}

/// Goal: a policy is a function of the calls. Method: the same table twice; equal stints.
#[test]
fn equal_calls_give_equal_answers() {
    for policy in FAIR {
        let run = || {
            let mut random = Random::new(7);
            let mut machine = Machine::named(policy, 3, 3, TICK);
            for _ in 0..9 {
                machine.add(Script::forever(
                    a_fair_attr(&mut random),
                    &some_steps(&mut random),
                ));
            }
            machine.go(ms(500));
            machine.stints
        };
        assert_eq!(run(), run());
    }
}
