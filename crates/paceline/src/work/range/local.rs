//! The data of a thread's loops.

use event::Nanos;

use crate::store::Cache;

/// The data of a thread's loops.
pub(crate) struct LoopLocal {
    /// Blocks of words for loops that this thread opens.
    pub(super) blocks: Cache,
    /// The learned cost of an item of a range, or of a whole join tree, by label (in picoseconds, 0 unknown).
    costs: Vec<u64>,
    pub(super) unshared: Unshared,
}

/// Work that a thread has kept to itself although it could have woken a helper: the time of short loops that
/// followed each other closely.
#[derive(Clone, Copy, Default)]
pub(super) struct Unshared {
    pub(super) time: Nanos,
    forget_at: Nanos,
}

impl LoopLocal {
    pub(crate) fn new() -> LoopLocal {
        LoopLocal {
            blocks: Cache::new(),
            costs: Vec::new(),
            unshared: Unshared::default(),
        }
    }

    /// The cost of an item of this label on this thread, in picoseconds.
    pub(crate) fn cost_of(&self, label: u32) -> Option<u64> {
        let known = self.costs.get(label as usize).copied();
        known.filter(|&cost| cost > 0)
    }

    /// Learns the cost of an item (a moving average over runs).
    pub(crate) fn learn(&mut self, label: u32, cost: Option<u64>) {
        const LABELS_MAX: usize = 1 << 16;
        let (Some(cost), true) = (cost, (label as usize) < LABELS_MAX) else {
            return;
        };
        if self.costs.len() <= label as usize {
            self.costs.resize(label as usize + 1, 0);
        }
        let known = &mut self.costs[label as usize];
        *known = if *known == 0 {
            cost
        } else {
            (*known * 3 + cost) / 4
        }
        .max(1);
    }
}

impl Unshared {
    /// A loop that took `time` has ended at `now` without being shared. Its time is forgotten at `forget_at`.
    pub(super) fn note(&mut self, time: Nanos, now: Nanos, forget_at: Nanos) {
        let recent = now - time < self.forget_at;
        let before = if recent { self.time } else { Nanos::ZERO };
        *self = Unshared {
            time: before + time,
            forget_at,
        };
    }
}
