//! A random graph as a plan, what each of its runs must do, and the notes of what it did.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::support::Random;

/// Fields of the world.
pub(super) const FIELDS: usize = 4;

/// What a node of a plan is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Job,
    Condition,
    Sync,
}

/// A node. Edges lead from nodes that were declared before it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) after: Vec<usize>,
    /// Conditions that it hangs on.
    pub(super) only_if: Vec<usize>,
    /// Fields: read, written. A node reads and writes each at most once.
    pub(super) reads: Option<usize>,
    pub(super) writes: Option<usize>,
    pub(super) is_on_main: bool,
    pub(super) is_background: bool,
    pub(super) is_loop: bool,
    /// In how many of a hundred runs it panics.
    pub(super) panics: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) seed: u64,
}

/// How a node ends in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Ran(bool),
    Panicked,
    Skipped,
    Cancelled,
}

fn mix(seed: u64, node: usize, run: u64) -> u64 {
    Random::new(seed ^ (node as u64) << 32 ^ run << 8).next()
}

impl Plan {
    pub(super) fn generate(random: &mut Random, panics: u64) -> Plan {
        let count = 1 + random.below(14);
        let mut nodes: Vec<Node> = Vec::new();
        let edges = *random.pick(&[10, 25, 50]);
        let mains = *random.pick(&[0, 0, 20]);
        for number in 0..count {
            let kind = match random.below(10) {
                0 => Kind::Sync,
                1 | 2 => Kind::Condition,
                _ => Kind::Job,
            };
            let is_job = kind == Kind::Job;
            let conditions = (0..number).filter(|&before| nodes[before].kind == Kind::Condition);
            let only_if = conditions.filter(|_| random.chance(25)).collect();
            let after = (0..number).filter(|_| random.chance(edges)).collect();
            let field = |random: &mut Random, percent| {
                let field = random.below(FIELDS);
                (is_job && random.chance(percent)).then_some(field)
            };
            let (reads, writes) = (field(random, 40), field(random, 40));
            nodes.push(Node {
                kind,
                after,
                only_if: if kind == Kind::Sync {
                    Vec::new()
                } else {
                    only_if
                },
                reads: reads.filter(|_| reads != writes),
                writes,
                is_on_main: random.chance(mains),
                is_background: random.chance(10),
                is_loop: random.chance(30),
                panics: if random.chance(20) { panics } else { 0 },
            });
        }
        Plan {
            nodes,
            seed: random.next(),
        }
    }

    fn panics(&self, node: usize, run: u64) -> bool {
        mix(self.seed, node, run) % 100 < self.nodes[node].panics
    }

    /// The value of a condition.
    fn is_true(&self, node: usize, run: u64) -> bool {
        mix(!self.seed, node, run).is_multiple_of(2)
    }

    /// All nodes that come right before this one: edges, sync points, and those that touch the same field.
    /// The graph adds the last ones by itself.
    pub(super) fn before(&self, node: usize) -> Vec<usize> {
        let this = &self.nodes[node];
        let last_sync = (0..node)
            .rev()
            .find(|&it| self.nodes[it].kind == Kind::Sync);
        let collides = |other: &Node| {
            let touches = |field| other.reads == field || other.writes == field;
            this.writes.is_some() && touches(this.writes)
                || this.reads.is_some() && other.writes == this.reads
        };
        let comes_before = |&before: &usize| {
            this.after.contains(&before)
                || this.only_if.contains(&before)
                || Some(before) == last_sync
                || this.kind == Kind::Sync && last_sync.is_none_or(|sync| before > sync)
                || collides(&self.nodes[before])
        };
        (0..node).filter(comes_before).collect()
    }

    /// How each node ends in this run.
    pub(super) fn ends(&self, run: u64) -> Vec<End> {
        let mut ends: Vec<End> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let fails = |&before: &usize| matches!(ends[before], End::Panicked | End::Cancelled);
            let is_false = |&condition: &usize| ends[condition] != End::Ran(true);
            let end = if self.before(number).iter().any(fails) {
                End::Cancelled
            } else if node.only_if.iter().any(is_false) {
                End::Skipped
            } else if node.kind != Kind::Sync && self.panics(number, run) {
                End::Panicked
            } else {
                End::Ran(node.kind != Kind::Condition || self.is_true(number, run))
            };
            ends.push(end);
        }
        ends
    }
}

/// One run, as it should be.
pub(super) struct Expected {
    pub(super) run: u64,
    pub(super) ends: Vec<End>,
}

/// The notes of all runs.
pub(super) struct Notes {
    pub(super) plan: Plan,
    expected: Mutex<Expected>,
    /// How often each node has begun, and ended.
    begun: Vec<AtomicU64>,
    ended: Vec<AtomicU64>,
    wrong: Mutex<Vec<String>>,
}

impl Notes {
    pub(super) fn new(plan: Plan) -> Notes {
        let counts = || plan.nodes.iter().map(|_| AtomicU64::new(0)).collect();
        Notes {
            begun: counts(),
            ended: counts(),
            expected: Mutex::new(Expected {
                run: 0,
                ends: plan.ends(0),
            }),
            wrong: Mutex::new(Vec::new()),
            plan,
        }
    }

    fn is_wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    /// A body begins. Returns whether it is to panic, and otherwise its value.
    pub(super) fn begins(&self, node: usize) -> End {
        self.begun[node].fetch_add(1, Relaxed);
        let expected = self.expected.lock().unwrap();
        let end = expected.ends[node];
        if matches!(end, End::Skipped | End::Cancelled) {
            self.is_wrong(format!("n{node} runs, which is {end:?}"));
        }
        for before in self.plan.before(node) {
            let (begun, ended) = (&self.begun[before], &self.ended[before]);
            let runs = matches!(expected.ends[before], End::Ran(_) | End::Panicked)
                && self.plan.nodes[before].kind != Kind::Sync;
            if runs && (begun.load(Relaxed) == 0 || begun.load(Relaxed) != ended.load(Relaxed)) {
                self.is_wrong(format!("n{node} begins before n{before} has ended"));
            }
        }
        end
    }

    pub(super) fn ends(&self, node: usize) {
        self.ended[node].fetch_add(1, Relaxed);
    }

    /// The run is over: looks at it, and begins the next one.
    pub(super) fn judge(&self, failed: bool) {
        let mut expected = self.expected.lock().unwrap();
        for (node, end) in expected.ends.iter().enumerate() {
            let is_sync = self.plan.nodes[node].kind == Kind::Sync;
            let runs = u64::from(!is_sync && matches!(end, End::Ran(_) | End::Panicked));
            let counts = [&self.begun[node], &self.ended[node]].map(|count| count.swap(0, Relaxed));
            if counts != [runs; 2] {
                let run = expected.run;
                self.is_wrong(format!("run {run}: n{node}, {end:?}, ran {counts:?} times"));
            }
        }
        if failed != expected.ends.contains(&End::Panicked) {
            self.is_wrong(format!("run {} failed: {failed}", expected.run));
        }
        let run = expected.run + 1;
        *expected = Expected {
            run,
            ends: self.plan.ends(run),
        };
        let wrong = std::mem::take(&mut *self.wrong.lock().unwrap());
        assert!(wrong.is_empty(), "{:#?}\n{}", self.plan, wrong.join("\n"));
    }

    /// What a node does to a field.
    pub(super) fn step(node: usize, read: u64, item: &mut u64) {
        *item = item.wrapping_mul(31).wrapping_add(read ^ node as u64);
    }

    /// What a run does to the fields, one node after the other.
    pub(super) fn run_serially(&self, fields: &mut [Vec<u64>; FIELDS]) {
        let expected = self.expected.lock().unwrap();
        for (number, node) in self.plan.nodes.iter().enumerate() {
            if let (End::Ran(_), Some(written)) = (expected.ends[number], node.writes) {
                let read = node.reads.map(|field| fields[field].clone());
                for (place, item) in fields[written].iter_mut().enumerate() {
                    let read = read.as_ref().map_or(7, |read| read[place]);
                    Notes::step(number, read, item);
                }
            }
        }
    }
}
