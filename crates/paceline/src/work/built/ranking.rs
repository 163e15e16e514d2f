//! The order in which the ready nodes of a graph are begun: those with the longest way ahead first
//! (`order/ways.rs`). The times are learned from the runs themselves.

use event::Nanos;
use platform::{Atomic, Ordering, Platform, SharedCell};

use super::{Built, BuiltNode};
use crate::store::Rank;
use crate::work::context::Context;
use crate::work::order::{JobWay, WayRanks, is_timed_after};

/// What is known of the times of a graph's nodes.
pub(super) struct Ranking {
    /// The nodes, each behind those that it comes after.
    order: Box<[u32]>,
    nodes: Box<[JobWay]>,
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
    /// `takes_turns`: by node, whether it goes through a queue when it is ready.
    fn new(order: &[usize], takes_turns: impl Iterator<Item = bool>) -> Ranking {
        Ranking {
            order: order.iter().map(|&node| node as u32).collect(),
            nodes: takes_turns.map(JobWay::unknown).collect(),
            slacks: Vec::with_capacity(order.len()),
            runs: 0,
            was_timed: false,
            threads: 0,
        }
    }
}

impl<'b, P: Platform> Built<'b, P> {
    /// Whether ready nodes are begun in the order of what hangs on them, from the next run on: then `order`
    /// has the nodes, each behind those that it comes after. For a caller that has the graph to itself.
    /// Allocates.
    pub(crate) fn set_ranked(&self, order: Option<&[usize]>) {
        let takes_turns = || self.nodes.iter().map(BuiltNode::takes_turns);
        let ranking = order.map(|order| Box::new(Ranking::new(order, takes_turns())));
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
        ranking.was_timed = is_timed_after(ranking.runs);
        self.set_flag(Self::LEARNS, ranking.was_timed);
        ranking.runs += 1;
    }

    fn set_ranks(&self, ranking: &mut Ranking) {
        let Ranking {
            order,
            nodes,
            slacks,
            threads,
            ..
        } = ranking;
        let order = || order.iter().copied();
        let ranks = WayRanks::find(nodes, order, |node| self.behind(node), slacks, *threads);
        for (node, known) in self.nodes.iter().zip(&*nodes) {
            let ranks = ranks.of(known);
            // Relaxed, both: published with the nodes of the run.
            node.rank.store(ranks.own.0, Ordering::Relaxed);
            node.rank_of_loops
                .store(ranks.of_loops.0, Ordering::Relaxed);
        }
    }
}

impl<P: Platform> BuiltNode<'_, P> {
    /// Whether it goes through a queue when it is ready.
    fn takes_turns(&self) -> bool {
        self.has_body && !self.is_on_main
    }
}
