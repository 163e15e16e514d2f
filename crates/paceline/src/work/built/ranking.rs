//! The order in which the ready nodes of a graph are begun: those with the longest way ahead first.
//!
//! The *rank* of a node is the time of its body and of the longest way behind it (the upward rank of HEFT:
//! Topcuoglu, Hariri and Wu, 2002). Any order that leaves no thread idle beside a ready node takes less than
//! twice as long as the best one (Graham, 1966), and a bad one does come near that: a chain that is begun
//! last. The times are learned from the runs themselves.
//!
//! A rank has its price: the node passes through a queue that all threads share (`lanes/ranks.rs`). So only
//! as many nodes get one as the run can pay for, and of these the ones with the least slack, which is the
//! time that they could be put off without making the run longer.

use event::Nanos;
use platform::{Atomic, Ordering, Platform, SharedCell};

use super::{Built, BuiltNode};
use crate::policy::Tuning;
use crate::store::Rank;
use crate::work::context::Context;

/// The first runs, and then one in so many, are timed.
const FIRST_RUNS: u64 = 4;
const EVERY: u64 = 8;

/// What is known of the times of a graph's nodes.
pub(super) struct Ranking {
    /// The nodes, each behind those that it comes after.
    order: Box<[u32]>,
    nodes: Box<[Known]>,
    /// For a moment: the slacks of the nodes.
    slacks: Vec<Nanos>,
    /// Runs so far.
    runs: u64,
    /// Whether the last run was timed.
    was_timed: bool,
    /// How many threads the ranks are meant for.
    threads: u64,
}

impl Ranking {
    fn new(order: &[usize]) -> Ranking {
        Ranking {
            order: order.iter().map(|&node| node as u32).collect(),
            nodes: vec![Known::default(); order.len()].into(),
            slacks: Vec::with_capacity(order.len()),
            runs: 0,
            was_timed: false,
            threads: 0,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// The time of the body that the ranks were made of.
    time: Nanos,
    /// That time, and the longest way behind it.
    ahead: Nanos,
    /// The longest way before it.
    before: Nanos,
}

impl Known {
    /// Learns that the body takes so long of late. Returns whether that is news: a change by less than an
    /// eighth is noise, and to follow it would change the order from run to run.
    fn learn(&mut self, recent: Nanos) -> bool {
        let is_news = recent.0.abs_diff(self.time.0) > self.time.0 / 8;
        if is_news {
            self.time = recent;
        }
        is_news
    }

    /// The longest way through the graph that leads through this node.
    fn way(&self) -> Nanos {
        self.before + self.ahead
    }
}

impl<'b, P: Platform> Built<'b, P> {
    /// Whether ready nodes are begun in the order of what hangs on them, from the next run on: then `order`
    /// has the nodes, each behind those that it comes after. For a caller that has the graph to itself.
    /// Allocates.
    pub(crate) fn set_ranked(&self, order: Option<&[usize]>) {
        let ranking = order.map(|order| Box::new(Ranking::new(order)));
        // SAFETY: no run is in progress: the caller has the graph to itself.
        unsafe { self.ranking.with_mut(|kept| *kept = ranking) };
        self.set_flag(Self::LEARNS, false);
        for node in &self.nodes {
            // Relaxed: published with the nodes of the next run.
            node.rank.store(Rank::NONE.0, Ordering::Relaxed);
            node.rank_of_loops.store(Rank::NONE.0, Ordering::Relaxed);
        }
    }

    /// The nodes that come after this one.
    fn behind(&self, node: u32) -> impl Iterator<Item = u32> {
        let (first, end) = self.nodes[node as usize].successors;
        let successors = &self.successors[first as usize..end as usize];
        successors.iter().map(|successor| successor.node())
    }

    /// A run is about to begin: its nodes get the ranks that the last ones suggest.
    ///
    /// # Safety
    /// No run is in progress.
    pub(super) unsafe fn rank_for_run(&self, cx: &Context<'_, P>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.ranking.with_mut(|ranking| {
                if let Some(ranking) = &mut *ranking {
                    self.rank_by(cx, ranking);
                }
            });
        }
    }

    fn rank_by(&self, cx: &Context<'_, P>, ranking: &mut Ranking) {
        let threads = cx.shared.workers.active() as u64 + 1;
        let mut is_news = threads != ranking.threads && ranking.runs > 0;
        ranking.threads = threads;
        if ranking.was_timed {
            for (known, cold) in ranking.nodes.iter_mut().zip(&self.cold) {
                // SAFETY: no run is in progress, says the caller.
                is_news |= known.learn(unsafe { cold.timing.with(|timing| (*timing).recent) });
            }
        }
        if is_news {
            self.set_ranks(ranking);
            cx.note_ranks();
        }
        ranking.was_timed = ranking.runs < FIRST_RUNS || ranking.runs.is_multiple_of(EVERY);
        self.set_flag(Self::LEARNS, ranking.was_timed);
        ranking.runs += 1;
    }

    fn set_ranks(&self, ranking: &mut Ranking) {
        self.find_ways(ranking);
        let slack_max = self.slack_max(ranking);
        let longest = longest_way(ranking);
        for (node, known) in self.nodes.iter().zip(&ranking.nodes) {
            let slack = longest - known.way();
            let is_ranked = node.takes_turns() && slack < slack_max;
            let (rank, of_loops) = match Rank::of(known.ahead) {
                _ if !is_ranked => (Rank::NONE, Rank::NONE),
                rank if known.time >= Tuning::PIECE && slack.0 <= longest.0 / 16 => (rank, rank),
                rank => (rank, Rank::NONE),
            };
            // Relaxed, both: published with the nodes of the run.
            node.rank.store(rank.0, Ordering::Relaxed);
            node.rank_of_loops.store(of_loops.0, Ordering::Relaxed);
        }
    }

    /// The longest ways before and behind each node.
    fn find_ways(&self, ranking: &mut Ranking) {
        let nodes = &mut ranking.nodes;
        for &node in ranking.order.iter().rev() {
            let behind = self.behind(node).map(|next| nodes[next as usize].ahead);
            let behind = behind.max().unwrap_or(Nanos::ZERO);
            let known = &mut nodes[node as usize];
            known.ahead = known.time + behind;
            known.before = Nanos::ZERO;
        }
        for &node in &ranking.order {
            let known = nodes[node as usize];
            for next in self.behind(node) {
                let next = &mut nodes[next as usize];
                next.before = next.before.max(known.before + known.time);
            }
        }
    }

    /// The nodes with less slack than this get a rank.
    fn slack_max(&self, ranking: &mut Ranking) -> Nanos {
        let longest = longest_way(ranking);
        let known = ranking.nodes.iter().zip(&self.nodes);
        let known = known.filter(|(_, node)| node.takes_turns());
        let (mut work, slacks) = (0, &mut ranking.slacks);
        slacks.clear();
        slacks.extend(known.map(|(known, _)| {
            work += known.time.0;
            longest - known.way()
        }));
        let price = Tuning::RANK.0.max(ranking.threads * Tuning::RANK_TURN.0);
        let affordable = usize::try_from(work / price).unwrap_or(usize::MAX);
        if affordable >= slacks.len() {
            return Nanos::MAX;
        }
        *slacks.select_nth_unstable(affordable).1
    }
}

impl<P: Platform> BuiltNode<'_, P> {
    /// Whether it goes through a queue when it is ready.
    fn takes_turns(&self) -> bool {
        self.has_body && !self.is_on_main
    }
}

fn longest_way(ranking: &Ranking) -> Nanos {
    let ways = ranking.nodes.iter().map(|known| known.ahead);
    ways.max().unwrap_or(Nanos::ZERO)
}
