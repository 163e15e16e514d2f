//! The modelled differences between releases.

use event::Nanos;

/// A release, as the set of its differences.
#[derive(Clone, Copy, Debug)]
pub(in crate::linux) struct Version {
    /// Before it is scaled by the number of CPUs.
    pub(super) base_slice: Nanos,
    pub(super) yielding: Yielding,
    pub(super) protection: Protection,
    /// Custom slices, `PREEMPT_SHORT`, `DELAY_DEQUEUE`, `DELAY_ZERO`, `PLACE_REL_DEADLINE`: the additions of
    /// 6.12.
    pub(super) since_6_12: bool,
    /// `HRTICK`: a timer ends slices when they are over, and not the next tick.
    pub(super) hrtick: bool,
}

/// The effect of `sched_yield`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yielding {
    /// The deadline goes one slice back.
    Postpones,
    /// An eligible task loses the rest of its slice.
    Forfeits,
}

/// How long the picked task is safe from others that are eligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    UntilDeadline,
    ShortestSlice,
}

/// Linux 6.6.
pub(in crate::linux) const V6_6: Version = Version {
    base_slice: Nanos::from_micros(750),
    yielding: Yielding::Postpones,
    protection: Protection::UntilDeadline,
    since_6_12: false,
    hrtick: false,
};

/// Linux 6.18, with the yield of 6.19 that its stable releases have.
pub(in crate::linux) const V6_18: Version = Version {
    base_slice: Nanos::from_micros(700),
    yielding: Yielding::Forfeits,
    protection: Protection::ShortestSlice,
    since_6_12: true,
    hrtick: false,
};

/// The same with the feature `HRTICK` on, as some builds have it.
pub(in crate::linux) const V6_18_HRTICK: Version = Version {
    hrtick: true,
    ..V6_18
};
