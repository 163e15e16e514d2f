//! A random program as data, and its expected result: its serial evaluation.
//!
//! A program is a tree. A node has a kind, a seed for all its small decisions, and children that it evaluates
//! in its own way; its value follows from its seed and the sum of its children's values, so that the value of
//! the root is right only if each node was evaluated once. A node may also fail: then the node above fails,
//! too, up to a node that catches it.

use std::sync::Arc;

use event::{Random, mix};

/// How a node evaluates its children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Leaf,
    /// A leaf that sometimes panics.
    Panic,
    /// `join`, nested.
    Join,
    /// `scope`.
    Scope,
    /// A scope whose jobs spawn into the same scope.
    NestedScope,
    /// A scope of jobs with names and dependencies.
    NamedScope,
    /// `parallel_for`.
    Loop,
    /// `schedule_for`, and a job after it.
    Range,
    /// Jobs with results.
    Typed,
    /// Jobs with results, combined.
    Combine,
    /// A chain behind an event that a foreign thread completes.
    Chain,
    /// A job with a result, awaited by a small executor.
    Future,
    /// A thread that lives for one child.
    Thread,
    /// Catches the failure of its child.
    Catch,
    /// Loops, scopes and joins in `Drop`, also while unwinding.
    Unwind,
    Background,
    Enter,
    /// Waits for ids of others that are most likely over.
    Known,
    Frame,
    /// A handle that is dropped, or waited for by another thread.
    Handle,
    /// A join whose first half may have to wait for its second one.
    Halves,
    /// An event that is dropped: all after it is cancelled.
    Abandon,
    /// An event with a value, which a successor takes.
    Given,
    /// Jobs that are the inputs of others.
    Inputs,
    /// A latch that jobs complete.
    Latched,
    /// A future that awaits jobs.
    Spawned,
    /// A job system of its own.
    System,
    /// A cancelled job whose captures panic when they are dropped.
    CaptureBomb,
    /// A result that no handle takes, and that panics when it is dropped.
    ResultBomb,
    /// A range's closure that panics when it is dropped.
    RangeBomb,
    /// Two panics of one scope whose payloads panic when they are dropped.
    PayloadBomb,
    /// A waker that panics.
    WakerBomb,
}

/// How many children.
#[derive(Clone, Copy)]
enum Children {
    Exactly(u64),
    /// From one to this many.
    UpTo(u64),
    /// From one to this many, or in a [crowd](CROWD) many more; a few of them are more than leaves.
    Items(u64),
}

/// The most children of a node that is drawn as a crowd: more than queues, rings and caches hold.
const CROWD: u64 = 1 << 13;

/// One of this many nodes that can be crowds is one.
const CROWDS: u64 = 6;

/// Of the children of a crowd only this many may be more than a leaf, or panic: most crowds would fail, if
/// all might.
const VARIED_CHILDREN: u64 = 40;

/// One row for each kind: its name, how often it is drawn, its children.
const KINDS: &[(Kind, &str, u64, Children)] = &[
    (Kind::Leaf, "leaf", 4, Children::Exactly(0)),
    (Kind::Panic, "panic", 4, Children::Exactly(0)),
    (Kind::Join, "join", 6, Children::Exactly(2)),
    (Kind::Scope, "scope", 5, Children::Items(40)),
    (Kind::NestedScope, "nested-scope", 4, Children::Items(20)),
    (Kind::NamedScope, "named-scope", 4, Children::Items(20)),
    (Kind::Loop, "loop", 5, Children::Items(40)),
    (Kind::Range, "range", 5, Children::Items(24)),
    (Kind::Typed, "typed", 5, Children::Items(20)),
    (Kind::Combine, "combine", 5, Children::Items(20)),
    (Kind::Chain, "chain", 6, Children::Exactly(1)),
    (Kind::Future, "future", 4, Children::Exactly(1)),
    (Kind::Thread, "thread", 3, Children::Exactly(1)),
    (Kind::Catch, "catch", 5, Children::Exactly(1)),
    (Kind::Unwind, "unwind", 4, Children::Exactly(1)),
    (Kind::Background, "background", 4, Children::Exactly(1)),
    (Kind::Enter, "enter", 3, Children::Exactly(1)),
    (Kind::Known, "known", 4, Children::Exactly(1)),
    (Kind::Frame, "frame", 4, Children::Exactly(1)),
    (Kind::Handle, "handle", 4, Children::Exactly(1)),
    (Kind::Halves, "halves", 4, Children::Exactly(2)),
    (Kind::Abandon, "abandon", 4, Children::Exactly(1)),
    (Kind::Given, "given", 4, Children::Exactly(1)),
    (Kind::Inputs, "inputs", 4, Children::Items(12)),
    (Kind::Latched, "latched", 4, Children::Items(12)),
    (Kind::Spawned, "spawned", 4, Children::UpTo(3)),
    (Kind::System, "system", 1, Children::Exactly(1)),
    (Kind::CaptureBomb, "capture-bomb", 2, Children::Exactly(0)),
    (Kind::ResultBomb, "result-bomb", 2, Children::Exactly(1)),
    (Kind::RangeBomb, "range-bomb", 2, Children::UpTo(5)),
    (Kind::PayloadBomb, "payload-bomb", 2, Children::Exactly(0)),
    (Kind::WakerBomb, "waker-bomb", 2, Children::Exactly(1)),
];

/// The word in `--without` for nodes with very many children.
pub(crate) const CROWD_NAME: &str = "crowd";

/// Names of all kinds that can be left out.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().skip(1).map(|(_, name, _, _)| *name)
}

/// The word in a result for a failure that was caught.
const CAUGHT: u64 = 0xca11;

/// A node failed, or one below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed;

/// One node of a program.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) children: Vec<Arc<Node>>,
}

impl Node {
    /// The program of a seed, `depth` levels deep. Kinds named in `without` become leaves; nothing else
    /// changes. Without [`CROWD_NAME`] the children of crowds beyond the usual number are missing.
    pub(crate) fn draw(seed: u64, depth: u64, without: &[String]) -> Arc<Node> {
        let mut random = Random::new(seed);
        let (kind, name, children) = match depth {
            0 if random.below(60) == 0 => (Kind::Panic, "panic", Children::Exactly(0)),
            0 => (Kind::Leaf, "leaf", Children::Exactly(0)),
            _ => Node::draw_kind(&mut random),
        };
        let number = match children {
            Children::Exactly(number) => number,
            Children::UpTo(most) => random.within(1, most),
            Children::Items(most) => {
                let usual = random.within(1, most);
                let crowd = Node::draw_crowd(seed);
                let is_left_out = without.iter().any(|word| word == CROWD_NAME);
                crowd.filter(|_| !is_left_out).unwrap_or(usual)
            }
        };
        let is_deep = |child: u64| child.is_multiple_of(8);
        let depth_of = |child: u64| match children {
            Children::Items(_) if is_deep(child) => depth.saturating_sub(2),
            Children::Items(_) => 0,
            _ => depth.saturating_sub(1),
        };
        let is_left_out = without.iter().any(|word| word == name);
        let number = if is_left_out { 0 } else { number };
        let child = |child| match children {
            Children::Items(_) if child >= VARIED_CHILDREN => Node::leaf(random.next_u64()),
            _ => Node::draw(random.next_u64(), depth_of(child), without),
        };
        Arc::new(Node {
            kind: if is_left_out { Kind::Leaf } else { kind },
            seed,
            children: (0..number).map(child).collect(),
        })
    }

    fn leaf(seed: u64) -> Arc<Node> {
        Arc::new(Node {
            kind: Kind::Leaf,
            seed,
            children: Vec::new(),
        })
    }

    /// How large a crowd is, if it is one. All orders of magnitude are equally likely.
    fn draw_crowd(seed: u64) -> Option<u64> {
        let mut random = Random::new(seed ^ 0xc0_3d);
        let is_crowd = random.below(CROWDS) == 0;
        let order = random.below(u64::from(CROWD.ilog2()));
        let number = random.within(1 << order, 2 << order);
        is_crowd.then_some(number)
    }

    fn draw_kind(random: &mut Random) -> (Kind, &'static str, Children) {
        let all = KINDS.iter().map(|(_, _, weight, _)| weight).sum();
        let mut at = random.below(all);
        for (kind, name, weight, children) in KINDS {
            if at < *weight {
                return (*kind, name, *children);
            }
            at -= weight;
        }
        unreachable!("the weights sum up to the bound")
    }

    /// The expected result of the program: its value, evaluated here and one node after the other.
    pub(crate) fn serial(&self) -> Result<u64, Failed> {
        match self.kind {
            Kind::Leaf => return Ok(mix(self.seed)),
            Kind::Panic if self.panics() => return Err(Failed),
            Kind::Panic => return Ok(mix(self.seed)),
            // Nothing below them runs, or what fails is part of them.
            Kind::Abandon | Kind::CaptureBomb | Kind::PayloadBomb => return Ok(self.fold(CAUGHT)),
            Kind::Catch => return Ok(self.fold(self.children[0].serial().unwrap_or(CAUGHT))),
            _ => {}
        }
        let values = self.children.iter().map(|child| child.serial());
        // Each is evaluated, also after a failure.
        let values: Vec<Result<u64, Failed>> = values.collect();
        let sum = values
            .into_iter()
            .try_fold(0, |sum: u64, value| Ok(sum.wrapping_add(value?)));
        sum.map(|sum| self.fold(sum))
    }

    /// Whether a node of kind [`Kind::Panic`] panics.
    pub(crate) fn panics(&self) -> bool {
        self.choice(9, 4) == 0
    }

    /// The value of a node whose children sum up to this.
    pub(crate) fn fold(&self, sum: u64) -> u64 {
        mix(self.seed).wrapping_add(sum.rotate_left(1))
    }

    /// The value of a node that has caught a failure.
    pub(crate) fn caught(&self) -> u64 {
        self.fold(CAUGHT)
    }

    /// The value of a caught failure itself.
    pub(crate) fn failure() -> u64 {
        CAUGHT
    }

    /// One of the node's small decisions: a number below `bound`.
    pub(crate) fn choice(&self, decision: u64, bound: u64) -> u64 {
        mix(self.seed ^ mix(decision.wrapping_add(1))) % bound
    }

    /// How many nodes the program has.
    pub(crate) fn size(&self) -> usize {
        let below: usize = self.children.iter().map(|child| child.size()).sum();
        below + 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn kinds(node: &Node, into: &mut BTreeSet<&'static str>) {
        let name = KINDS.iter().find(|(kind, ..)| *kind == node.kind);
        into.insert(name.expect("each kind has a row").1);
        for child in &node.children {
            kinds(child, into);
        }
    }

    /// Goal: all kinds are drawn, and some programs fail while most do not. Method: a thousand seeds.
    #[test]
    fn programs_are_of_all_kinds() {
        let mut seen = BTreeSet::new();
        let mut failed = 0;
        for seed in 0..1_000 {
            let program = Node::draw(seed, 3, &[]);
            kinds(&program, &mut seen);
            failed += u32::from(program.serial().is_err());
        }
        assert_eq!(seen.len(), KINDS.len(), "{seen:?}");
        assert!((10..500).contains(&failed), "{failed}");
    }

    /// Goal: crowds of each order of magnitude are drawn, and none where they are left out. Method: a
    /// thousand seeds; programs are no larger than the room in a job system of the default size.
    #[test]
    fn crowds_are_drawn_and_left_out() {
        let most = |without: &[String]| {
            let programs = (0..1_000).map(|seed| Node::draw(seed, 3, without));
            programs.map(|program| program.size()).max()
        };
        let (all, few) = (most(&[]), most(&[CROWD_NAME.into()]));
        assert!(
            all.is_some_and(|size| (CROWD as usize..1 << 18).contains(&size)),
            "{all:?}"
        );
        assert!(few.is_some_and(|size| size < 4_096), "{few:?}");
        let orders: BTreeSet<u32> = (0..1_000)
            .filter_map(|seed| Some(Node::draw_crowd(seed)?.ilog2()))
            .collect();
        assert!(orders.len() >= CROWD.ilog2() as usize, "{orders:?}");
    }

    /// Goal: kinds that are left out are not there, and the rest of the program stays as it was. Method: all
    /// but one kind, which must be where it was.
    #[test]
    fn kinds_can_be_left_out() {
        let without: Vec<String> = names()
            .filter(|name| *name != "join")
            .map(Into::into)
            .collect();
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let (all, few) = (Node::draw(seed, 3, &[]), Node::draw(seed, 3, &without));
            kinds(&few, &mut seen);
            assert_eq!(all.kind == Kind::Join, few.kind == Kind::Join);
            assert_eq!(all.seed, few.seed);
        }
        assert_eq!(seen, BTreeSet::from(["join", "leaf"]));
    }

    /// Goal: a program is a function of its seed, and its value depends on each node. Method: one program
    /// twice, and with one leaf changed.
    #[test]
    fn the_value_depends_on_each_node() {
        let leaf = |seed| {
            Arc::new(Node {
                kind: Kind::Leaf,
                seed,
                children: Vec::new(),
            })
        };
        let join = |left, right| Node {
            kind: Kind::Join,
            seed: 1,
            children: vec![leaf(left), leaf(right)],
        };
        assert_eq!(join(2, 3).serial(), join(2, 3).serial());
        assert_ne!(join(2, 3).serial(), join(2, 4).serial());
        let same = (Node::draw(5, 4, &[]), Node::draw(5, 4, &[]));
        assert_eq!(same.0.serial(), same.1.serial());
        assert_eq!(same.0.size(), same.1.size());
    }
}
