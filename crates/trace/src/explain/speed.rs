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

    /// The parts of a time that would not have been needed on the fastest CPU at its highest frequency. Each
    /// is the difference of two times that are rounded up, so their sum is rounded down. `limit`: the highest
    /// frequency that the CPU may have.
    pub(super) fn lost(
        &self,
        lane: &Lane,
        khz: Option<u32>,
        limit: Option<u32>,
        length: Nanos,
    ) -> LostTime {
        let most = u128::from(self.most.max(1));
        let capacity = if self.most == 0 {
            most
        } else {
            self.capacity(lane).into()
        };
        let max_khz = lane.max_khz.unwrap_or(0);
        let khz = khz.unwrap_or(max_khz).min(max_khz);
        let limit = limit.unwrap_or(max_khz).clamp(khz, max_khz);
        let [khz, limit, max_khz] = match (limit, max_khz) {
            (0, _) | (_, 0) => [1; 3],
            (limit, max_khz) => [khz, limit, max_khz].map(u128::from),
        };
        let length = u128::from(length.0);
        let at_limit = (length * khz).div_ceil(limit);
        let at_most = (length * khz).div_ceil(max_khz);
        let on_fastest = (length * capacity * khz).div_ceil(most * max_khz);
        let nanos = |more: u128, less: u128| Nanos((more - less.min(more)) as u64);
        LostTime {
            low_frequency: nanos(length, at_limit),
            limit: nanos(at_limit, at_most),
            small_core: nanos(at_most, on_fastest),
        }
    }

    /// How fast a CPU is just before a time, in numbers to be compared.
    pub(super) fn now(&self, lane: &Lane, time: Nanos) -> u128 {
        let max_khz = lane.max_khz.unwrap_or(0).max(1);
        let khz = frequency(lane, time).0.unwrap_or(max_khz);
        (u128::from(self.capacity(lane)) << 32) * u128::from(khz) / u128::from(max_khz)
    }
}

/// The time for which a thread ran longer than on the fastest CPU at its highest frequency, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LostTime {
    pub(super) small_core: Nanos,
    /// The frequency was lower than it could have been.
    pub(super) low_frequency: Nanos,
    /// It could not have been higher.
    pub(super) limit: Nanos,
}

/// The highest frequency that a CPU may have just before a time, and since when.
pub(super) fn limit(lane: &Lane, time: Nanos) -> (Option<u32>, Nanos) {
    latest(&lane.limits, time)
}

/// A CPU's frequency just before a time, and since when it had it.
pub(super) fn frequency(lane: &Lane, time: Nanos) -> (Option<u32>, Nanos) {
    latest(&lane.frequencies, time)
}

fn latest(changes: &[(Nanos, u32)], time: Nanos) -> (Option<u32>, Nanos) {
    let after = changes.partition_point(|(since, _)| *since < time);
    match after.checked_sub(1) {
        Some(at) => (Some(changes[at].1), changes[at].0),
        None => (None, Nanos::ZERO),
    }
}
