//! The behaviour of tasks, as data.

use event::{Cpu, Nanos, Random, Task};

use crate::{Attr, Mask};

pub(crate) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(crate) fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// A task's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It needs a CPU for this long.
    Run(Nanos),
    /// It blocks for this long.
    Sleep(Nanos),
    /// It blocks until then.
    SleepUntil(Nanos),
    /// A message into a mailbox, for any receiver.
    Send(usize),
    /// It takes a message from a mailbox, and blocks until there is one.
    Receive(usize),
    /// It calls `sched_yield`.
    Yield,
    /// It says that it waits for this task from now on; for none: that it waits no more.
    Say(Option<u32>),
}

/// It needs a CPU for good.
pub(crate) const SPIN: Step = Step::Run(Nanos(u64::MAX / 2));

/// A task: its attributes, and a table of its steps.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) attr: Attr,
    pub(crate) begins: Nanos,
    /// Where it may run; empty: everywhere.
    pub(crate) mask: Mask,
    pub(crate) steps: Vec<Step>,
    /// How often it goes through its steps before it ends.
    pub(crate) rounds: u64,
}

impl Script {
    /// A task that goes through these steps once, from the beginning of time.
    pub(crate) fn once(attr: Attr, steps: &[Step]) -> Script {
        Script {
            attr,
            begins: Nanos::ZERO,
            mask: Mask::default(),
            steps: steps.to_vec(),
            rounds: 1,
        }
    }

    /// A task that goes through these steps for ever.
    pub(crate) fn forever(attr: Attr, steps: &[Step]) -> Script {
        Script {
            rounds: u64::MAX,
            ..Script::once(attr, steps)
        }
    }

    /// The same, from then on.
    pub(crate) fn begins(self, begins: Nanos) -> Script {
        Script { begins, ..self }
    }

    /// The same, on this CPU only.
    pub(crate) fn on(self, cpu: u32) -> Script {
        let mask = Mask::of([Cpu(cpu)]);
        Script { mask, ..self }
    }

    /// A task that runs for up to `run_max` ns, sleeps for less than `sleep` ns, runs once more and yields,
    /// some times; one of three may run on one CPU only.
    pub(crate) fn random(
        random: &mut Random,
        attr: Attr,
        cpus: usize,
        run_max: u64,
        sleep: u64,
    ) -> Script {
        let steps = [
            Step::Run(Nanos(random.within(1, run_max))),
            Step::Sleep(Nanos(random.below(sleep))),
            Step::Run(Nanos(random.within(1, 900))),
            Step::Yield,
        ];
        let rounds = random.within(1, 4);
        let script = Script {
            rounds,
            ..Script::once(attr, &steps)
        };
        match random.below(3) {
            0 => script.on(random.below(cpus as u64) as u32),
            _ => script,
        }
    }

    /// The CPU time that it needs until it ends.
    pub(crate) fn need(&self) -> Nanos {
        let one = self.steps.iter().map(|step| match step {
            Step::Run(time) => time.0,
            _ => 0,
        });
        Nanos(one.sum::<u64>() * self.rounds)
    }
}

/// A change from outside.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The task has other attributes from now on.
    Attr(Task, Attr),
    /// The CPU takes no tasks any more.
    Offline(Cpu),
    /// It takes tasks again.
    Online(Cpu),
}
