//! What one thread remembers.

use super::interference::Sampler;
use super::steer::Steer;

/// What a thread remembers of its machine. Only the thread itself touches it.
pub(crate) struct Local {
    pub(super) steer: Steer,
    /// What the thread had used when it last looked.
    pub(super) sampler: Sampler,
}

impl Local {
    pub(crate) fn new() -> Local {
        Local {
            steer: Steer::new(),
            sampler: Sampler::default(),
        }
    }
}
