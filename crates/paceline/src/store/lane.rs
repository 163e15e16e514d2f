//! The flags of a job that say its lane, and how far it was raised.
//!
//! A lane is a set of flags, and a more urgent lane has all flags of the less urgent ones. So a raise is one
//! `fetch_or`, raises by several threads come to the same in any order, and nothing ever sinks. The lane that
//! a job was made in and the one that it was raised to have flags of their own: what it makes is in the
//! former.

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

    /// The flags of all lanes.
    pub(crate) const ALL: u32 = LaneFlags::FRAME.0;

    /// The flags that say of which lane a job is: those of the lane that it was made in, and of a raise above
    /// the normal one.
    pub(crate) const OF_JOB: u32 = {
        let above = LaneFlags::FRAME.0 & !LaneFlags::NORMAL.0;
        LaneFlags::ALL | above << LaneFlags::RAISED_SHIFT
    };

    /// The lane in which a job with these flags was made.
    #[inline(always)]
    pub(crate) fn made_in(flags: u32) -> LaneFlags {
        LaneFlags(flags & LaneFlags::FRAME.0)
    }

    /// The lane that a job with these flags was raised to: what it waits for was, too.
    pub(crate) fn raised_to(flags: u32) -> LaneFlags {
        LaneFlags::made_in(flags >> LaneFlags::RAISED_SHIFT)
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
        LaneFlags(self.0 | other.0)
    }

    /// Whether this lane is at least as urgent as the other.
    pub(crate) fn includes(self, other: LaneFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags to add to those of a job that is raised to this lane.
    pub(crate) fn raised(self) -> u32 {
        self.0 << LaneFlags::RAISED_SHIFT
    }
}

impl From<Lane> for LaneFlags {
    fn from(lane: Lane) -> LaneFlags {
        match lane {
            Lane::Frame => LaneFlags::FRAME,
            Lane::Normal => LaneFlags::NORMAL,
            Lane::Background => LaneFlags::BACKGROUND,
        }
    }
}

impl From<LaneFlags> for Lane {
    fn from(flags: LaneFlags) -> Lane {
        match flags {
            LaneFlags::BACKGROUND => Lane::Background,
            LaneFlags::NORMAL => Lane::Normal,
            _ => Lane::Frame,
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
        let rank = |lane: Lane| lanes.iter().position(|&of| of == lane);
        for (own, first) in lanes.iter().flat_map(|&a| lanes.map(|b| (a, b))) {
            for second in lanes {
                let raise = |flags: u32, to: Lane| flags | LaneFlags::from(to).raised();
                let made = LaneFlags::from(own).0;
                let flags = raise(raise(made, first), second);
                assert_eq!(flags, raise(raise(made, second), first));
                let most = [own, first, second].into_iter().map(rank).max();
                let lane = Lane::from(LaneFlags::of(flags));
                assert_eq!(Some(rank(lane)), most);
                assert_eq!(Lane::from(LaneFlags::made_in(flags)), own);
                let raised = Lane::from(LaneFlags::raised_to(flags));
                assert_eq!(rank(raised), rank(first).max(rank(second)));
                assert!(LaneFlags::of(flags).includes(LaneFlags::from(own)));
                let is_plain = own == Lane::Normal && lane == Lane::Normal;
                assert_eq!(LaneFlags::is_plainly_normal(flags), is_plain);
            }
        }
    }
}
