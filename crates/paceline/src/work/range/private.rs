//! A loop on the thread that called it, while no other thread takes part.

use std::ops::Range;

use platform::Platform;

use super::body::SharedRange;
use super::pace::Pace;
use super::words::RangeItems;
use crate::store::Label;
use crate::work::context::Context;

/// A loop that has not left its thread, or not yet.
pub(super) struct Private<'c, 'a, P: Platform, F> {
    context: &'c Context<'a, P>,
    label: u32,
    range: &'c SharedRange<&'c F>,
    pace: Pace,
}

impl<'c, 'a, P: Platform, F: Fn(Range<usize>, &Context<'_, P>) + Sync> Private<'c, 'a, P, F> {
    pub(super) fn new(
        context: &'c Context<'a, P>,
        label: Label,
        range: &'c SharedRange<&'c F>,
    ) -> Self {
        let labels = &context.graph().labels;
        let label = context.own(|own| labels.number(&mut own.graph.labels, &label));
        let mut pace = Pace::new(context, range.grain);
        if let Some(known) = context.own(|own| own.loops.cost_of(label)) {
            pace.expect(known);
        }
        Private {
            context,
            label,
            range,
            pace,
        }
    }

    /// Runs block after block until the rest is worth sharing. Returns the rest.
    pub(super) fn until_shared(&mut self) -> RangeItems {
        let mut left = RangeItems {
            lo: 0,
            hi: self.range.items,
        };
        let mut cost = self.context.own(|own| own.loops.cost_of(self.label));
        while left.len() > 0 && !self.context.worth_inviting(cost, u64::from(left.len())) {
            left = self.block(left);
            cost = self.pace.cost();
        }
        let measured = self.pace.measured();
        self.context
            .own(|own| own.loops.learn(self.label, measured));
        self.context.thread.counters.blocks.add(self.pace.blocks);
        if left.len() == 0 {
            self.context.note_unshared(self.pace.time());
        }
        left
    }

    /// Runs the rest without sharing.
    pub(super) fn rest(&mut self, mut left: RangeItems) {
        while left.len() > 0 {
            left = self.block(left);
        }
    }

    #[inline(never)]
    fn block(&mut self, left: RangeItems) -> RangeItems {
        let most = self.pace.next_block(self.context, left.len());
        let (items, rest) = left.take_front(most, self.pace.least());
        self.range.run(items, self.context);
        self.pace.ran(self.context, items.len(), rest.len());
        rest
    }
}
