//! Tests of the kernel's side, with small schedulers; and the two orders printed in source 004.

use std::collections::VecDeque;

use event::{Cpu, Nanos, Random, Task};

use super::{Ext, Model};
use crate::ops::{Dispatch, Kernel, Ops, Promises, Queued, uniform_slice, virtual_slice};
use crate::testing::{
    Script, Shape, Step, Still, everybody_got_its_time, letters, run, shares, switches,
};
use crate::{Attr, Class, Dequeue, Enqueue, Idleness, Mask};

const MS: Nanos = Nanos::from_millis(1);

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// First come, first served, on an idle CPU if there is one; one dispatch a round. Tasks of nice −20 are
/// urgent: they preempt. This is the minimal scheduler of the tests of `scx_rustland_core`, with hints.
#[derive(Debug, Default)]
struct Minimal {
    slice: Nanos,
    urgent: Vec<bool>,
    waiting: VecDeque<Queued>,
    answers_twice: bool,
    /// It answers all messages in a round, in their order.
    answers_all: bool,
}

impl Ops for Minimal {
    fn name(&self) -> &'static str {
        "minimal"
    }

    fn hint(&mut self, task: Task, attr: &Attr) {
        self.urgent.resize(task.index() + 1, false);
        self.urgent[task.index()] = attr.nice == -20;
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        while let Some(queued) = kernel.dequeue() {
            if self.urgent[queued.task.index()] && !self.answers_all {
                self.waiting.push_front(queued)
            } else {
                self.waiting.push_back(queued)
            }
        }
        while let Some(queued) = self.waiting.pop_front() {
            let answer = Dispatch {
                cpu: kernel.select_cpu(queued.task, queued.cpu),
                preempt: self.urgent[queued.task.index()],
                ..Dispatch::of(&queued, self.slice, 1)
            };
            kernel.dispatch(answer);
            if self.answers_twice {
                kernel.dispatch(answer);
            }
            if !self.answers_all {
                break;
            }
        }
        self.waiting.len()
    }
}

fn minimal(slice: Nanos) -> Minimal {
    Minimal {
        slice,
        ..Minimal::default()
    }
}

/// No bypass, no FIFO mode: the process decides everything, for nothing.
fn plain() -> Model {
    Model {
        bursts: false,
        ..Model::ideal()
    }
}

fn spin(millis: u64) -> Script {
    Script::once(Attr::default(), &[Step::Run(ms(millis))])
}

/// Goal: the two orders printed in source 004, exactly, with 9 and 7 boundaries. Method: its example: A needs
/// a unit and is there twice, B, C and D need 3, 6 and 6; each promises the table's figure.
#[test]
fn the_orders_of_source_004() {
    let promise = |units| Attr {
        slice: Some(ms(units)),
        ..Attr::default()
    };
    let of = |units, steps: &[Step]| Script::once(promise(units), steps);
    let scripts = [
        of(1, &[Step::Run(MS), Step::SleepUntil(ms(4)), Step::Run(MS)]),
        of(3, &[Step::Run(ms(3))]),
        of(6, &[Step::Run(ms(6))]),
        of(6, &[Step::Run(ms(6))]),
    ];
    let cases = [
        (uniform_slice(Promises::default()), "ABBCCDDABCCDDCCDD", 9),
        (virtual_slice(Promises::default()), "ABBCCCDABCCCDDDDD", 7),
    ];
    for (ops, expected, boundaries) in cases {
        let mut class = Ext::new(ops, Model::ideal());
        let shape = Shape { cpus: 1, tick: MS };
        let stints = run(&mut class, shape, &scripts, ms(100));
        assert_eq!(letters(&stints, MS), expected, "{}", class.name());
        assert_eq!(switches(&stints), boundaries, "{}", class.name());
    }
}

/// Goal: slices end at ticks, and each decision costs a round. Method: two hogs, ticks of 4 ms, slices of
/// 5 ms, 10 µs a round and 1 µs a message; the lengths of stints and of the gaps between them.
#[test]
fn slices_end_at_ticks_and_decisions_cost_time() {
    let model = Model {
        round: Nanos::from_micros(10),
        message: Nanos::from_micros(1),
        exact: false,
        ..plain()
    };
    let shape = Shape {
        cpus: 1,
        tick: ms(4),
    };
    let mut class = Ext::new(minimal(ms(5)), model);
    let stints = run(&mut class, shape, &[spin(100), spin(100)], ms(100));
    // Both messages are there in the first round, one in each later one. The process ends between two
    // ticks, and the tick counts from the next.
    assert_eq!(stints[0].from, Nanos::from_micros(12));
    assert_eq!(stints[0].to, ms(8));
    for two in stints.windows(2) {
        assert_eq!(two[1].from - two[0].to, Nanos::from_micros(11));
        assert_ne!(two[1].task, two[0].task);
    }
    let whole = &stints[1..stints.len() - 1];
    assert!(whole.len() > 8);
    for stint in whole {
        assert_eq!(stint.to - stint.from, ms(8) - Nanos::from_micros(11));
    }
    assert_eq!(class.rounds(), stints.len() as u64);
}

/// Goal: what the process has in hand is counted, and all that waits beside it. Method: three hogs on one
/// CPU, of which each round finds the one that ran last in a message. A process that answers one message a
/// round has the other two in hand as well; one that answers all at once has dispatched them before, and
/// they wait in the dispatch queue.
#[test]
fn decisions_are_counted() {
    let shape = Shape {
        cpus: 1,
        tick: Nanos::ZERO,
    };
    let hogs = [spin(100), spin(100), spin(100)];
    let counted = |answers_all| {
        let ops = Minimal {
            answers_all,
            ..minimal(ms(5))
        };
        let mut class = Ext::new(ops, plain());
        run(&mut class, shape, &hogs, ms(60));
        class.decisions().expect("a process decides")
    };
    for (answers_all, in_hand) in [(false, [3, 0]), (true, [1, 6])] {
        let decisions = counted(answers_all);
        let count = decisions.dispatched;
        assert!(count > 10, "{decisions:?}");
        assert_eq!(decisions.slices, Nanos(count * ms(5).0));
        assert_eq!(decisions.waiting, 3 * count);
        let [each, at_first] = in_hand;
        assert_eq!(decisions.in_hand, each * count + at_first, "{decisions:?}");
    }
}

/// Goal: a task that wakes up while a CPU idles goes there without the process, with a quarter of the slice,
/// and the process hears of it afterwards. Method: two CPUs, a hog on the first one, a sleeper.
#[test]
fn an_idle_cpu_is_taken_without_the_process() {
    let model = Model {
        round: MS,
        bypass: true,
        exact: true,
        slice: ms(8),
        ..plain()
    };
    let steps = [Step::Sleep(MS), Step::Run(ms(5))];
    let scripts = [spin(100), Script::once(Attr::default(), &steps)];
    let mut class = Ext::new(minimal(ms(50)), model);
    let shape = Shape {
        cpus: 2,
        tick: Nanos::ZERO,
    };
    let stints = run(&mut class, shape, &scripts, ms(20));
    let of_sleeper: Vec<_> = stints
        .iter()
        .filter(|stint| stint.task == Task(1) && stint.to > stint.from)
        .map(|stint| (stint.from, stint.to))
        .collect();
    // At once, for 2 ms; then a round of 1 ms; then the rest.
    assert_eq!(of_sleeper, [(ms(1), ms(3)), (ms(4), ms(7))]);
}

/// Goal: while no task waits the process is left alone; when one does it decides. Method: FIFO mode, one hog
/// alone and with ticks, then two.
#[test]
fn nobody_waits_nobody_is_asked() {
    let model = Model {
        fifo: true,
        exact: false,
        ..plain()
    };
    let shape = Shape { cpus: 1, tick: MS };
    let mut class = Ext::new(minimal(ms(2)), model);
    let stints = run(&mut class, shape, &[spin(50)], ms(100));
    assert_eq!((stints.len(), class.rounds()), (1, 0));

    let mut class = Ext::new(minimal(ms(2)), model);
    let stints = run(&mut class, shape, &[spin(20), spin(20)], ms(100));
    // The first one's slice is the kernel's.
    assert_eq!(letters(&stints[..4], MS), "AAAAABBAABB");
    assert!(class.rounds() > 10);
}

/// Goal: the flag preempts the running task on the CPU where the task was queued, at once; without it every
/// task waits for the end of a slice. Method: two CPUs with hogs; a task that has slept, urgent or not. The
/// process gets a CPU when the shorter hog ends.
#[test]
fn only_the_flag_preempts() {
    for (nice, expected) in [(-20, ms(5)), (0, ms(6))] {
        let attr = Attr::nice(nice);
        let on = |cpu, script: Script| Script {
            mask: Mask::of([Cpu(cpu)]),
            ..script
        };
        let steps = [Step::Sleep(ms(3)), Step::Run(MS)];
        let scripts = [
            on(0, Script::once(attr, &steps)),
            on(0, spin(50)),
            on(1, spin(5)),
        ];
        let mut class = Ext::new(minimal(ms(6)), plain());
        let shape = Shape {
            cpus: 2,
            tick: Nanos::ZERO,
        };
        let stints = run(&mut class, shape, &scripts, ms(20));
        let last = stints.iter().rfind(|stint| stint.task == Task(0));
        let last = last.expect("it runs after its sleep");
        assert_eq!(
            (last.from, last.to - last.from),
            (expected, MS),
            "{stints:?}"
        );
    }
}

/// Goal: an answer that comes twice has no effect. Method: a scheduler that says everything twice.
#[test]
fn a_second_answer_is_ignored() {
    let ops = Minimal {
        answers_twice: true,
        ..minimal(ms(2))
    };
    let mut class = Ext::new(ops, plain());
    let shape = Shape { cpus: 1, tick: MS };
    let stints = run(&mut class, shape, &[spin(10), spin(10)], ms(100));
    assert_eq!(shares(&stints, 2), [ms(10), ms(10)]);
    assert_eq!(class.cancelled(), class.rounds());
}

/// A scheduler that takes everything and answers nothing.
#[derive(Debug, Default)]
struct Deaf {
    taken: usize,
}

impl Ops for Deaf {
    fn name(&self) -> &'static str {
        "deaf"
    }
    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        while kernel.dequeue().is_some() {
            self.taken += 1;
        }
        self.taken
    }
}

/// Goal: a preempting task goes before all tasks dispatched to the same queue earlier. Method: three tasks in
/// one burst, the last of them urgent.
#[test]
fn what_preempts_goes_first() {
    let ops = Minimal {
        answers_all: true,
        ..minimal(ms(10))
    };
    let urgent = Script::once(Attr::nice(-20), &[Step::Run(MS)]);
    let mut class = Ext::new(ops, plain());
    let shape = Shape { cpus: 1, tick: MS };
    let stints = run(&mut class, shape, &[spin(1), spin(1), urgent], ms(10));
    assert_eq!(letters(&stints, MS), "CAB");
}

/// Goal: a scheduler that answers nothing hangs only its own tasks, is asked again by the heartbeat and by
/// new messages only, and is found out by the watchdog after five seconds. Method: by hand, the timer's
/// calls.
#[test]
fn the_watchdog_finds_who_does_not_answer() {
    let mut class = Ext::new(Deaf::default(), plain());
    class.set_cpus(1);
    for task in [Task(0), Task(1)] {
        class.add(task, &Attr::default());
        assert_eq!(class.select_cpu(task, None, &Still::idle(1)), Cpu(0));
    }
    class.enqueue(Cpu(0), Task(0), Enqueue::New, Nanos::ZERO);
    let mut now = Nanos::ZERO;
    while now <= ms(5000) {
        assert_eq!(class.check(now), Ok(()));
        assert_eq!(class.pick(Cpu(0), None, now), None);
        assert_eq!(class.timer(Cpu(0), now), now + ms(100));
        now = class.timer(Cpu(0), now);
    }
    let broken = class.check(now).unwrap_err();
    assert!(
        broken.contains("task 0 has been ready since 0 ns"),
        "{broken}"
    );

    class.pick(Cpu(0), None, now);
    let rounds = class.rounds();
    class.enqueue(Cpu(0), Task(1), Enqueue::New, now + MS);
    assert_eq!(class.timer(Cpu(0), now + MS), now + MS);
    class.pick(Cpu(0), None, now + MS);
    assert_eq!(class.rounds(), rounds + 1);
}

/// Goal: a task whose mask has changed while it waited for dispatch is left to the CPUs it may use, and
/// does not keep the next one waiting. Method: by hand: the first in the queue was queued elsewhere and may
/// not run here any more.
#[test]
fn a_mask_that_has_changed_is_seen() {
    let mut class = Ext::new(virtual_slice(Promises::default()), Model::ideal());
    class.set_cpus(2);
    let mut view = Still::idle(2);
    view.last = vec![Cpu(1), Cpu(0)];
    for (task, cpu) in [(Task(0), Cpu(1)), (Task(1), Cpu(0))] {
        class.add(task, &Attr::default());
        assert_eq!(class.select_cpu(task, None, &view), cpu);
        class.enqueue(cpu, task, Enqueue::New, Nanos::ZERO);
    }
    view.forbidden = Some((Task(0), Cpu(0)));
    assert_eq!(class.pick(Cpu(0), None, Nanos::ZERO), None);
    assert_eq!(class.pull(Cpu(0), Idleness::New, &view, Nanos::ZERO), None);
    assert_eq!(class.timer(Cpu(0), Nanos::ZERO), Nanos::ZERO);
    assert_eq!(class.pick(Cpu(0), None, Nanos::ZERO), Some(Task(1)));
    assert_eq!(class.kick(), Some(Cpu(1)));
    assert_eq!(class.pick(Cpu(1), None, Nanos::ZERO), Some(Task(0)));
}

/// Goal: a CPU that goes away while the process runs on it takes nothing with it. Method: by hand: the round
/// ends on the other CPU.
#[test]
fn a_round_survives_its_cpu() {
    let model = Model {
        round: MS,
        ..plain()
    };
    let mut class = Ext::new(minimal(ms(10)), model);
    class.set_cpus(2);
    class.add(Task(0), &Attr::default());
    let mut view = Still::idle(2);
    assert_eq!(class.select_cpu(Task(0), None, &view), Cpu(0));
    class.enqueue(Cpu(0), Task(0), Enqueue::New, Nanos::ZERO);
    assert_eq!(class.pick(Cpu(0), None, Nanos::ZERO), None);
    class.dequeue(Cpu(0), Task(0), Dequeue::Move, Nanos(1));
    view.forbidden = Some((Task(0), Cpu(0)));
    view.last = vec![Cpu(1)];
    assert_eq!(class.select_cpu(Task(0), None, &view), Cpu(1));
    class.enqueue(Cpu(1), Task(0), Enqueue::Move, Nanos(1));
    class.set_online(Cpu(0), false);
    assert_eq!(class.kick(), Some(Cpu(1)));
    assert_eq!(class.pick(Cpu(1), None, Nanos(2)), None);
    assert_eq!(class.timer(Cpu(1), Nanos(2)), MS);
    assert_eq!(class.timer(Cpu(0), Nanos(2)), Nanos::MAX);
    assert_eq!(class.pick(Cpu(1), None, MS), Some(Task(0)));
}

/// Goal: whatever the model, every task gets its time, none is forgotten, and none runs where it may not.
/// Method: three hundred random tables of tasks on one to four CPUs under each of the schedulers there are;
/// the kernel for tests panics if a ready task is left behind.
#[test]
fn nobody_is_forgotten() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let cpus = random.within(1, 4) as usize;
        let tick = [Nanos::ZERO, Nanos(700)][random.below(2) as usize];
        let flag = |random: &mut Random| random.below(2) == 0;
        let model = Model {
            round: Nanos(random.below(200)),
            message: Nanos(random.below(50)),
            slice: Nanos(random.within(1, 2000)),
            bypass: flag(&mut random),
            fifo: flag(&mut random),
            bursts: flag(&mut random),
            exact: tick == Nanos::ZERO,
            kicks: flag(&mut random),
        };
        let scripts: Vec<Script> = (0..random.within(1, 8))
            .map(|_| random_script(&mut random, cpus))
            .collect();
        let mut class = random_class(&mut random, model);
        let shape = Shape { cpus, tick };
        let stints = run(class.as_mut(), shape, &scripts, ms(1000));
        everybody_got_its_time(&stints, &scripts, &format!("seed {seed}"));
    }
}

fn random_class(random: &mut Random, model: Model) -> Box<dyn Class> {
    use crate::ops::rustland::{Constants, merged, pre333};
    let constants = Constants {
        slice: Nanos(1000),
        slice_min: Nanos(50),
        ..Constants::default()
    };
    match random.below(4) {
        0 => Box::new(Ext::new(minimal(Nanos(random.within(1, 3000))), model)),
        1 => Box::new(Ext::new(virtual_slice(Promises::default()), model)),
        2 => Box::new(Ext::new(merged(constants), model)),
        _ => Box::new(Ext::new(pre333(constants), model)),
    }
}

fn random_script(random: &mut Random, cpus: usize) -> Script {
    let attr = Attr {
        nice: [-20, 0, 5][random.below(3) as usize],
        slice: (random.below(2) == 0).then(|| Nanos(random.within(50, 400))),
        ..Attr::default()
    };
    Script::random(random, attr, cpus, 5000, 2000)
}
