//! What a test's platform leaves out of the job system's protocols.

/// A step of a protocol that is left out on purpose, so that a test can see that its oracle misses it. Named
/// by what is done if it is not left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Omission {
    /// A thread that joined a range in vain, and was the last to leave it, announces what that held back.
    AnnounceAfterVainJoin,
    /// A spare announces a single ticket too, and a worker that leaves has searchers look again.
    AnnounceBeforeLeaving,
    /// A searcher that has moved several tickets to its own queue announces those that it does not run next.
    AnnounceMoved,
    /// A thread that has ended a node of a graph announces at once all that it made ready.
    AnnounceFan,
    /// A thread that has queued a ticket looks once more whether the job was raised.
    LookForRaise,
    /// A worker that is listed as one that has made way looks whether another one works in its place.
    LookBeforeYielding,
    /// A thread that starts workers looks first whether the job system has begun to end.
    LookBeforeStarting,
    /// Threads that pinned jobs are ready for are unparked when there is one more, and when a wait begins.
    UnparkPinned,
}
