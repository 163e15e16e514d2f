//! The memory of one thread.

use super::gangs::GangSample;
use super::interference::Sampler;
use super::steer::Steer;

/// A thread's memory of its machine. Only the thread itself touches it.
pub(crate) struct AdaptLocal {
    pub(super) steer: Steer,
    /// The CPU time and the like that the thread had used at its last sample.
    pub(super) sampler: Sampler,
    /// What it has done in jobs of groups.
    pub(super) gang: GangSample,
}

impl AdaptLocal {
    pub(crate) fn new() -> AdaptLocal {
        AdaptLocal {
            steer: Steer::new(),
            sampler: Sampler::default(),
            gang: GangSample::default(),
        }
    }
}
