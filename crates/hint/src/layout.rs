//! Where what is in a page: the only file that knows. The README describes it for others.
//!
//! A page is words of 64 bits, in the byte order of the machine. The first line of 64 bytes is the header,
//! and each line after it is one thread's slot.

use event::{Nanos, Task};
use platform::Lane;

/// The words of a cache line: of the header, and of each slot.
pub const LINE_WORDS: usize = 8;

/// What the first word of a page holds: `PLNHINTS`, as the bytes of a big-endian number.
pub const MAGIC: u64 = u64::from_be_bytes(*b"PLNHINTS");

/// The version of the format.
pub const VERSION: u32 = 1;

/// How many threads an entry can name that run what its thread waits for.
pub const WAITS_MAX: usize = 6;

/// Words of the header.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    /// The version, and above it the number of slots.
    pub(crate) const SHAPE: usize = 1;
    /// The process that the page was handed to, for itself: a reader goes by what the broker noted elsewhere.
    pub(crate) const PROCESS: usize = 2;
    /// No slot from this number on has ever been used.
    pub(crate) const USED: usize = 3;
    /// How many threads came that found no slot.
    pub(crate) const REFUSED: usize = 4;
}

/// Words of a slot.
pub(crate) mod slot {
    /// Odd while the owner writes the others.
    pub(crate) const SEQUENCE: usize = 0;
    /// See [`Head`](super::Head).
    pub(crate) const HEAD: usize = 1;
    /// The deadline of what the thread runs, in nanoseconds of CLOCK_MONOTONIC; 0: none.
    pub(crate) const DEADLINE: usize = 2;
    /// The first of the words with two tids each.
    pub(crate) const WAITS: usize = 3;
}

/// How many words hold the tids.
pub(crate) const WAIT_WORDS: usize = WAITS_MAX.div_ceil(2);

/// The word with the version and the number of slots.
pub(crate) fn shape(slots: u32) -> u64 {
    u64::from(slots) << 32 | u64::from(VERSION)
}

/// The version in that word.
pub(crate) fn version_in(shape: u64) -> u32 {
    shape as u32 // The lower half.
}

/// What a thread runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// How urgent it is.
    pub lane: Lane,
    /// When it has to be done, on the system's clock CLOCK_MONOTONIC; `None` if nothing says so.
    pub deadline: Option<Nanos>,
}

/// A slot's second word: the tid, the lane of what the thread runs, and how many tids are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub(crate) u64);

impl Head {
    const LANE: u32 = 32;
    const WAITS: u32 = 40;
    const BYTE: u64 = 0xff;

    /// Of a thread that runs nothing and waits for nothing.
    pub(crate) fn of(thread: Task) -> Head {
        Head(u64::from(thread.0))
    }

    pub(crate) fn thread(self) -> Task {
        Task(self.0 as u32) // The lower half.
    }

    #[inline]
    pub(crate) fn with_lane(self, lane: Option<Lane>) -> Head {
        Head(self.0 & !(Head::BYTE << Head::LANE) | code(lane) << Head::LANE)
    }

    #[inline]
    pub(crate) fn with_waits(self, count: usize) -> Head {
        debug_assert!(count <= WAITS_MAX);
        Head(self.0 & !(Head::BYTE << Head::WAITS) | (count as u64) << Head::WAITS)
    }

    /// The lane of what the thread runs; an error for a number that is none.
    pub(crate) fn lane(self) -> Result<Option<Lane>, BadCode> {
        match self.0 >> Head::LANE & Head::BYTE {
            0 => Ok(None),
            1 => Ok(Some(Lane::Background)),
            2 => Ok(Some(Lane::Normal)),
            3 => Ok(Some(Lane::Frame)),
            _ => Err(BadCode),
        }
    }

    /// How many tids are listed, if so many fit.
    pub(crate) fn waits(self) -> Result<usize, BadCode> {
        let count = (self.0 >> Head::WAITS & Head::BYTE) as usize;
        (count <= WAITS_MAX).then_some(count).ok_or(BadCode)
    }
}

/// A number that means nothing in this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadCode;

fn code(lane: Option<Lane>) -> u64 {
    match lane {
        None => 0,
        Some(Lane::Background) => 1,
        Some(Lane::Frame) => 3,
        // A share is a matter among jobs. To the kernel they are all alike.
        Some(_) => 2,
    }
}

/// Two tids in a word.
#[inline]
pub(crate) fn pair(first: Task, second: Task) -> u64 {
    u64::from(second.0) << 32 | u64::from(first.0)
}

/// The tids of such a word.
pub(crate) fn pair_in(word: u64) -> [Task; 2] {
    [Task(word as u32), Task((word >> 32) as u32)] // The halves.
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is put into a head comes out, and numbers without a meaning are errors. Method: each lane
    /// and each count, one replaced by the next; then bytes that are too large.
    #[test]
    fn a_head_gives_back_what_was_put_in() {
        let lanes = [
            None,
            Some(Lane::Background),
            Some(Lane::Normal),
            Some(Lane::Frame),
        ];
        let mut head = Head::of(Task(u32::MAX));
        for lane in lanes {
            for count in 0..=WAITS_MAX {
                head = head.with_lane(lane).with_waits(count);
                assert_eq!(head.thread(), Task(u32::MAX));
                assert_eq!((head.lane(), head.waits()), (Ok(lane), Ok(count)));
            }
        }
        assert_eq!(Head(4 << Head::LANE).lane(), Err(BadCode));
        assert_eq!(Head(7 << Head::WAITS).waits(), Err(BadCode));
        assert_eq!(pair_in(pair(Task(1), Task(2))), [Task(1), Task(2)]);
        assert_eq!(version_in(shape(255)), VERSION);
    }
}
