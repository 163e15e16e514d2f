//! First nodes that the rest of a random program depends on: situations that are rare by themselves.

use super::plan::{Action, Generator, Kind};

/// The kind of a program's first nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Theme {
    /// Like any others.
    None,
    /// A range. Half of the nodes follow it, and threads wait for it before they end: the last member of
    /// its crew may be a thread that then calls nothing any more.
    Range,
    /// The same with few items: the threads come when the last one is being worked on, and leave at once.
    Crew,
    /// An event and its owner, which works on after it has completed the event. Half of the nodes follow the
    /// owner, and bodies wait for the event: spares come, and leave while the owner still works.
    Event,
    /// Two short jobs, and one that makes three others meanwhile and works on: of the two workers that come
    /// from the short ones, one steals two of the three, the other one the third.
    Batch,
}

/// What the jobs of a batch work, in ns: the one that makes others, those others, and the two short ones that
/// keep the other workers busy until all three are made. Those that can be missed work for longer than late
/// steps excuse.
const BATCH: [u64; 6] = [400_000, 100_000, 100_000, 0, 2_000, 2_000];

/// Those of a batch that its first job makes.
const MADE: std::ops::Range<usize> = 1..4;

/// How long threads and bodies work in between.
const WORK: [u64; 5] = [0, 0, 300, 1_000, 3_000];

impl Theme {
    /// How many nodes it begins with.
    pub(super) fn nodes(self) -> usize {
        match self {
            Theme::None => 0,
            Theme::Range | Theme::Crew => 1,
            Theme::Event => 2,
            Theme::Batch => BATCH.len(),
        }
    }
}

impl Generator<'_> {
    /// Makes the first nodes. Anything else may need them, for they have the lowest ranks.
    pub(super) fn begin(&mut self, theme: Theme) {
        match theme {
            Theme::None => {}
            Theme::Range | Theme::Crew => {
                self.add_range();
                self.take_rank(0, 0);
            }
            Theme::Event => {
                let creator = self.thread();
                let event = self.push_node(Kind::Event);
                let owner = self.push_node(Kind::Single);
                self.list(creator).push(Action::CreatePair { event, owner });
                self.take_rank(owner, 0);
                self.take_rank(event, 1);
            }
            Theme::Batch => {
                let creator = self.thread();
                for node in 0..BATCH.len() {
                    self.push_node(Kind::Single);
                    self.take_rank(node, node);
                }
                // The one that makes others comes last, when there is work for the other workers.
                let by_thread = (MADE.end..BATCH.len()).chain([0]);
                self.list(creator).extend(by_thread.map(Action::Create));
            }
        }
    }

    /// Gives this rank to the node. The node that had it gets the other one's.
    fn take_rank(&mut self, node: usize, rank: usize) {
        let old = self.node_ranks[node];
        let all = self.node_ranks.iter_mut().chain(&mut self.thread_ranks);
        all.filter(|other| **other == rank)
            .for_each(|other| *other = old);
        self.node_ranks[node] = rank;
    }

    /// Connects the other nodes and the threads with the first ones.
    pub(super) fn follow(&mut self, theme: Theme) {
        let first = theme.nodes();
        match theme {
            Theme::None => return,
            Theme::Batch => return self.work_in_batch(),
            Theme::Range | Theme::Crew | Theme::Event => {}
        }
        for node in first..self.plan.nodes.len() {
            if self.random.chance(50) {
                self.plan.nodes[node].after.push(first - 1);
            } else if theme == Theme::Event && self.has_body(node) && self.random.chance(60) {
                let body = &mut self.plan.nodes[node].body;
                let at = self.random.below(body.len() + 1);
                body.insert(at, Action::Wait(0));
            }
        }
        let work = *self.random.pick(&WORK);
        match theme {
            Theme::None | Theme::Batch => {}
            Theme::Range | Theme::Crew => {
                let all = theme == Theme::Crew;
                let only_makes = all || self.random.chance(50);
                for thread in &mut self.plan.threads {
                    if only_makes {
                        thread.retain(Action::makes_or_ends);
                    }
                    if all || self.random.chance(80) {
                        thread.extend([Action::Work(work), Action::Wait(0)]);
                    }
                }
            }
            Theme::Event => {
                let is_pair =
                    |action: &Action| matches!(action, Action::CreatePair { event: 0, .. });
                for thread in &mut self.plan.threads {
                    // Half of the time after others, which then run first.
                    if self.random.chance(50)
                        && let Some(pair) = thread.iter().position(is_pair)
                    {
                        let pair = thread.remove(pair);
                        thread.push(pair);
                    }
                }
                let owner = &mut self.plan.nodes[1].body;
                owner.extend([Action::Complete(0), Action::Work(work)]);
            }
        }
    }

    /// The jobs of a batch do this and nothing else.
    fn work_in_batch(&mut self) {
        let makes = MADE.map(Action::Create);
        for (node, work) in self.plan.nodes.iter_mut().zip(BATCH) {
            node.after.clear();
            node.body = vec![Action::Work(work)];
        }
        self.plan.nodes[0].body.splice(..0, makes);
    }
}
