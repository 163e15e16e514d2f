//! How much hangs on a ready job.

use event::Nanos;

/// The rank of a ready job: a greater one goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank(pub(crate) u32);

impl Rank {
    /// Of a job that goes where all normal ones go.
    pub(crate) const NONE: Rank = Rank(0);
    /// No time has such a rank.
    const BEYOND: Rank = Rank(1 << 16);

    /// Times within 1/32 of each other have the same rank, or neighbouring ones: such a difference is noise.
    const MANTISSA_BITS: u32 = 5;

    /// In a slot's `place`: the rank of a job that is ready, and not the number of a thread slot.
    const IN_PLACE: u32 = 1 << 31;

    /// Its key in the queue of jobs with a rank.
    pub(crate) fn key(self) -> u64 {
        self.0.into()
    }

    /// The rank with this key; of any greater key the greatest.
    pub(crate) fn of_key(key: u64) -> Rank {
        Rank(u32::try_from(key).unwrap_or(u32::MAX))
    }

    /// The value of a slot's `place` that says this rank.
    pub(crate) fn as_place(self) -> u32 {
        Rank::IN_PLACE | self.0
    }

    /// The rank that a slot's `place` says.
    pub(crate) fn in_place(place: u32) -> Rank {
        let rank = Rank(place & !Rank::IN_PLACE);
        if place & Rank::IN_PLACE != 0 && rank < Rank::BEYOND {
            rank
        } else {
            Rank::NONE
        }
    }

    /// Of a job with so much time ahead of it: its own, and that of the longest way behind it.
    pub(crate) fn of(time: Nanos) -> Rank {
        let time = time.0.max(1);
        let exponent = time.ilog2();
        let bits = Rank::MANTISSA_BITS;
        // The bits behind the leading one.
        let mantissa = (u128::from(time) << bits >> exponent) as u32 & ((1 << bits) - 1);
        Rank(1 + (exponent << bits | mantissa))
    }
}

/// The ranks of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct JobRanks {
    /// Its own, by which it is begun.
    pub(crate) own: Rank,
    /// That of the loops in its body, by which helpers come.
    pub(crate) of_loops: Rank,
}

impl JobRanks {
    pub(crate) const NONE: JobRanks = JobRanks {
        own: Rank::NONE,
        of_loops: Rank::NONE,
    };

    /// Both in a word, 0 where there are none.
    pub(crate) fn pack(self) -> u32 {
        self.own.0 * Rank::BEYOND.0 + self.of_loops.0
    }

    pub(crate) fn unpack(word: u32) -> JobRanks {
        JobRanks {
            own: Rank(word / Rank::BEYOND.0),
            of_loops: Rank(word % Rank::BEYOND.0),
        }
    }
}

const _: () = assert!(
    1 + (u64::BITS << Rank::MANTISSA_BITS) < Rank::BEYOND.0,
    "every time has a rank below that"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a longer time has no lesser rank, one that is 1/16 longer has a greater one, and a slot's
    /// `place` says each of them and takes nothing else for one. Method: times of all magnitudes.
    #[test]
    fn ranks_follow_times() {
        let mut last = Rank::NONE;
        for exponent in 0..64 {
            for part in 16..32_u64 {
                let time = Nanos((u128::from(part) << exponent >> 4) as u64);
                let rank = Rank::of(time);
                assert!(rank >= last && rank < Rank::BEYOND, "{time:?}");
                let shorter = Nanos(time.0 - time.0 / 16 - u64::from(time.0 > 1));
                assert!(time.0 <= 1 || Rank::of(shorter) < rank, "{time:?}");
                assert_eq!(Rank::in_place(rank.as_place()), rank);
                let both = JobRanks {
                    own: rank,
                    of_loops: last,
                };
                assert_eq!(JobRanks::unpack(both.pack()), both);
                last = rank;
            }
        }
        assert_eq!(Rank::of(Nanos::ZERO), Rank::of(Nanos(1)));
        assert!(Rank::of(Nanos::ZERO) > Rank::NONE);
        for place in [0, 5, u32::from(u16::MAX), u32::MAX] {
            assert_eq!(Rank::in_place(place), Rank::NONE); // A thread slot, or nowhere.
        }
    }
}
