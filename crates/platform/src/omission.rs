//! What a test's platform leaves out of the job system's protocols.

/// A step of a protocol that is left out on purpose, so that a test can see that its oracle misses it. Named
/// by what is done if it is not left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Omission {
    /// Who joined a range in vain, and was the last to leave it, announces what the range held back.
    AnnounceAfterVainJoin,
}
