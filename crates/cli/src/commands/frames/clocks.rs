//! From the runtime's clock to the system's, by which the kernel stamps what it records.
//!
//! Both are CLOCK_MONOTONIC, but the runtime reads the CPU's tick counter and follows the system's clock
//! along straight lines, so they may be some microseconds apart. While the frames run, both are read together
//! now and then. An instant between two such pairs is shifted by an amount between their differences.

use event::Nanos;
use platform::Os;

/// No more often than this.
const APART: Nanos = Nanos::from_millis(10);

/// Pairs of (the runtime's clock, the system's), in the order of their times.
#[derive(Default)]
pub(super) struct Clocks(Vec<(Nanos, Nanos)>);

impl Clocks {
    /// Reads both clocks, unless that was done a moment ago.
    pub(super) fn look(&mut self) {
        let pair = Os.now_and_monotonic();
        if self.0.last().is_none_or(|last| pair.0 - last.0 >= APART) {
            self.0.push(pair);
        }
    }

    /// The same instant by the system's clock.
    pub(super) fn by_system(&self, time: Nanos) -> Nanos {
        let next = self.0.partition_point(|pair| pair.0 <= time);
        let before = self.0.get(next.wrapping_sub(1)).or(self.0.first());
        let (Some(&before), Some(&after)) = (before, self.0.get(next).or(before)) else {
            return time;
        };
        let ahead = |pair: (Nanos, Nanos)| i128::from(pair.1.0) - i128::from(pair.0.0);
        let (first, last) = (ahead(before), ahead(after));
        let length = i128::from((after.0 - before.0).0).max(1);
        let passed = i128::from((time - before.0).0).min(length);
        let shift = first + (last - first) * passed / length;
        Nanos(u64::try_from(i128::from(time.0) + shift).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: instants at a pair are the system's; those in between lie in between, in order; those outside
    /// are shifted like the nearest. Method: a clock that is 50 ns ahead, then 30 behind, and every
    /// nanosecond around.
    #[test]
    fn instants_are_shifted_in_order() {
        let pairs = [(1_000, 1_050), (2_000, 1_970), (3_000, 3_000)];
        let clocks = Clocks(
            pairs
                .map(|(ours, system)| (Nanos(ours), Nanos(system)))
                .to_vec(),
        );
        for (ours, system) in pairs {
            assert_eq!(clocks.by_system(Nanos(ours)), Nanos(system));
        }
        assert_eq!(clocks.by_system(Nanos(500)), Nanos(550));
        assert_eq!(clocks.by_system(Nanos(1_500)), Nanos(1_510));
        assert_eq!(clocks.by_system(Nanos(4_000)), Nanos(4_000));
        let all: Vec<Nanos> = (0..4_000)
            .map(|time| clocks.by_system(Nanos(time)))
            .collect();
        assert!(all.is_sorted());
        assert_eq!(Clocks::default().by_system(Nanos(7)), Nanos(7));
    }

    /// Goal: the clocks are read, and rarely. Method: look twice at once.
    #[test]
    fn looking_is_rare() {
        let mut clocks = Clocks::default();
        clocks.look();
        let first = clocks.0.clone();
        clocks.look();
        assert!(!first.is_empty() && clocks.0.len() <= 2 && clocks.0[0] == first[0]);
    }
}
