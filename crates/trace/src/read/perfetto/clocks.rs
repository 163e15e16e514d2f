//! The clocks of a file, and their offsets to each other.
//!
//! Each writer may use a clock of its own. Snapshots have the times of several clocks at one instant. Times
//! are converted to the boot clock by the last snapshot before them, over another clock in between if need
//! be.

use std::collections::HashMap;
use std::fmt;

use super::wire::{Fields, Row, Value};

/// The default clock of times.
pub(super) const BOOT: ClockId = ClockId(0, 6);
/// Time since the machine started, without sleep.
pub(super) const MONOTONIC: ClockId = ClockId(0, 3);
const MONOTONIC_RAW: u32 = 5;
/// Added to ftrace's numbers for clocks of its own: beyond all numbers of the format.
const FTRACE: u32 = 1 << 31;

/// Numbers of clocks that belong to one sequence.
const LOCAL: std::ops::Range<u32> = 64..128;

/// The largest number of clocks between a clock and the boot clock.
const HOPS: usize = 3;

/// A clock: its sequence, or 0 for a clock of all sequences, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClockId(u32, u32);

impl ClockId {
    /// The clock that this sequence means by this number.
    pub(super) fn of(sequence: u32, number: u32) -> ClockId {
        if LOCAL.contains(&number) {
            ClockId(sequence, number)
        } else {
            ClockId(0, number)
        }
    }

    /// The clock with this number in ftrace's bundles.
    pub(super) fn of_ftrace(number: u64) -> ClockId {
        match number {
            2 | 3 => ClockId(0, FTRACE + number as u32),
            4 => ClockId(0, MONOTONIC_RAW),
            _ => BOOT,
        }
    }
}

/// A clock whose times are not nanoseconds since its beginning.
#[derive(Clone, Copy)]
struct Odd {
    nanos: u64,
    /// The sum so far, if times are steps.
    latest: Option<u64>,
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "clock {}", self.1),
            sequence => write!(f, "clock {} of sequence {sequence}", self.1),
        }
    }
}

/// The known facts about the clocks.
#[derive(Default)]
pub(super) struct Clocks {
    /// By pair of clocks: the times of both at one instant, in the order of the file.
    pairs: HashMap<(ClockId, ClockId), Vec<(u64, u64)>>,
    /// By clock: the clocks it has pairs with.
    beside: HashMap<ClockId, Vec<ClockId>>,
    odd: HashMap<ClockId, Odd>,
}

impl Clocks {
    /// Learns from a snapshot that is in this sequence; `None` if it is broken.
    pub(super) fn snapshot(&mut self, sequence: u32, message: &[u8]) -> Option<()> {
        let mut shown: Vec<(ClockId, u64)> = Vec::new();
        let mut fields = Fields::of(message);
        for field in &mut fields {
            if let (1, Value::Bytes(clock)) = field {
                let row = Row::of(clock)?;
                let clock = ClockId::of(sequence, row.number(1) as u32);
                let nanos = row.number(4).max(1);
                let time = row.number(2).saturating_mul(nanos);
                let is_steps = row.number(3) != 0;
                if is_steps || nanos != 1 {
                    let latest = is_steps.then_some(time);
                    self.odd.insert(clock, Odd { nanos, latest });
                }
                shown.push((clock, time));
            }
        }
        // All of them have a pair with one, which relates them to each other.
        let boot = shown.iter().find(|(clock, _)| *clock == BOOT);
        if let Some(&(hub, at)) = boot.or(shown.first()) {
            for &(clock, time) in shown.iter().filter(|(clock, _)| *clock != hub) {
                self.pair(clock, time, hub, at);
                self.pair(hub, at, clock, time);
            }
        }
        (!fields.is_broken()).then_some(())
    }

    fn pair(&mut self, one: ClockId, time: u64, other: ClockId, then: u64) {
        let beside = self.beside.entry(one).or_default();
        if !beside.contains(&other) {
            beside.push(other);
        }
        self.pairs
            .entry((one, other))
            .or_default()
            .push((time, then));
    }

    /// Times of a clock of ftrace and of the boot clock, read at once.
    pub(super) fn ftrace_pair(&mut self, clock: ClockId, time: u64, boot: u64) {
        if clock != BOOT {
            self.pair(clock, time, BOOT, boot);
        }
    }

    /// The nanoseconds of a number in a packet, on its clock. Steps add up, so each number may be converted
    /// only once, in the order of the file.
    pub(super) fn nanos(&mut self, clock: ClockId, number: u64) -> u64 {
        let Some(odd) = self.odd.get_mut(&clock) else {
            return number;
        };
        let nanos = number.saturating_mul(odd.nanos);
        match &mut odd.latest {
            Some(latest) => {
                *latest = latest.saturating_add(nanos);
                *latest
            }
            None => nanos,
        }
    }

    /// Whether this clock can be converted to the boot clock.
    pub(super) fn knows(&self, clock: ClockId) -> bool {
        self.boot(clock, 0).is_some()
    }

    /// A time of a clock on the boot clock; `None` if it cannot be converted.
    pub(super) fn boot(&self, clock: ClockId, time: u64) -> Option<u64> {
        if clock == BOOT {
            return Some(time);
        }
        if self.pairs.contains_key(&(clock, BOOT)) {
            return Some(self.step(clock, time, BOOT));
        }
        let mut reached = vec![(clock, time)];
        let mut from = 0;
        for _ in 0..=HOPS {
            if let Some(&(_, time)) = reached.iter().find(|reached| reached.0 == BOOT) {
                return Some(time);
            }
            let until = reached.len();
            for at in from..until {
                let (clock, time) = reached[at];
                for &next in self.beside.get(&clock).into_iter().flatten() {
                    if reached.iter().all(|reached| reached.0 != next) {
                        reached.push((next, self.step(clock, time, next)));
                    }
                }
            }
            from = until;
        }
        None
    }

    fn step(&self, clock: ClockId, time: u64, next: ClockId) -> u64 {
        let pairs = self
            .pairs
            .get(&(clock, next))
            .map_or(&[][..], |pairs| pairs);
        let before = pairs.partition_point(|pair| pair.0 <= time);
        let Some(&(then, there)) = pairs.get(before.saturating_sub(1)) else {
            return time;
        };
        match time.checked_sub(then) {
            Some(since) => there.saturating_add(since),
            None => there.saturating_sub(then - time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire_test::{message, number};
    use super::*;

    /// A snapshot of clocks: number, time, whether it is told in steps, nanoseconds a unit.
    fn snapshot(clocks: &[(u64, u64, bool, u64)]) -> Vec<u8> {
        let clock = |&(id, time, steps, unit): &(u64, u64, bool, u64)| {
            let fields = [
                number(1, id),
                number(2, time),
                number(3, steps.into()),
                number(4, unit),
            ];
            message(1, &fields.concat())
        };
        clocks.iter().flat_map(clock).collect()
    }

    /// Goal: times are converted to the boot clock by the last snapshot before them, and those before the
    /// first by the first. Method: two snapshots between which the monotonic clock slept 50.
    #[test]
    fn the_last_snapshot_before_a_time_counts() {
        let mut clocks = Clocks::default();
        for (mono, boot) in [(1_000, 3_000), (2_000, 4_050)] {
            let both = snapshot(&[(3, mono, false, 0), (6, boot, false, 0)]);
            clocks.snapshot(1, &both).unwrap();
        }
        let boot = |time| clocks.boot(MONOTONIC, time);
        assert_eq!(boot(900), Some(2_900));
        assert_eq!(boot(1_999), Some(3_999));
        assert_eq!(boot(2_001), Some(4_051));
        assert_eq!(clocks.boot(BOOT, 7), Some(7));
        assert_eq!(clocks.boot(ClockId::of(1, 1), 7), None);
    }

    /// Goal: a sequence's own clock, told in steps of microseconds, is converted to the boot clock over the
    /// monotonic one, and no other sequence's clock of the same number is. Method: three steps.
    #[test]
    fn steps_add_up_and_clocks_chain() {
        let mut clocks = Clocks::default();
        clocks
            .snapshot(
                5,
                &snapshot(&[(64, 10, true, 1_000), (3, 500_000, false, 0)]),
            )
            .unwrap();
        clocks
            .snapshot(1, &snapshot(&[(3, 0, false, 0), (6, 7, false, 0)]))
            .unwrap();
        let own = ClockId::of(5, 64);
        let times: Vec<_> = [0, 2, 3].map(|step| clocks.nanos(own, step)).to_vec();
        assert_eq!(times, [10_000, 12_000, 15_000]);
        assert_eq!(clocks.boot(own, 15_000), Some(505_007));
        assert_eq!(clocks.boot(ClockId::of(6, 64), 15_000), None);
    }
}
