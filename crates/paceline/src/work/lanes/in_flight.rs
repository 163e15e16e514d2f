//! The frames in flight, and the place of each among them.
//!
//! Frames that overlap share the workers, and the one with the earliest deadline should not wait for the
//! others. The order is made with lanes, since waits raise out of these. As long as an earlier frame is in
//! flight, the jobs of a later one are one lane lower: the normal ones are in a side lane behind all normal
//! jobs. That is enough where frames begin in the order of their deadlines, since the jobs of the earlier one
//! are in the deques already. A frame that begins with an earlier deadline than another one in flight comes
//! too late for that. Its jobs are one lane higher.
//!
//! "Earliest deadline first" is optimal on one CPU (Liu and Layland, "Scheduling Algorithms for
//! Multiprogramming in a Hard-Real-Time Environment", 1973). On several it is good where the work is short
//! beside the deadlines, as that of frames is. Among the frames behind the first there is no order but that
//! in which their jobs become ready.

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

/// The place of a frame among those in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FramePlace {
    /// Its jobs are where jobs are.
    #[default]
    Usual,
    /// It has the earliest deadline, and began while a later one was in flight.
    Ahead,
    /// Another one in flight has an earlier deadline.
    Later,
}

/// The frames in flight.
pub(super) struct FramesInFlight<M: Memory> {
    /// The number of each and its deadline, in the order of their beginnings.
    frames: M::Lock<Vec<(u64, Nanos)>>,
    /// How many there are. It lets jobs skip the lock.
    count: M::AtomicU32,
}

impl<M: Memory> FramesInFlight<M> {
    pub(super) fn new() -> FramesInFlight<M> {
        FramesInFlight {
            frames: M::Lock::new(Vec::new()),
            count: M::AtomicU32::new(0),
        }
    }

    /// Returns the earliest deadline of all.
    pub(super) fn begin(&self, number: u64, deadline: Nanos) -> Option<Nanos> {
        self.change(|frames| frames.push((number, deadline)))
    }

    /// Returns the earliest deadline of those that are left.
    pub(super) fn end(&self, number: u64) -> Option<Nanos> {
        self.change(|frames| frames.retain(|frame| frame.0 != number))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(u64, Nanos)>)) -> Option<Nanos> {
        self.frames.with(|frames| {
            change(frames);
            // Relaxed: a thread that sees an old number puts a job where it would have been a moment ago.
            self.count.store(frames.len() as u32, Ordering::Relaxed);
            frames.iter().map(|frame| frame.1).min()
        })
    }

    /// Whether there are two or more.
    pub(super) fn are_several(&self) -> bool {
        // Relaxed: as above.
        self.count.load(Ordering::Relaxed) > 1
    }

    /// The place of the frame with this number. Of equal deadlines the one that began first is the earlier.
    pub(super) fn place_of(&self, number: u64) -> FramePlace {
        if !self.are_several() {
            return FramePlace::Usual;
        }
        self.frames.with(|frames| {
            let Some(begun) = frames.iter().position(|frame| frame.0 == number) else {
                return FramePlace::Usual;
            };
            let deadline = frames[begun].1;
            let (before, after) = (&frames[..begun], &frames[begun + 1..]);
            let is_later = before.iter().any(|frame| frame.1 <= deadline)
                || after.iter().any(|frame| frame.1 < deadline);
            match (is_later, begun) {
                (true, _) => FramePlace::Later,
                (false, 0) => FramePlace::Usual,
                (false, _) => FramePlace::Ahead,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: at most one frame has jobs that are not lowered, that with the earliest deadline; it is ahead
    /// only of frames that began before it. The earliest deadline is known. Method: random beginnings and
    /// ends, against a list that is searched.
    #[test]
    fn the_earliest_deadline_is_first() {
        let frames = FramesInFlight::<Os>::new();
        let mut model: Vec<(u64, Nanos)> = Vec::new();
        let mut random = 1u64;
        for number in 0..if cfg!(miri) { 100 } else { 5000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            if model.len() < 5 && random >> 63 == 0 {
                let deadline = Nanos(random >> 40 & 7);
                let earliest = frames.begin(number, deadline);
                model.push((number, deadline));
                assert_eq!(earliest, model.iter().map(|frame| frame.1).min());
            } else if !model.is_empty() {
                let gone = model.remove((random >> 40) as usize % model.len());
                let earliest = frames.end(gone.0);
                assert_eq!(earliest, model.iter().map(|frame| frame.1).min());
            }
            let first = model.iter().min_by_key(|frame| (frame.1, frame.0));
            for frame in &model {
                let expected = if model.len() == 1 || Some(frame) == first && *frame == model[0] {
                    FramePlace::Usual
                } else if Some(frame) == first {
                    FramePlace::Ahead
                } else {
                    FramePlace::Later
                };
                assert_eq!(frames.place_of(frame.0), expected, "{frame:?} of {model:?}");
            }
            assert_eq!(frames.are_several(), model.len() > 1);
        }
        assert_eq!(frames.place_of(u64::MAX), FramePlace::Usual);
    }
}
