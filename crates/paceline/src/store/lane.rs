//! The flags of a job that say its lane, and how far it was raised.
//!
//! A lane is a set of flags, and a more urgent lane has all flags of the less urgent ones. So a raise is one
//! `fetch_or`, raises by several threads come to the same in any order, and nothing ever sinks. The lane that
//! a job was made in and the one that it was raised to have flags of their own: what it makes is in the
//! former.
//!
//! A *side lane* has a number instead of such flags. Its jobs are behind the normal ones, or beside them, and
//! wait in a queue of their own. Raised out of it they have no number any more.
//!
//! Jobs of frames that overlap say which frame's they are, unless their lane is the usual one: the flags of
//! their lane have the *tag* of the frame.

use platform::Lane;

/// The flags of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneFlags(pub(crate) u32);

impl LaneFlags {
    /// What the flags of a lane are shifted by to say that a job was raised to it.
    const RAISED_SHIFT: u32 = 9;
    /// Ready jobs of this lane wait in the backlog.
    pub(crate) const BACKGROUND: LaneFlags = LaneFlags(0);
    /// Ready jobs of this lane wait in the deques.
    pub(crate) const NORMAL: LaneFlags = LaneFlags(1 << 8);
    /// Ready jobs of this lane wait in the front queue.
    pub(crate) const FRAME: LaneFlags = LaneFlags(1 << 8 | 1 << 16);

    /// Where the number of a side lane begins.
    const SIDE_SHIFT: u32 = 20;
    /// How many numbers there are.
    pub(crate) const SIDES: usize = Lane::SHARES.len() + 1;
    /// The number of a side lane, from 1 on.
    const SIDE: u32 = 7 << LaneFlags::SIDE_SHIFT;
    /// Jobs of later frames, while an earlier one is in flight, that would be in the normal lane otherwise.
    pub(crate) const LATER: LaneFlags = LaneFlags::side(LaneFlags::SIDES);

    /// Where the tag of a frame begins.
    const TAG_SHIFT: u32 = 26;
    /// How many tags there are.
    pub(crate) const TAGS: usize = 15;
    /// One more than the tag of a frame; 0 where there is none.
    const TAG: u32 = 15 << LaneFlags::TAG_SHIFT;

    /// The flags of all lanes.
    pub(crate) const ALL: u32 = LaneFlags::FRAME.0 | LaneFlags::SIDE | LaneFlags::TAG;

    /// The flags that say of which lane a job is: those of the lane that it was made in, and of a raise above
    /// the normal one.
    pub(crate) const OF_JOB: u32 = {
        let above = LaneFlags::FRAME.0 & !LaneFlags::NORMAL.0;
        LaneFlags::FRAME.0 | above << LaneFlags::RAISED_SHIFT
    };

    /// The side lane with this number, from 1 on.
    const fn side(number: usize) -> LaneFlags {
        LaneFlags((number as u32) << LaneFlags::SIDE_SHIFT)
    }

    /// The number of the side lane, from 1 on; 0 of any other lane.
    #[inline]
    pub(crate) fn side_number(self) -> usize {
        ((self.0 & LaneFlags::SIDE) >> LaneFlags::SIDE_SHIFT) as usize
    }

    /// This lane, with this tag of a frame.
    pub(crate) fn tagged(self, tag: usize) -> LaneFlags {
        LaneFlags(self.0 | (tag as u32 + 1) << LaneFlags::TAG_SHIFT)
    }

    /// The tag of a frame, if it has one.
    pub(crate) fn tag(self) -> Option<usize> {
        let tag = (self.0 & LaneFlags::TAG) >> LaneFlags::TAG_SHIFT;
        tag.checked_sub(1).map(|tag| tag as usize)
    }

    /// Whether this is the lane of later frames, with any tag.
    pub(crate) fn is_later(self) -> bool {
        self.side_number() == LaneFlags::SIDES
    }

    /// Whether a job with these flags was made in a frame that was ahead of others, and was not raised.
    pub(crate) fn is_ahead(flags: u32) -> bool {
        let lane = LaneFlags::made_in(flags);
        let is_raised = LaneFlags::raised_to(flags) == LaneFlags::FRAME;
        lane.tag().is_some() && lane.is_urgent() && !is_raised
    }

    /// The lane of a job that says this lane, in a frame whose normal jobs are in the lane `normal`.
    pub(crate) fn in_frame(self, normal: LaneFlags) -> LaneFlags {
        match self {
            LaneFlags::NORMAL => normal,
            LaneFlags::FRAME if normal.is_later() => LaneFlags::NORMAL,
            other => other,
        }
    }

    /// A greater number for a more urgent lane. Lanes with a share have the same.
    pub(crate) fn urgency(self) -> u32 {
        match self.side_number() {
            _ if self.is_urgent() => self.0 & LaneFlags::FRAME.0,
            0 => 0,
            LaneFlags::SIDES => 2,
            _ => 1,
        }
    }

    /// Whether this is the normal lane or a more urgent one.
    #[inline]
    pub(crate) fn is_urgent(self) -> bool {
        self.0 & LaneFlags::FRAME.0 != 0
    }

    /// The lane in which a job with these flags was made.
    #[inline(always)]
    pub(crate) fn made_in(flags: u32) -> LaneFlags {
        LaneFlags(flags & LaneFlags::ALL)
    }

    /// The lane that a job with these flags was raised to: what it waits for was, too.
    pub(crate) fn raised_to(flags: u32) -> LaneFlags {
        LaneFlags(flags >> LaneFlags::RAISED_SHIFT & LaneFlags::FRAME.0)
    }

    /// The lane of a job with these flags.
    pub(crate) fn of(flags: u32) -> LaneFlags {
        LaneFlags::made_in(flags).or(LaneFlags::raised_to(flags))
    }

    /// Whether a job with these flags was made in the normal lane and is in it. A job of the background that
    /// was raised to that lane is not meant.
    #[inline(always)]
    pub(crate) fn is_plainly_normal(flags: u32) -> bool {
        flags & LaneFlags::OF_JOB == LaneFlags::NORMAL.0
    }

    /// The more urgent of two lanes.
    #[inline]
    pub(crate) fn or(self, other: LaneFlags) -> LaneFlags {
        match (self.0 | other.0) & LaneFlags::FRAME.0 {
            0 => LaneFlags(self.0.max(other.0)),
            urgent => LaneFlags(urgent),
        }
    }

    /// Whether this lane is at least as urgent as the other.
    pub(crate) fn includes(self, other: LaneFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags to add to those of a job that is raised to this lane.
    pub(crate) fn raised(self) -> u32 {
        (self.0 & LaneFlags::FRAME.0) << LaneFlags::RAISED_SHIFT
    }
}

impl From<Lane> for LaneFlags {
    fn from(lane: Lane) -> LaneFlags {
        match lane {
            Lane::Frame => LaneFlags::FRAME,
            Lane::Normal => LaneFlags::NORMAL,
            Lane::Share1 => LaneFlags::side(1),
            Lane::Share2 => LaneFlags::side(2),
            Lane::Share3 => LaneFlags::side(3),
            Lane::Share4 => LaneFlags::side(4),
            Lane::Share5 => LaneFlags::side(5),
            Lane::Background => LaneFlags::BACKGROUND,
        }
    }
}

impl From<LaneFlags> for Lane {
    fn from(flags: LaneFlags) -> Lane {
        match flags {
            LaneFlags::BACKGROUND => Lane::Background,
            LaneFlags::NORMAL => Lane::Normal,
            _ if flags.is_later() => Lane::Normal,
            _ if flags.is_urgent() => Lane::Frame,
            _ => Lane::SHARES[(flags.side_number() - 1) % Lane::SHARES.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: raises come to the same in any order, nothing sinks, the lane that a job was made in stays, and
    /// no job of another lane passes for a plainly normal one. Method: all triples of a lane and two raises.
    #[test]
    fn raises_only_rise() {
        let lanes = [Lane::Background, Lane::Normal, Lane::Frame];
        let made_in: Vec<Lane> = lanes.into_iter().chain(Lane::SHARES).collect();
        let rank = |lane: Lane| match lanes.iter().position(|&of| of == lane) {
            None => Some(0),
            known => known,
        };
        for (own, first) in made_in.iter().flat_map(|&a| lanes.map(|b| (a, b))) {
            for second in lanes {
                let raise = |flags: u32, to: Lane| flags | LaneFlags::from(to).raised();
                let made = LaneFlags::from(own).0;
                let flags = raise(raise(made, first), second);
                assert_eq!(flags, raise(raise(made, second), first));
                let most = [own, first, second].into_iter().map(rank).max();
                let lane = Lane::from(LaneFlags::of(flags));
                assert_eq!(Some(rank(lane)), most);
                assert!(lane == own || lanes.contains(&lane), "{lane} from {own}");
                assert_eq!(Lane::from(LaneFlags::made_in(flags)), own);
                let raised = Lane::from(LaneFlags::raised_to(flags));
                assert_eq!(rank(raised), rank(first).max(rank(second)));
                assert!(lane == own || rank(lane) > rank(own));
                let is_plain = own == Lane::Normal && lane == Lane::Normal;
                assert_eq!(LaneFlags::is_plainly_normal(flags), is_plain);
            }
        }
    }

    /// Goal: the lane of a frame's jobs says the frame, through what is made of it and until a raise; a named
    /// lane is one lower in a later frame, and the normal one higher in one that is ahead; a more urgent lane
    /// has a greater number, whatever its tag. Method: all lanes and tags.
    #[test]
    fn a_frame_moves_its_lanes() {
        let from = |lane: Lane| LaneFlags::from(lane);
        for tag in 0..LaneFlags::TAGS {
            let later = LaneFlags::LATER.tagged(tag);
            let ahead = LaneFlags::FRAME.tagged(tag);
            assert_eq!((later.tag(), ahead.tag()), (Some(tag), Some(tag)));
            assert_eq!(LaneFlags::LATER.tag(), None);
            assert_eq!(LaneFlags::made_in(later.0 | ahead.raised()), later);
            assert!(LaneFlags::is_ahead(ahead.0) && !LaneFlags::is_ahead(later.0));
            assert!(!LaneFlags::is_ahead(ahead.0 | LaneFlags::FRAME.raised()));
            assert_eq!(LaneFlags::of(later.0 | ahead.raised()), LaneFlags::FRAME);
            assert_eq!(LaneFlags::of(later.0), later);
            assert_eq!(
                (Lane::from(later), Lane::from(ahead)),
                (Lane::Normal, Lane::Frame)
            );
            for lane in [Lane::Background].into_iter().chain(Lane::SHARES) {
                assert_eq!(from(lane).in_frame(later), from(lane));
                assert_eq!(from(lane).in_frame(ahead), from(lane));
                assert!(from(lane).urgency() < later.urgency());
            }
            assert_eq!(from(Lane::Normal).in_frame(later), later);
            assert_eq!(from(Lane::Normal).in_frame(ahead), ahead);
            assert_eq!(from(Lane::Frame).in_frame(later), LaneFlags::NORMAL);
            assert_eq!(from(Lane::Frame).in_frame(ahead), LaneFlags::FRAME);
            assert!(later.urgency() < LaneFlags::NORMAL.urgency());
            assert_eq!(ahead.urgency(), LaneFlags::FRAME.urgency());
        }
        let order = [
            LaneFlags::BACKGROUND,
            Lane::Share1.into(),
            LaneFlags::NORMAL,
            LaneFlags::FRAME,
        ];
        assert!(
            order
                .map(LaneFlags::urgency)
                .is_sorted_by(|less, more| less < more)
        );
        assert_eq!(from(Lane::Share1).urgency(), from(Lane::Share5).urgency());
    }
}
