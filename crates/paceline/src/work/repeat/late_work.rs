//! What a waiting thread asks of the pieces of an idempotent job, and is told.

use event::Nanos;
use platform::Platform;

/// The pieces of an idempotent job, as a thread sees them that waits for it.
pub(crate) trait Repeat<P: Platform>: Send + Sync {
    /// Runs pieces that no thread has begun, or one that is late, once a participant has begun: before that
    /// the job may have to wait for others.
    fn help(&self, platform: &P) -> LateWork;
}

/// What a waiting thread has found to do.
pub(crate) enum LateWork {
    /// It has run pieces that no other thread had begun. How many drops panicked.
    TookPart(u64),
    Repeated(PieceRun),
    /// Nothing yet. When to look again; [`Nanos::MAX`]: never.
    LookAt(Nanos),
}

/// What a run of a piece has come to.
#[derive(Clone, Copy)]
pub(crate) struct PieceRun {
    /// Its result is the one that counts.
    pub(crate) counts: bool,
    /// How many values of the program's panicked when they were dropped.
    pub(crate) drop_panics: u64,
}
