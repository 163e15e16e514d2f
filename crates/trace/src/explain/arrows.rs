//! ArrowIndex between threads: who sent what a thread then had.

use event::Nanos;

use crate::timeline::{Stay, Timeline};

/// An arrow, from one thread to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) to: u32,
    /// When it arrives.
    pub(super) at: Nanos,
    pub(super) from: u32,
    /// When it leaves.
    pub(super) left: Nanos,
}

/// All arrows.
pub(super) struct ArrowIndex {
    /// By the thread where they arrive, then by time.
    list: Vec<Arrow>,
}

impl ArrowIndex {
    pub(super) fn new(timeline: &Timeline) -> ArrowIndex {
        let steps = timeline.slices.flows.windows(2);
        let steps = steps.filter(|two| two[0].id == two[1].id);
        let steps = steps.filter(|two| two[0].thread != two[1].thread);
        let arrow = |two: &[crate::timeline::Flow]| Arrow {
            to: two[1].thread,
            at: two[1].time,
            from: two[0].thread,
            left: two[0].time,
        };
        let mut list: Vec<Arrow> = steps.map(arrow).collect();
        list.sort_unstable();
        ArrowIndex { list }
    }

    /// The last one that arrives at a thread until a time.
    pub(super) fn last(&self, to: u32, until: Nanos) -> Option<Arrow> {
        let after = self
            .list
            .partition_point(|arrow| (arrow.to, arrow.at) <= (to, until));
        let last = self.list[..after].last().copied();
        last.filter(|arrow| arrow.to == to)
    }

    /// The arrow that left another thread during a sleep and arrives first behind it: the sleeper waited for
    /// it.
    pub(super) fn sender(&self, thread: u32, sleep: Stay) -> Option<Arrow> {
        let from = self
            .list
            .partition_point(|arrow| (arrow.to, arrow.at) < (thread, sleep.end));
        let first = self.list.get(from).filter(|arrow| arrow.to == thread)?;
        let is_within = first.left >= sleep.begin && first.left <= sleep.end;
        is_within.then_some(*first)
    }
}
