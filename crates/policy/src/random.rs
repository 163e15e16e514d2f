//! `random` and `pct-N`: any order of steps, from a seed. For finding errors in programs.
//!
//! Its model: no kernel, but all of them. A right program is right whatever a kernel does; these two look for
//! the order in which it is not. They want to be asked at every step of a program ([`Class::step`]), on one
//! CPU where nothing costs time.
//!
//! [`Order::Random`] takes any ready task with equal probability at every step. It is good at errors that
//! need many switches in a small place, and bad at those that need a task to be held back for long.
//!
//! [`Order::Pct`] is the scheduler of Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs" (ASPLOS 2010): tasks get random priorities,
//! the ready one with the highest always goes, and at `depth - 1` random steps the task that would go
//! falls below all others. Deviations:
//!
//! - The paper needs the length of the run. Here each change point is drawn with its *magnitude* uniform
//!   (which power of two, then where in it), up to a limit: no estimate is needed, and a point at step k is
//!   hit with probability of about 1/(k · log2(limit)).
//! - A task that waits without effect falls below all others, or a loop around such a wait would starve
//!   the task it waits for. Shuttle does the same at yields.
//!
//! Where it is bad: as a kernel. It has no notion of fairness, latency or time; a task can wait for ever
//! in PCT, and a thousand switches in a row are nothing unusual.
//!
//! Invariant: a choice depends on the seed and on earlier choices only; tasks are numbers, never addresses.

use event::{Cpu, Nanos, Random, Task};

use crate::{Attr, Class, Dequeue, Enqueue};

/// How the next task is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any ready task, with equal probability, at every step.
    Random,
    /// By random priorities with `depth - 1` random changes: finds every error that needs `depth` ordering
    /// constraints with a probability that is known. A loop that waits without blocking or spinning starves
    /// the task it waits for.
    Pct {
        /// How many ordering constraints the looked-for errors have; 2 or 3 finds most.
        depth: u32,
    },
}

/// The least priority a task can start with: above those of all change points.
const FIRST: i64 = 1 << 32;
/// Change points lie below this step.
const STEPS: u64 = 1 << 21;

/// See the [module](self).
#[derive(Debug)]
pub struct Explore {
    random: Random,
    rule: Rule,
    /// By CPU: the ready tasks, the running one included, in no meaningful order.
    queues: Vec<Vec<Task>>,
    /// By task: its place in its queue.
    places: Vec<usize>,
    /// Chosen in `step`, to be picked.
    chosen: Option<Task>,
    steps: u64,
}

#[derive(Debug)]
enum Rule {
    Random,
    Pct(Pct),
}

#[derive(Debug)]
struct Pct {
    /// By task: at its start from [`FIRST`] up; after a change point that point's, which is below; after a
    /// vain wait negative and below all others.
    priorities: Vec<i64>,
    /// The steps at which the chosen task falls, and to which priority; the next one last. As in the paper
    /// the priorities are not in the order of the steps.
    changes: Vec<(u64, i64)>,
    lowest: i64,
}

impl Explore {
    /// The policy of this seed.
    pub fn new(order: Order, seed: u64) -> Explore {
        let mut random = Random::new(seed);
        let rule = match order {
            Order::Random => Rule::Random,
            Order::Pct { depth } => {
                let mut point = || point_of_any_magnitude(&mut random);
                let mut changes: Vec<_> = (1..depth).map(|low| (point(), i64::from(low))).collect();
                changes.sort_unstable_by(|a, b| b.cmp(a));
                Rule::Pct(Pct {
                    priorities: Vec::new(),
                    changes,
                    lowest: 0,
                })
            }
        };
        Explore {
            random,
            rule,
            queues: Vec::new(),
            places: Vec::new(),
            chosen: None,
            steps: 0,
        }
    }

    #[inline]
    fn choose(&mut self, cpu: Cpu) -> Option<Task> {
        let ready = &self.queues[cpu.index()];
        match (&mut self.rule, &ready[..]) {
            (_, []) => None,
            (Rule::Random, [only]) => Some(*only),
            (Rule::Random, _) => Some(ready[self.random.below(ready.len() as u64) as usize]),
            (Rule::Pct(pct), _) => Some(pct.choose(ready, self.steps)),
        }
    }
}

impl Class for Explore {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::Random => "random",
            Rule::Pct(_) => "pct",
        }
    }

    fn set_cpus(&mut self, cpus: usize) {
        self.queues = vec![Vec::new(); cpus];
    }

    fn add(&mut self, _: Task, _: &Attr) {
        self.places.push(0);
        if let Rule::Pct(pct) = &mut self.rule {
            let priority = FIRST + (self.random.next_u64() >> 2) as i64;
            pct.priorities.push(priority);
        }
    }

    fn set_attr(&mut self, _: Task, _: &Attr, _: Nanos) {}

    fn enqueue(&mut self, cpu: Cpu, task: Task, _: Enqueue, _: Nanos) {
        self.places[task.index()] = self.queues[cpu.index()].len();
        self.queues[cpu.index()].push(task);
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, _: Dequeue, _: Nanos) {
        let place = self.places[task.index()];
        let queue = &mut self.queues[cpu.index()];
        queue.swap_remove(place);
        if let Some(moved) = queue.get(place) {
            self.places[moved.index()] = place;
        }
        self.chosen = None;
    }

    fn pick(&mut self, cpu: Cpu, _: Option<Task>, _: Nanos) -> Option<Task> {
        self.chosen.take().or_else(|| self.choose(cpu))
    }

    /// Time passes: any task may go on.
    fn tick(&mut self, cpu: Cpu, running: Task, _: Nanos) -> bool {
        self.step(cpu, running)
    }

    /// Never at once: the next step decides.
    fn preempts(&mut self, _: Cpu, _: Task, _: Task, _: Nanos) -> bool {
        false
    }

    fn yields(&mut self, _: Cpu, running: Task, _: Nanos) {
        self.waited_in_vain(running);
    }

    fn queued(&self, cpu: Cpu) -> usize {
        self.queues[cpu.index()].len()
    }

    fn has_steps(&self) -> bool {
        true
    }

    #[inline]
    fn step(&mut self, cpu: Cpu, running: Task) -> bool {
        self.steps += 1;
        self.chosen = self.choose(cpu).filter(|&chosen| chosen != running);
        self.chosen.is_some()
    }

    fn waited_in_vain(&mut self, running: Task) {
        if let Rule::Pct(pct) = &mut self.rule {
            pct.lowest -= 1;
            pct.priorities[running.index()] = pct.lowest;
        }
    }
}

impl Pct {
    fn choose(&mut self, ready: &[Task], step: u64) -> Task {
        while let Some((_, low)) = self.changes.pop_if(|(change, _)| *change <= step) {
            let highest = self.highest(ready);
            self.priorities[highest.index()] = low;
        }
        self.highest(ready)
    }

    /// Equal priorities have probability 2^-62; then the one that became ready last goes.
    fn highest(&self, ready: &[Task]) -> Task {
        let by_priority = ready
            .iter()
            .max_by_key(|task| self.priorities[task.index()]);
        *by_priority.expect("a ready task")
    }
}

fn point_of_any_magnitude(random: &mut Random) -> u64 {
    let magnitudes = u64::from(STEPS.ilog2()) + 1;
    let first = 1 << random.below(magnitudes);
    first + random.below(first)
}
