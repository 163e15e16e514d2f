//! Who goes next: the two ways to choose an order from a seed.
//!
//! [`Order::Random`] takes any runnable thread with equal probability at every step. It is good at
//! bugs that need many switches in a small place, and bad at those that need a thread to be held
//! back for long.
//!
//! [`Order::Pct`] is the scheduler of Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs" (ASPLOS 2010): threads get random
//! priorities, the runnable one with the highest always goes, and at `depth - 1` random steps the
//! thread that would go falls below all others. Deviations:
//!
//! - The paper needs the length of the run. Here each change point is drawn with its *magnitude*
//!   uniform (which power of two, then where in it), up to the step limit: no estimate is needed,
//!   and a point at step k is hit with probability of about 1/(k · log2(limit)).
//! - A thread that waits without effect (its deadline has passed already) falls below all others,
//!   or a loop around such a wait would starve the thread it waits for. Shuttle does the same at
//!   yields.
//!
//! Invariant: a choice depends on the seed and on earlier choices only; threads are numbers in
//! spawn order, never addresses.

use super::rng::Rng;

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any runnable thread, with equal probability, at every step.
    Random,
    /// By random priorities with `depth - 1` random changes: finds every bug that needs `depth`
    /// ordering constraints with a probability that is known. A loop that waits without `park` or
    /// `spin_until` starves whom it waits for, and ends at the step limit.
    Pct {
        /// How many ordering constraints the looked-for bugs have; 2 or 3 finds most.
        depth: u32,
    },
}

/// The least priority a thread can start with: above those of all change points.
const FIRST: i64 = 1 << 32;

/// The chooser of one run.
#[derive(Debug)]
pub(super) struct Chooser {
    rng: Rng,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Random,
    Pct(Pct),
}

#[derive(Debug)]
struct Pct {
    /// By thread: at its start from [`FIRST`] up; after a change point that point's, which is
    /// below; after a yield negative and below all others.
    priorities: Vec<i64>,
    /// The steps at which the chosen thread falls, and to which priority; the next one last. As in
    /// the paper the priorities are not in the order of the steps.
    changes: Vec<(u64, i64)>,
    lowest: i64,
}

impl Chooser {
    pub(super) fn new(order: Order, seed: u64, steps_max: u64) -> Chooser {
        let mut rng = Rng::new(seed);
        let rule = match order {
            Order::Random => Rule::Random,
            Order::Pct { depth } => {
                let mut point = || point_of_any_magnitude(&mut rng, steps_max);
                let mut changes: Vec<_> = (1..depth).map(|low| (point(), i64::from(low))).collect();
                changes.sort_unstable_by(|a, b| b.cmp(a));
                Rule::Pct(Pct {
                    priorities: Vec::new(),
                    changes,
                    lowest: 0,
                })
            }
        };
        Chooser { rng, rule }
    }

    /// A thread was spawned; they come in the order of their numbers.
    pub(super) fn thread_added(&mut self) {
        if let Rule::Pct(pct) = &mut self.rule {
            pct.priorities.push(FIRST + (self.rng.next() >> 2) as i64);
        }
    }

    /// Which of the runnable threads goes at this step; there is at least one.
    #[inline]
    pub(super) fn pick(&mut self, runnable: &[u32], step: u64) -> u32 {
        match &mut self.rule {
            Rule::Random => match runnable {
                [only] => *only,
                _ => runnable[self.rng.below(runnable.len() as u64) as usize],
            },
            Rule::Pct(pct) => pct.pick(runnable, step),
        }
    }

    /// This thread waits for others in a way that does not block it.
    pub(super) fn yielded(&mut self, thread: u32) {
        if let Rule::Pct(pct) = &mut self.rule {
            pct.yielded(thread);
        }
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.rng.one_in(n)
    }
}

impl Pct {
    fn pick(&mut self, runnable: &[u32], step: u64) -> u32 {
        while let Some((_, low)) = self.changes.pop_if(|(change, _)| *change <= step) {
            let highest = self.highest(runnable);
            self.priorities[highest as usize] = low;
        }
        self.highest(runnable)
    }

    /// Equal priorities have probability 2^-62; then the one that became runnable last goes.
    fn highest(&self, runnable: &[u32]) -> u32 {
        let by_priority = runnable
            .iter()
            .max_by_key(|&&thread| self.priorities[thread as usize]);
        *by_priority.expect("somebody is runnable")
    }

    fn yielded(&mut self, thread: u32) {
        self.lowest -= 1;
        self.priorities[thread as usize] = self.lowest;
    }
}

fn point_of_any_magnitude(rng: &mut Rng, steps_max: u64) -> u64 {
    let magnitudes = u64::from(steps_max.max(1).ilog2().min(31)) + 1;
    let first = 1 << rng.below(magnitudes);
    first + rng.below(first)
}
