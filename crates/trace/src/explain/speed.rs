//! The part of a thread's time on a CPU that was lost because the CPU was slow.

use event::Nanos;

use super::Confidence;
use crate::timeline::{Lane, Timeline};

/// The speeds of CPUs.
pub(super) struct Speeds {
    /// The capacity of the fastest one.
    most: u32,
    /// How sure that is.
    pub(super) confidence: Confidence,
}

impl Speeds {
    pub(super) fn new(timeline: &Timeline) -> Speeds {
        let most = timeline.lanes.iter().filter_map(|lane| lane.capacity).max();
        Speeds {
            most: most.unwrap_or(0),
            confidence: if timeline.capacities_told {
                Confidence::Known
            } else {
                // A CPU may never have run at its highest frequency.
                Confidence::Inferred
            },
        }
    }

    /// The capacity of a CPU; that of the fastest if it is not known.
    pub(super) fn capacity(&self, lane: &Lane) -> u32 {
        lane.capacity.unwrap_or(self.most).min(self.most)
    }

    /// The part of a time that would not have been needed on the fastest CPU at its highest frequency,
    /// rounded down.
    pub(super) fn lost(&self, lane: &Lane, khz: Option<u32>, length: Nanos) -> Nanos {
        let most = u128::from(self.most.max(1));
        let capacity = if self.most == 0 {
            most
        } else {
            self.capacity(lane).into()
        };
        let max_khz = lane.max_khz.unwrap_or(0);
        let khz = khz.unwrap_or(max_khz).min(max_khz);
        let (khz, max_khz) = match max_khz {
            0 => (1, 1),
            _ => (u128::from(khz), u128::from(max_khz)),
        };
        let length = u128::from(length.0);
        // The needed time is rounded up, so that the lost time is rounded down.
        let needed = (length * capacity * khz).div_ceil(most * max_khz);
        Nanos((length - needed.min(length)) as u64)
    }
}

/// A CPU's frequency just before a time, and since when it had it.
pub(super) fn frequency(lane: &Lane, time: Nanos) -> (Option<u32>, Nanos) {
    let after = lane.frequencies.partition_point(|(since, _)| *since < time);
    match after.checked_sub(1) {
        Some(at) => (Some(lane.frequencies[at].1), lane.frequencies[at].0),
        None => (None, Nanos::ZERO),
    }
}
