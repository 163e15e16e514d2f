//! Tests of the RTOS's scheduler: tables of threads, without threads.

use event::{Cpu, Nanos, Random, Task};

use super::{Rtos, Rules};
use crate::testing::{
    Script, Shape, Step, Stint, everybody_got_its_time, letters, run, shares, switches,
};
use crate::{Attr, Class, Dequeue, Enqueue};

const ONE_CPU: Shape = Shape {
    cpus: 1,
    tick: Nanos::ZERO,
};
const MS: Nanos = Nanos::from_millis(1);

fn priority(priority: u8) -> Attr {
    Attr {
        priority,
        ..Attr::default()
    }
}

fn threshold(of: u8, threshold: u8) -> Attr {
    Attr {
        threshold: Some(threshold),
        ..priority(of)
    }
}

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// The tasks of source 003: A, B and C receive, D sends three messages to each and relinquishes, in this
/// order of mailboxes.
fn messages(attrs: [Attr; 4], order: [usize; 9], cycles: u64) -> Vec<Script> {
    let (send, receive) = (Nanos(40), Nanos(48));
    let mut scripts: Vec<Script> = (0..3)
        .map(|me| {
            let steps = [Step::Receive(me), Step::Run(receive)];
            Script::forever(attrs[me].clone(), &steps)
        })
        .collect();
    let mut steps: Vec<Step> = order
        .iter()
        .flat_map(|&to| [Step::Run(send), Step::Send(to)])
        .collect();
    steps.push(Step::Yield);
    scripts.push(Script {
        rounds: cycles,
        ..Script::once(attrs[3].clone(), &steps)
    });
    scripts
}

/// Goal: the switches of source 003's example, per cycle of nine messages: 4 with equal priorities, 18 with
/// unique ones, and 4 again if the sender's preemption-threshold keeps the receivers from preempting it;
/// whatever the order of the messages. Method: the switches that fifty more cycles add, as the first one has
/// a beginning.
#[test]
fn messages_cost_four_switches_a_cycle_or_eighteen() {
    let equal = [4, 4, 4, 4].map(priority);
    let unique = [1, 2, 3, 4].map(priority);
    let [a, b, c, _] = unique.clone();
    let with_threshold = [a, b, c, threshold(4, 1)];
    let orders = [[0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1, 2]];
    let cases = [(equal, 4), (unique, 18), (with_threshold, 4)];
    for ((attrs, expected), order) in cases
        .iter()
        .flat_map(|case| orders.map(|order| (case, order)))
    {
        let switches_of = |cycles| {
            let scripts = messages(attrs.clone(), order, cycles);
            let mut class = Rtos::new(Rules::default());
            let stints = run(&mut class, ONE_CPU, &scripts, ms(10));
            let work = shares(&stints, 4);
            assert_eq!(work[3], Nanos(cycles * 9 * 40));
            assert_eq!(work[0], Nanos(cycles * 3 * 48));
            switches(&stints)
        };
        let per_fifty = switches_of(100) - switches_of(50);
        assert_eq!(per_fifty, 50 * expected, "{attrs:?} {order:?}");
    }
}

fn of_a_block(percent: u8) -> Attr {
    Attr {
        percent: Some(percent),
        ..priority(4)
    }
}

fn thousand_cycles() -> Rtos {
    Rtos::new(Rules {
        block: Nanos(1000),
        ..Rules::default()
    })
}

fn lengths(stints: &[Stint]) -> Vec<(u32, u64)> {
    let length = |stint: &Stint| (stint.task.0, (stint.to - stint.from).0);
    stints.iter().map(length).collect()
}

/// Goal: source 003's shares of a block of 1000 cycles, 25/10/10/55 %, are 250/100/100/550 cycles, in turn
/// and to the cycle. Method: four threads that never block, twenty blocks; every stint is compared.
#[test]
fn percentages_of_a_block_are_exact() {
    let spin = |percent| Script::forever(of_a_block(percent), &[Step::Run(MS)]);
    let scripts = [25, 10, 10, 55].map(spin);
    let stints = run(&mut thousand_cycles(), ONE_CPU, &scripts, Nanos(20_000));
    let block = [(0, 250), (1, 100), (2, 100), (3, 550)];
    let expected: Vec<_> = (0..20).flat_map(|_| block).collect();
    assert_eq!(lengths(&stints), expected);
}

/// Goal: a thread that blocks forfeits the rest of its part, and has a whole one the next time; one that
/// joins a lonely thread waits for the rest of that one's part. Method: 25 % and 50 %, in cycles.
#[test]
fn a_part_that_is_not_used_is_forfeited() {
    let steps = [
        Step::Run(Nanos(100)),
        Step::Sleep(Nanos(20)),
        Step::Run(Nanos(400)),
    ];
    let scripts = [
        Script::once(of_a_block(25), &steps),
        Script::once(of_a_block(50), &[Step::Run(Nanos(1200))]),
    ];
    let stints = run(&mut thousand_cycles(), ONE_CPU, &scripts, MS);
    let expected = [(0, 100), (1, 500), (0, 250), (1, 500), (0, 150), (1, 200)];
    assert_eq!(lengths(&stints), expected);

    let mut late = [
        Script::once(of_a_block(25), &[Step::Run(Nanos(800))]),
        Script::once(of_a_block(50), &[Step::Run(Nanos(100))]),
    ];
    late[1].begins = Nanos(610);
    let stints = run(&mut thousand_cycles(), ONE_CPU, &late, MS);
    assert_eq!(lengths(&stints), [(0, 750), (1, 100), (0, 50)]);
}

/// Goal: time slices are counted in ticks, rounded up, given in turn at one priority; none, or a
/// preemption-threshold, means no turns; better threads do not take part. Method: letters of a
/// millisecond, for a table of threads that never block.
#[test]
fn time_slices_end_at_ticks() {
    let slice = |millis, attr| Attr {
        slice: Some(ms(millis)),
        ..attr
    };
    let cases = [
        (
            vec![slice(2, priority(4)), slice(1, priority(4))],
            "AABAABAAB",
        ),
        (
            vec![slice(1, priority(4)), slice(3, priority(4)), priority(4)],
            "ABBBCCCCC",
        ),
        (
            vec![slice(1, threshold(4, 3)), slice(1, priority(4))],
            "AAAAAAAAA",
        ),
        (
            vec![slice(1, priority(4)), slice(1, priority(5))],
            "AAAAAAAAA",
        ),
        (
            vec![slice(1, priority(5)), slice(1, priority(4))],
            "BBBBBBBBB",
        ),
    ];
    for (attrs, expected) in cases {
        let spin = |attr: &Attr| Script::forever(attr.clone(), &[Step::Run(ms(100))]);
        let scripts: Vec<Script> = attrs.iter().map(spin).collect();
        let mut class = Rtos::new(Rules {
            tick: MS,
            ..Rules::default()
        });
        let shape = Shape { cpus: 1, tick: MS };
        let stints = run(&mut class, shape, &scripts, ms(9));
        assert_eq!(letters(&stints, MS), expected, "{attrs:?}");
    }
    let half = Attr {
        slice: Some(Nanos(1_500_000)),
        ..priority(4)
    };
    let spin = Script::forever(half, &[Step::Run(ms(100))]);
    let mut class = Rtos::new(Rules {
        tick: MS,
        ..Rules::default()
    });
    let shape = Shape { cpus: 1, tick: MS };
    let stints = run(&mut class, shape, &[spin.clone(), spin], ms(8));
    assert_eq!(letters(&stints, MS), "AABBAABB");
}

/// Goal: a preempted thread goes on before its equals and with the rest of its slice. Method: slices of
/// 4 ms without ticks; a better thread runs for a millisecond after two.
#[test]
fn a_preempted_thread_keeps_its_place_and_the_rest_of_its_slice() {
    let equal = Attr {
        slice: Some(ms(4)),
        ..priority(4)
    };
    let spin = Script::forever(equal, &[Step::Run(ms(100))]);
    let mut better = Script::once(priority(1), &[Step::Run(MS)]);
    better.begins = ms(2);
    let mut class = Rtos::new(Rules::default());
    let stints = run(&mut class, ONE_CPU, &[spin.clone(), spin, better], ms(13));
    assert_eq!(letters(&stints, MS), "AACAABBBBAAAA");
}

/// Goal: a preemption-threshold lets only better priorities in; a thread preempted under one goes on before
/// all that could not have preempted it; it is over when the thread relinquishes, also towards better
/// ones. Method: A of priority 5 and threshold 2 runs 3 ms, relinquishes, runs 3 ms more; others begin
/// meanwhile.
#[test]
fn a_threshold_keeps_out_what_is_not_better() {
    let steps = [Step::Run(ms(3)), Step::Yield, Step::Run(ms(3))];
    let at = |begins, attr| Script {
        begins: ms(begins),
        ..Script::once(attr, &[Step::Run(ms(2))])
    };
    let scripts = [
        Script::once(threshold(5, 2), &steps),
        at(1, priority(2)),
        at(1, priority(4)),
        at(2, priority(1)),
    ];
    let mut class = Rtos::new(Rules::default());
    let stints = run(&mut class, ONE_CPU, &scripts, ms(20));
    // D preempts at 2; A goes on at 4 and not B or C, which wait until it relinquishes at 5.
    assert_eq!(letters(&stints, MS), "AADDABBCCAAA");
}

/// Goal: thresholds nest: of two threads preempted under thresholds the one with the better threshold goes
/// on first. Method: A under 3, B of priority 2 under 1, C of priority 0; D of priority 1 may preempt A but
/// not B.
#[test]
fn thresholds_nest() {
    let at = |begins, attr, millis| Script {
        begins: ms(begins),
        ..Script::once(attr, &[Step::Run(ms(millis))])
    };
    let scripts = [
        at(0, threshold(5, 3), 4),
        at(1, threshold(2, 1), 4),
        at(2, priority(0), 2),
        at(3, priority(1), 1),
    ];
    let mut class = Rtos::new(Rules::default());
    let stints = run(&mut class, ONE_CPU, &scripts, ms(20));
    assert_eq!(letters(&stints, MS), "ABCCBBBDAAA");
}

/// Goal: an inherited priority counts at once, before those that have it and wait, and is given back.
/// Method: by hand: a low thread runs, is raised to the priority of one that waits for it, lowered again.
#[test]
fn an_inherited_priority_counts_at_once() {
    let (low, equal, cpu) = (Task(0), Task(1), Cpu(0));
    let mut class = Rtos::new(Rules::default());
    class.set_cpus(1);
    class.add(low, &priority(30));
    class.add(equal, &priority(10));
    class.enqueue(cpu, low, Enqueue::New, Nanos(0));
    assert_eq!(class.pick(cpu, None, Nanos(0)), Some(low));
    class.enqueue(cpu, equal, Enqueue::New, Nanos(1));
    assert!(class.preempts(cpu, low, equal, Nanos(1)));
    let lent = class.lend(&priority(10), &priority(30));
    class.set_attr(low, &lent.expect("it is better"), Nanos(1));
    assert_eq!(class.lend(&priority(30), &priority(10)), None);
    assert_eq!(class.pick(cpu, Some(low), Nanos(1)), Some(low));
    class.set_attr(low, &priority(30), Nanos(3));
    assert_eq!(class.pick(cpu, Some(low), Nanos(3)), Some(equal));
    // One that waits goes to the tail.
    class.set_attr(low, &priority(10), Nanos(4));
    assert_eq!(class.pick(cpu, Some(equal), Nanos(4)), Some(equal));
    class.dequeue(cpu, equal, Dequeue::End, Nanos(5));
    class.remove(equal);
    assert_eq!(class.pick(cpu, None, Nanos(5)), Some(low));
    assert_eq!(class.queued(cpu), 1);
}

/// Goal: attributes that the kernel cannot have are refused with a line that says why and what to do. Method:
/// a table of attributes under a limit of 1 and of 2.
#[test]
fn what_exceeds_the_limits_is_refused() {
    let unique = limited(1);
    let error = "priority 4 is taken: at most 1 thread may have it, choose another one";
    assert_eq!(unique.admits(&priority(4)), Err(error.to_string()));
    assert_eq!(unique.admits(&priority(6)), Ok(()));

    let mut two = limited(2);
    assert_eq!(two.admits(&priority(4)), Ok(()));
    two.add(Task(2), &priority(4));
    let refused = two.admits(&priority(4)).unwrap_err();
    assert!(refused.contains("at most 2 threads"), "{refused}");
    two.remove(Task(0));
    assert_eq!(two.admits(&priority(4)), Ok(()));

    let bad = two.admits(&threshold(3, 4)).unwrap_err();
    assert!(bad.contains("choose one from 0 to 3"), "{bad}");
    assert_eq!(two.admits(&threshold(3, 3)), Ok(()));
    for percent in [0, 101] {
        let bad = two.admits(&of_a_block(percent)).unwrap_err();
        assert!(bad.contains("choose 1 to 100"), "{bad}");
    }
}

/// A class with a thread of priority 4 and one of 5, and room for `limit` of each.
fn limited(limit: u32) -> Rtos {
    let mut class = Rtos::new(Rules {
        max_threads_per_priority: Some(limit),
        ..Rules::default()
    });
    class.set_cpus(1);
    class.add(Task(0), &priority(4));
    class.add(Task(1), &priority(5));
    class
}

/// Goal: a waiter lends its priority and nothing else; as source 003 says, only where the priority has room
/// for another thread, so never where priorities are unique; and not where mutexes do not inherit. Method: a
/// waiter of priority 4 and a holder of 5 with a threshold, under different rules, before and after the
/// waiter has lent its priority.
#[test]
fn only_what_has_room_is_lent() {
    let holder = threshold(5, 5);
    let raised = threshold(4, 5);
    for (limit, expected) in [(1, None), (2, Some(raised.clone()))] {
        let mut class = limited(limit);
        assert_eq!(class.lend(&priority(4), &holder), expected);
        if let Some(raised) = &expected {
            class.set_attr(Task(1), raised, Nanos(0));
        }
        assert_eq!(class.lend(&priority(4), &holder), expected);
    }
    let plain = Rtos::new(Rules {
        inherits: false,
        ..Rules::default()
    });
    assert_eq!(plain.lend(&priority(4), &holder), None);
}

/// Goal: the check sees a thread that runs although a better one could preempt it. Method: the kernel
/// forgets to ask whether the better one preempts.
#[test]
fn the_check_sees_a_wrong_order() {
    let mut class = Rtos::new(Rules::default());
    class.set_cpus(1);
    class.add(Task(0), &priority(9));
    class.add(Task(1), &priority(3));
    class.enqueue(Cpu(0), Task(0), Enqueue::New, Nanos(0));
    class.pick(Cpu(0), None, Nanos(0));
    assert_eq!(class.check(Nanos(0)), Ok(()));
    class.enqueue(Cpu(0), Task(1), Enqueue::Wake, Nanos(5));
    let broken = class.check(Nanos(5)).unwrap_err();
    assert!(broken.contains("task 1 of priority 3 waits"), "{broken}");
}

/// Goal: on several CPUs every thread gets its time, none runs where it may not, and the order of priorities
/// holds on each CPU. Method: two hundred random tables of threads, with slices, shares, thresholds, masks;
/// the kernel for tests checks after each decision.
#[test]
fn everybody_gets_its_time_on_any_number_of_cpus() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let cpus = random.within(1, 3) as usize;
        let scripts: Vec<Script> = (0..random.within(1, 7))
            .map(|_| random_script(&mut random, cpus))
            .collect();
        let tick = if seed % 2 == 0 {
            Nanos(100)
        } else {
            Nanos::ZERO
        };
        let mut class = Rtos::new(Rules {
            tick,
            block: Nanos(700),
            ..Rules::default()
        });
        let stints = run(&mut class, Shape { cpus, tick }, &scripts, MS);
        everybody_got_its_time(&stints, &scripts, &format!("seed {seed}"));
    }
}

fn random_script(random: &mut Random, cpus: usize) -> Script {
    let of = random.below(4) as u8;
    let attr = Attr {
        slice: (random.below(2) == 0).then(|| Nanos(random.within(50, 400))),
        percent: (random.below(4) == 0).then(|| random.within(1, 100) as u8),
        threshold: (random.below(3) == 0).then(|| random.below(u64::from(of) + 1) as u8),
        ..priority(of)
    };
    Script::random(random, attr, cpus, 900, 500)
}
