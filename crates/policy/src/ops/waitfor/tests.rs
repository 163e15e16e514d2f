//! Tests of the policy: by hand on a desk, and on CPUs with tasks that say true and false things.

use event::{Cpu, Nanos, Random, Task};

use super::{STEPS_MAX, WaitFor, WaitForConstants};
use crate::ops::desk::{self, Desk};
use crate::ops::{Dispatch, Ext, Kernel, Model, Ops, Queued};
use crate::testing::{SPIN, Script, Shape, Step, everybody_got_its_time, ms, run, shares, us};
use crate::{Attr, Class};

const SLICE: Nanos = Nanos::from_millis(3);

fn policy() -> WaitFor {
    WaitFor::new(WaitForConstants {
        slice: SLICE,
        credit: SLICE,
    })
}

/// The message of a task that used `used` in a turn that began then.
fn message(began: Nanos, task: Task, used: Nanos) -> Queued {
    Queued {
        start: began,
        stop: began + used,
        ..desk::message(task, used)
    }
}

/// A desk with one CPU, on which these tasks are ready; each has used this much.
fn ready(used: &[(u32, u64)]) -> Desk {
    let mut desk = Desk::new(1, 1);
    for &(task, millis) in used {
        desk.messages
            .push_back(message(Nanos::ZERO, Task(task), ms(millis)));
    }
    desk
}

/// The tasks in the order in which they are dispatched; none comes back.
fn order(policy: &mut WaitFor, desk: &mut Desk) -> Vec<u32> {
    let mut order = Vec::new();
    loop {
        let left = policy.round(desk);
        order.extend(desk.answers.drain(..).map(|answer| answer.task.0));
        if left == 0 {
            return order;
        }
    }
}

fn says(desk: &mut Desk, waiter: u32, others: &[u32]) {
    let others = others.iter().copied().map(Task).collect();
    desk.waits.insert(Task(waiter), others);
}

/// Goal: without statements the least account goes first. Method: three tasks by hand.
#[test]
fn the_least_account_goes_first() {
    let mut desk = ready(&[(0, 3), (1, 1), (2, 2)]);
    assert_eq!(order(&mut policy(), &mut desk), [1, 2, 0]);
}

/// Goal: a sleeping waiter's account carries what it waits for, through a chain of tasks that wait. Method:
/// task 9 sleeps and waits for 8, which waits for 0; task 0 has used most of all and goes first.
#[test]
fn funding_follows_a_chain_of_waits() {
    let mut desk = ready(&[(0, 9), (1, 1), (2, 2)]);
    says(&mut desk, 9, &[8]);
    says(&mut desk, 8, &[7, 0]);
    assert_eq!(order(&mut policy(), &mut desk), [0, 1, 2]);
}

/// Goal: a waiter that is ready comes after what it waits for, with its account; in a circle one goes.
/// Method: a spinner that has used nothing and its dependency; then three tasks that wait in a circle.
#[test]
fn a_ready_waiter_lets_its_dependency_go_first() {
    let mut desk = ready(&[(0, 0), (1, 5), (2, 1)]);
    says(&mut desk, 0, &[1]);
    assert_eq!(order(&mut policy(), &mut desk), [1, 0, 2]);

    let mut desk = ready(&[(0, 1), (1, 1), (2, 1)]);
    for waiter in 0..3 {
        says(&mut desk, waiter, &[(waiter + 1) % 3]);
    }
    let mut all = order(&mut policy(), &mut desk);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
}

/// Goal: a waiter that was woken up waits no more, whatever is still said for it. Method: its dependency has
/// used the most, and there is another task; the waiter goes first, on its own account, and funds nothing.
#[test]
fn a_woken_waiter_waits_no_more() {
    let mut desk = ready(&[(1, 5), (2, 1)]);
    desk.messages.push_back(woken(ms(1), 0, Nanos::ZERO));
    says(&mut desk, 0, &[1]);
    let mut policy = policy();
    policy.round(&mut desk);
    // It runs, and takes its statement back.
    desk.waits.clear();
    assert_eq!(order(&mut policy, &mut desk), [0, 2, 1]);
}

/// Goal: the account that funds a turn pays for it, and its task keeps its place in the pool. Method: task 5
/// funds task 0 again and again while task 1 is ready; after 3 ms of turns at its cost it is task 1's turn.
#[test]
fn the_account_that_funds_pays() {
    let mut policy = policy();
    let mut desk = ready(&[(0, 9), (1, 1)]);
    says(&mut desk, 5, &[0]);
    let mut runs = Vec::new();
    for turn in 1..9 {
        policy.round(&mut desk);
        let answer = desk.answers.pop().expect("a task is ready");
        runs.push(answer.task.0);
        desk.messages
            .push_back(message(ms(turn), answer.task, ms(1)));
    }
    // Five's account begins 1 ms before one's. Nought's own stays at 9 ms.
    assert_eq!(runs, [0, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(policy.accounts[0].vtime, ms(9));
    // The last turn is not paid yet, and owed.
    assert_eq!(policy.accounts[5].vtime, ms(4));
    assert!(policy.accounts[5].owed > Nanos::ZERO);
}

/// A message by a task that woke up; before it slept it had used this much.
fn woken(began: Nanos, task: u32, used: Nanos) -> Queued {
    Queued {
        woken: true,
        exec_runtime: Nanos::ZERO,
        ..message(began, Task(task), used)
    }
}

/// Task 1 computes beside the others until the floor is there.
fn compute_until(policy: &mut WaitFor, desk: &mut Desk, floor: Nanos) {
    while policy.floor < floor {
        desk.now += ms(3);
        desk.messages.push_back(message(desk.now, Task(1), ms(3)));
        policy.round(desk);
        desk.answers.clear();
    }
}

/// Goal: every turn is paid for once, by one account, however late its message comes, if it comes again, and
/// whatever is said meanwhile. Method: 200 random tables of a desk, without pushes by the floor; the sum of
/// all accounts is the sum of what all messages told, and nothing is owed.
#[test]
fn each_turn_is_paid_for_once() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut policy = WaitFor::new(WaitForConstants {
            slice: SLICE,
            credit: ms(1_000_000),
        });
        let tasks = random.within(2, 7) as u32;
        let mut desk = ready(&(0..tasks).map(|task| (task, 0)).collect::<Vec<_>>());
        let (mut away, mut told) = (Vec::new(), 0);
        let tell = |random: &mut Random, desk: &mut Desk, task: u32| {
            let used = Nanos(random.below(5_000_000));
            let message = match random.below(2) {
                0 => woken(desk.now, task, used),
                _ => message(desk.now, Task(task), used),
            };
            desk.messages.push_back(message);
            if random.below(4) == 0 {
                // It has got another mask before it ran.
                desk.messages.push_back(message);
            }
            used.0
        };
        for _ in 0..300 {
            desk.now += Nanos(random.below(4_000_000));
            let waiter = random.below(u64::from(tasks)) as u32;
            match random.below(3) {
                0 => _ = desk.waits.remove(&Task(waiter)),
                _ => says(&mut desk, waiter, &[random.below(u64::from(tasks)) as u32]),
            }
            policy.round(&mut desk);
            away.extend(desk.answers.drain(..).map(|answer| answer.task.0));
            if !away.is_empty() && random.below(3) > 0 {
                let task = away.swap_remove(random.below(away.len() as u64) as usize);
                told += tell(&mut random, &mut desk, task);
            }
        }
        for task in away {
            told += tell(&mut random, &mut desk, task);
        }
        while let Some(queued) = desk.dequeue() {
            policy.take(queued);
        }
        let paid: u64 = policy.accounts.iter().map(|it| it.vtime.0).sum();
        assert_eq!(paid, told, "seed {seed}");
        assert!(
            policy.accounts.iter().all(|it| it.owed == Nanos::ZERO),
            "seed {seed}"
        );
    }
}

/// Goal: to say a wait costs the waiter nothing of its credit. Method: a task uses 2 ms, of which the process
/// hears when it wakes up, sleeps for long, and says a wait or not: it comes back at the same place, and
/// its next turn is not free.
#[test]
fn a_statement_does_not_cost_the_credit_of_a_sleeper() {
    for says_it in [false, true] {
        let mut policy = policy();
        let mut desk = ready(&[(0, 0), (1, 0)]);
        policy.round(&mut desk);
        if says_it {
            says(&mut desk, 0, &[7]);
        }
        compute_until(&mut policy, &mut desk, ms(99));
        policy.round(&mut desk);
        policy.take(woken(ms(1), 0, ms(2)));
        let least = policy.floor - SLICE;
        assert_eq!(policy.accounts[0].vtime, least, "{says_it}");
        // The next turn is paid for in full.
        policy.take(Queued {
            exec_runtime: ms(4),
            ..message(ms(200), Task(0), ms(2))
        });
        assert_eq!(policy.accounts[0].vtime, least + ms(2), "{says_it}");
    }
}

/// Goal: what a sleeping waiter owes counts as paid when the floor pushes it. Method: task 5 funds a turn of
/// task 0 and sleeps on for long, while the floor goes far away; when the turn is paid for, its account is
/// where any sleeper's is.
#[test]
fn debts_are_older_than_the_floor_that_pushes() {
    let mut policy = policy();
    let mut desk = ready(&[(0, 9), (1, 5)]);
    says(&mut desk, 5, &[0]);
    policy.round(&mut desk);
    assert_eq!(desk.answers.pop().map(|it| it.task), Some(Task(0)));
    assert!(policy.accounts[5].owed > Nanos::ZERO);
    let turn = policy.accounts[0]
        .funded
        .expect("on another one's account")
        .estimate;
    for _ in 0..30 {
        policy.floor += SLICE;
        policy.round(&mut desk);
        desk.answers.clear();
    }
    policy.take(woken(ms(1), 0, turn));
    assert_eq!(policy.accounts[5].vtime, policy.floor - SLICE);
    assert_eq!(policy.accounts[5].owed, Nanos::ZERO);
}

/// Goal: a task that woke up on an idle CPU, of which the process does not hear, has no more credit than
/// others. Method: a task sleeps until the floor is far away; its first message is the end of a slice, in
/// which it has run as long as since it slept. One that has not slept keeps its place.
#[test]
fn a_sleep_of_which_the_process_did_not_hear_saves_no_more() {
    for slept in [true, false] {
        let mut policy = policy();
        let mut desk = ready(&[(0, 0), (1, 0)]);
        policy.round(&mut desk);
        compute_until(&mut policy, &mut desk, ms(99));
        let ran = if slept { ms(2) } else { ms(8) };
        policy.take(Queued {
            exec_runtime: ran,
            ..message(ms(200), Task(0), ms(2))
        });
        let place = if slept { policy.floor - SLICE } else { ms(2) };
        assert_eq!(policy.accounts[0].vtime, place, "{slept}");
    }
}

/// Goal: one statement that names many does not fill the machine with one account. Method: a waiter names
/// eight tasks that have used much, beside eight that are 1 ms behind the waiter: the eight go after the
/// first.
#[test]
fn one_account_does_not_fill_the_machine() {
    let named: Vec<(u32, u64)> = (0..8).map(|task| (task, 90)).collect();
    let honest: Vec<(u32, u64)> = (8..16).map(|task| (task, 1)).collect();
    let mut desk = ready(&[named, honest].concat());
    says(&mut desk, 20, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let order = order(&mut policy(), &mut desk);
    assert_eq!(order[0], 0);
    assert_eq!(order[1..9], [8, 9, 10, 11, 12, 13, 14, 15]);
}

/// Goal: a round is bounded whatever programs say, and says that it was. Method: a chain of waits that is
/// longer than the bound; one round ends, and dispatches.
#[test]
fn a_round_follows_so_many_statements_and_no_more() {
    let mut policy = policy();
    let mut desk = ready(&[(0, 1)]);
    let length = STEPS_MAX as u32 + 10;
    for waiter in 1..length {
        says(&mut desk, waiter, &[waiter + 1]);
    }
    assert_eq!(order(&mut policy, &mut desk), [0]);
    assert_eq!(policy.cut_short(), 1);
}

fn one_cpu() -> Shape {
    Shape {
        cpus: 1,
        tick: ms(4),
    }
}

fn under_waitfor(shape: Shape, scripts: &[Script], until: Nanos) -> Vec<Nanos> {
    let mut class = Ext::new(policy(), Model::kicking(SLICE, shape.tick));
    let stints = run(&mut class, shape, scripts, until);
    shares(&stints, scripts.len())
}

/// A main thread that works, hands a piece of 1 ms to a worker and waits for it, ten times; what the program
/// says is in `says`.
fn frames(says: Option<u32>) -> [Script; 2] {
    let main = [
        Step::Run(us(100)),
        Step::Send(0),
        Step::Say(says),
        Step::Receive(1),
        Step::Say(None),
        Step::Sleep(ms(10)),
    ];
    let worker = [Step::Receive(0), Step::Run(ms(1)), Step::Send(1)];
    let times = |steps: &[Step]| Script {
        rounds: 10,
        ..Script::once(Attr::default(), steps)
    };
    [times(&main), times(&worker)]
}

/// Goal: a waiter's worker does not queue behind hogs, even if it has used its own share up. Method: frames
/// whose worker has computed for 40 ms before, beside eight hogs on one CPU; when the last frame is over,
/// with the statement and without.
#[test]
fn a_statement_brings_the_worker_forward() {
    let ends = |says| {
        let [main, worker] = frames(says);
        // The worker is behind with its account.
        let spent = Script {
            steps: [&[Step::Run(ms(4))][..], &worker.steps].concat(),
            ..worker
        };
        let mut scripts = vec![main, spent];
        scripts.extend((0..8).map(|_| Script::forever(Attr::default(), &[SPIN])));
        let mut class = Ext::new(policy(), Model::kicking(SLICE, ms(4)));
        let stints = run(&mut class, one_cpu(), &scripts, ms(3000));
        let mains = stints.iter().filter(|stint| stint.task == Task(0));
        mains.map(|stint| stint.to).max().expect("it ran")
    };
    let (with, without) = (ends(Some(1)), ends(None));
    assert!(with < without, "with {with}, without {without}");
}

/// Goal: false statements gain nothing. Method: honest hogs beside tasks that say false things all the time
/// (that they wait although they compute, for each other), 40 tables, one CPU, 4 s: each honest hog has its
/// share but for ten slices, and all liars together have no more than theirs.
#[test]
fn liars_gain_nothing() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let honest = random.within(2, 6) as usize;
        let liars = random.within(1, 6) as usize;
        let tasks = honest + liars;
        let mut scripts: Vec<Script> = (0..honest)
            .map(|_| Script::forever(Attr::default(), &[SPIN]))
            .collect();
        for _ in 0..liars {
            let steps: Vec<Step> = (0..4)
                .flat_map(|_| {
                    let other = honest as u64 + random.below(liars as u64);
                    let time = Nanos(random.within(100_000, 9_000_000));
                    [Step::Say(Some(other as u32)), Step::Run(time)]
                })
                .collect();
            scripts.push(Script::forever(Attr::default(), &steps));
        }
        let until = ms(4000);
        let got = under_waitfor(one_cpu(), &scripts, until);
        let used: u64 = got.iter().map(|time| time.0).sum();
        let fair = used / tasks as u64;
        let slack = 10 * ms(4).0;
        for (task, time) in got[..honest].iter().enumerate() {
            assert!(
                time.0 + slack >= fair,
                "seed {seed}: honest {task} of {tasks} got {time}, fair is {}",
                Nanos(fair)
            );
        }
        let theirs: u64 = got[honest..].iter().map(|time| time.0).sum();
        assert!(theirs <= fair * liars as u64 + slack, "seed {seed}");
    }
}

/// Goal: weights are shares of time, with and without statements. Method: hogs of nice 0 and 5 (weights of
/// 1024 and 335) on one CPU for 4 s.
#[test]
fn weights_are_shares() {
    let hog = |nice| Script::forever(Attr::nice(nice), &[SPIN]);
    let got = under_waitfor(one_cpu(), &[hog(0), hog(5)], ms(4000));
    let ratio = got[0].0 * 100 / got[1].0;
    assert!((280..=330).contains(&ratio), "{ratio} %");
}

/// Goal: whatever programs say, every task gets its time and no CPU is given to a task that may not use it.
/// Method: 200 random tables on one to four CPUs, with masks, sleeps and random statements; the kernel for
/// tests panics if a ready task is left behind.
#[test]
fn no_task_is_forgotten_whatever_is_said() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let cpus = random.within(1, 4) as usize;
        let tasks = random.within(2, 8);
        let scripts: Vec<Script> = (0..tasks)
            .map(|_| {
                let script = Script::random(&mut random, Attr::default(), cpus, 5_000_000, 900_000);
                let said = Step::Say(Some(random.below(tasks) as u32));
                let steps = script.steps.iter().flat_map(|&step| [said, step]).collect();
                Script { steps, ..script }
            })
            .collect();
        let mut class = Ext::new(policy(), Model::kicking(SLICE, ms(1)));
        let shape = Shape { cpus, tick: ms(1) };
        let stints = run(&mut class, shape, &scripts, ms(4000));
        let label = format!("seed {seed} under {}", class.name());
        everybody_got_its_time(&stints, &scripts, &label);
    }
}

/// Goal: no task waits for a CPU that idles because others idle, too, which it may not use. Method: two tasks
/// that may use CPU 3 alone, on four CPUs, with sleeps; the time at which both are done.
#[test]
fn idle_cpus_that_a_task_may_not_use_do_not_hold_it_up() {
    let steps = [Step::Run(ms(5)), Step::Sleep(us(500))];
    let task = || Script {
        rounds: 4,
        ..Script::once(Attr::default(), &steps).on(3)
    };
    let shape = Shape {
        cpus: 4,
        tick: ms(4),
    };
    let mut class = Ext::new(policy(), Model::kicking(SLICE, shape.tick));
    let stints = run(&mut class, shape, &[task(), task()], ms(500));
    let end = stints.iter().map(|stint| stint.to).max();
    assert!(end < Some(ms(42)), "{end:?}");
}

/// Goal: a funded task goes to the fastest CPU that idles. Method: the test kernel's CPUs are alike, so the
/// choice is asked for by hand: of three CPUs the fastest one that is idle.
#[test]
fn the_fastest_idle_cpu_is_the_place_of_a_funded_task() {
    let mut kernel = Big;
    assert_eq!(super::fastest_idle(Task(0), &mut kernel), Some(Cpu(1)));
}

/// CPUs 0 to 2 with capacities 300, 900 and 1024; the last one is busy.
struct Big;

impl Kernel for Big {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn dequeue(&mut self) -> Option<Queued> {
        None
    }
    fn dispatch(&mut self, _: Dispatch) {}
    fn select_cpu(&mut self, _: Task, cpu: Cpu) -> Option<Cpu> {
        Some(if cpu.0 == 2 { Cpu(0) } else { cpu })
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        cpu.0 < 2
    }
    fn online(&self) -> usize {
        3
    }
    fn running(&self) -> usize {
        1
    }
    fn wanted(&self) -> usize {
        2
    }
    fn cpus(&self) -> usize {
        3
    }
    fn capacity(&self, cpu: Cpu) -> u32 {
        [300, 900, 1024][cpu.index()]
    }
    fn waits(&self, _: &mut dyn FnMut(Task, &[Task])) {}
}
