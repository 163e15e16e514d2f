//! The frames in flight, and where the jobs of each go.
//!
//! Frames that overlap share the workers, and of any two the one with the earlier deadline goes first. The
//! order is made with lanes, since waits raise out of these:
//!
//! | frame | its normal jobs are in | in which order |
//! |---|---|---|
//! | *ahead* | the frame lane, with a tag | of deadlines, in the queue of jobs with a rank |
//! | the first, unless it is ahead | the normal lane | |
//! | any other | the lane of later frames, with a tag | of deadlines, behind all normal jobs |
//!
//! A frame is ahead if it began while one with a later deadline was in flight, and all that are earlier are
//! ahead, too.
//!
//! A frame that begins with an earlier deadline than another one finds jobs of that one in the deques. So it
//! has to be ahead of those. It stays ahead until it is alone, since it has jobs there. Whatever begins with
//! a still earlier deadline is ahead, too. So the frames that are ahead are always the first ones, and come
//! in the order of their deadlines before all others. Where frames begin in the order of their deadlines none
//! is ahead.
//!
//! The lane of a job says by its tag whose deadline it has. No two frames in flight have the same tag, unless
//! there are more frames than tags. A job may be held back, and its frame end meanwhile. So tags are given in
//! turn, and the deadline of one is kept until another frame has it. When the first frame ends,
//! the jobs of the next one, which wait in the lane of later frames, become normal ones
//! ([`FramesInFlight::due`]).
//!
//! "Earliest deadline first" is optimal on one CPU (Liu and Layland, "Scheduling Algorithms for
//! Multiprogramming in a Hard-Real-Time Environment", 1973). On several it is good where the work is short
//! beside the deadlines, as that of frames is.

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::LaneFlags;

/// The frames in flight.
pub(super) struct FramesInFlight<M: Memory> {
    /// In the order of their beginnings, with the tag that was given last.
    frames: M::Lock<(Vec<InFlight>, usize)>,
    /// The earliest deadline if there are two or more; [`Nanos::MAX`] otherwise. It lets jobs skip the lock.
    due: M::AtomicU64,
    /// The deadline of the frame whose jobs are in the normal lane; [`Nanos::MAX`] without a frame.
    normal: M::AtomicU64,
    /// By tag: the deadline of the last frame that had it.
    deadlines: [M::AtomicU64; LaneFlags::TAGS],
}

struct InFlight {
    number: u64,
    deadline: Nanos,
    tag: usize,
    /// It goes before jobs of a later one that was in flight when it began.
    is_ahead: bool,
}

impl<M: Memory> FramesInFlight<M> {
    pub(super) fn new() -> FramesInFlight<M> {
        FramesInFlight {
            frames: M::Lock::new((Vec::new(), 0)),
            due: M::AtomicU64::new(Nanos::MAX.0),
            normal: M::AtomicU64::new(Nanos::MAX.0),
            deadlines: std::array::from_fn(|_| M::AtomicU64::new(0)),
        }
    }

    pub(super) fn begin(&self, number: u64, deadline: Nanos) {
        self.change(|frames, last_tag| {
            let mut tags = (1..=LaneFlags::TAGS).map(|step| (*last_tag + step) % LaneFlags::TAGS);
            let is_free = |tag: &usize| frames.iter().all(|frame| frame.tag != *tag);
            let tag = tags
                .find(is_free)
                .unwrap_or(number as usize % LaneFlags::TAGS);
            // Relaxed: read by jobs of this frame, which are made after this.
            self.deadlines[tag].store(deadline.0, Ordering::Relaxed);
            *last_tag = tag;
            let mut earlier = frames.iter().filter(|frame| frame.deadline <= deadline);
            let follows_these = earlier.all(|frame| frame.is_ahead);
            let is_ahead = follows_these && frames.iter().any(|frame| frame.deadline > deadline);
            frames.push(InFlight {
                number,
                deadline,
                tag,
                is_ahead,
            });
        });
    }

    pub(super) fn end(&self, number: u64) {
        self.change(|frames, _| frames.retain(|frame| frame.number != number));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<InFlight>, &mut usize)) {
        self.frames.with(|(frames, last_tag)| {
            change(frames, last_tag);
            if let [alone] = &mut frames[..] {
                alone.is_ahead = false; // Its jobs are normal ones from now on.
            }
            let earliest = frames.iter().map(|frame| frame.deadline).min();
            let due = earliest.filter(|_| frames.len() > 1);
            let behind = frames.iter().filter(|frame| !frame.is_ahead);
            let normal = behind.map(|frame| frame.deadline).min();
            // Relaxed: a thread that sees an old one puts a job where it would have been a moment ago, or
            // says the deadline that the job had then.
            for (place, deadline) in [(&self.due, due), (&self.normal, normal)] {
                place.store(deadline.unwrap_or(Nanos::MAX).0, Ordering::Relaxed);
            }
        });
    }

    /// Jobs with this deadline or an earlier one come after no other frame's.
    pub(super) fn due(&self) -> Nanos {
        // Relaxed: as above.
        Nanos(self.due.load(Ordering::Relaxed))
    }

    /// The deadline of the frame of a job that was made in a lane with this tag.
    pub(super) fn deadline_in(&self, tag: usize) -> Nanos {
        // Relaxed: a number.
        Nanos(self.deadlines[tag].load(Ordering::Relaxed))
    }

    /// The deadline of a job that was made in this lane, if it is one that frames have jobs in. A job that
    /// says by no tag whose it is has the deadline of the frame whose jobs are normal ones; in the frame lane
    /// it goes before all of these, and has the earliest one.
    pub(super) fn deadline_of(&self, lane: LaneFlags) -> Option<Nanos> {
        if let Some(tag) = lane.tag() {
            return Some(self.deadline_in(tag));
        }
        // Relaxed: as above.
        let normal = Nanos(self.normal.load(Ordering::Relaxed));
        let deadline = match lane {
            LaneFlags::FRAME => normal.min(self.due()),
            LaneFlags::NORMAL => normal,
            _ => Nanos::MAX,
        };
        (deadline != Nanos::MAX).then_some(deadline)
    }

    /// The lane of the normal jobs of the frame with this number. Of equal deadlines the one that began first
    /// is the earlier.
    pub(super) fn lane_of(&self, number: u64) -> LaneFlags {
        if self.due() == Nanos::MAX {
            return LaneFlags::NORMAL;
        }
        self.frames.with(|(frames, _)| {
            let Some(begun) = frames.iter().position(|frame| frame.number == number) else {
                return LaneFlags::NORMAL;
            };
            let (this, before, after) = (&frames[begun], &frames[..begun], &frames[begun + 1..]);
            let is_later = before.iter().any(|frame| frame.deadline <= this.deadline)
                || after.iter().any(|frame| frame.deadline < this.deadline);
            match (this.is_ahead, is_later) {
                (true, _) => LaneFlags::FRAME.tagged(this.tag),
                (false, true) => LaneFlags::LATER.tagged(this.tag),
                (false, false) => LaneFlags::NORMAL,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// A frame of the model, and where jobs that it has made are: less is taken earlier.
    struct Modelled {
        number: u64,
        deadline: Nanos,
        places: Vec<(u32, u64)>,
    }

    /// Goal: whatever the order in which frames begin and end, the jobs of the one with the earlier deadline
    /// go first, those that are made now and those that were made before; a frame that is alone has normal
    /// jobs; jobs have the deadline of their frame, and those of the frame lane the earliest. Method: random
    /// beginnings and ends, a job of each frame after each of them, and all pairs of frames compared by the
    /// places of their jobs.
    #[test]
    fn the_earlier_deadline_goes_first() {
        const NORMAL: (u32, u64) = (1, 0);
        let frames = FramesInFlight::<Os>::new();
        let mut model: Vec<Modelled> = Vec::new();
        let (mut random, mut ahead, mut later) = (1u64, 0, 0);
        for number in 0..if cfg!(miri) { 100 } else { 5000 } {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            if model.len() < 6 && random >> 63 == 0 {
                // No two are alike.
                let deadline = Nanos((random >> 40 & 63) << 32 | number);
                model.push(Modelled {
                    number,
                    deadline,
                    places: Vec::new(),
                });
                frames.begin(number, deadline);
            } else if !model.is_empty() {
                let gone = model.remove((random >> 40) as usize % model.len());
                frames.end(gone.number);
            }
            let earliest = model.iter().map(|frame| frame.deadline).min();
            assert_eq!(frames.deadline_of(LaneFlags::FRAME), earliest);
            assert_eq!(frames.deadline_of(LaneFlags::BACKGROUND), None);
            let (due, alone) = (frames.due(), model.len() == 1);
            for frame in &mut model {
                // What the end of a frame does with the jobs that wait.
                let moves_up = |place: &(u32, u64)| place.0 == 2 && place.1 <= due.0;
                for place in frame.places.iter_mut().filter(|place| moves_up(place)) {
                    *place = NORMAL;
                }
                let lane = frames.lane_of(frame.number);
                assert_eq!(frames.deadline_of(lane), Some(frame.deadline));
                let key = || frames.deadline_in(lane.tag().unwrap()).0;
                let place = match lane {
                    LaneFlags::NORMAL => NORMAL,
                    lane if lane.is_later() => (2, key()),
                    _ => (0, key()),
                };
                (ahead, later) = (
                    ahead + u32::from(place.0 == 0),
                    later + u32::from(place.0 == 2),
                );
                assert!(place == NORMAL || !alone);
                assert!(place == NORMAL || place.1 == frame.deadline.0);
                frame.places.push(place);
            }
            for earlier in &model {
                for later in model
                    .iter()
                    .filter(|later| later.deadline > earlier.deadline)
                {
                    let (last, first) = (earlier.places.iter().max(), later.places.iter().min());
                    assert!(last < first, "{:?} {:?}", earlier.deadline, later.deadline);
                }
            }
        }
        assert_eq!(frames.lane_of(u64::MAX), LaneFlags::NORMAL);
        assert!(ahead > 0 && later > 0);
    }

    /// Goal: of equal deadlines the frame that began first goes first. Method: three of them.
    #[test]
    fn of_equal_deadlines_the_first_to_begin_goes_first() {
        let frames = FramesInFlight::<Os>::new();
        for number in 0..3 {
            frames.begin(number, Nanos(5));
        }
        assert_eq!(frames.lane_of(0), LaneFlags::NORMAL);
        assert!(frames.lane_of(1).is_later() && frames.lane_of(2).is_later());
        frames.end(0);
        assert_eq!(frames.lane_of(1), LaneFlags::NORMAL);
        assert!(frames.lane_of(2).is_later());
    }
}
