//! One run of a thread that computes beside one that waits for it.

use workload::naive::NaiveWait;

/// The article's machine.
pub(super) const MACHINE: &str = "thunderx2";
/// Both threads may be on this CPU alone, as in the article.
pub(super) const SAME: &[u32] = &[0];

/// One run: a policy, a wait, and where the threads may be.
#[derive(Clone, Copy)]
pub(super) struct BesideTrial {
    pub(super) policy: &'static str,
    pub(super) wait: NaiveWait,
    pub(super) cpus: &'static [u32],
}
