//! Tokens with which a program calls work off.

use std::fmt;
use std::sync::Arc;

use platform::{Atomic, Memory, Ordering, Os};

/// The right to call work off, and the means to ask whether that was done. Copies are the same token.
///
/// A job that was described with [`cancelled_by`](crate::NewJob::cancelled_by) and has not begun does not
/// begin any more. A body that has begun runs on, so a long one asks now and then, with a copy that it
/// captures. A token works for jobs of any job system, and for code that is no job. To cancel and to ask
/// never block, allocate or wake.
///
/// ```
/// use paceline::{CancelToken, JobSystem, WaitError};
/// let js = JobSystem::new();
/// let closing = CancelToken::new();
/// let asks = closing.clone();
/// let bake = js.job("bake").background().cancelled_by(&closing).schedule(move |_| {
///     for _ in 0..1000 {
///         if asks.is_cancelled() {
///             return;
///         }
///         // One step of the work.
///     }
/// });
/// closing.cancel();
/// let later = js.job("later").cancelled_by(&closing).schedule(|_| unreachable!());
/// assert!(matches!(js.try_wait(later), Err(WaitError::CalledOff { .. })));
/// let _ = js.try_wait(bake); // It had begun, or it had not.
/// ```
#[derive(Clone)]
pub struct CancelToken(Arc<TokenState>);

struct TokenState {
    /// 1: it was cancelled. A token is of no job system, and so of no other platform.
    is_cancelled: <Os as Memory>::AtomicU32,
    parent: Option<CancelToken>,
}

impl CancelToken {
    /// A token that nothing has cancelled.
    ///
    /// ```
    /// assert!(!paceline::CancelToken::new().is_cancelled());
    /// ```
    pub fn new() -> CancelToken {
        CancelToken::with(None)
    }

    fn with(parent: Option<CancelToken>) -> CancelToken {
        CancelToken(Arc::new(TokenState {
            is_cancelled: Atomic::new(0),
            parent,
        }))
    }

    /// A token that is cancelled with this one, and may be cancelled alone: for a part of the work.
    ///
    /// ```
    /// let (level, other) = (paceline::CancelToken::new(), paceline::CancelToken::new());
    /// let (sound, mesh) = (level.child(), level.child());
    /// sound.cancel();
    /// assert!(sound.is_cancelled() && !mesh.is_cancelled());
    /// level.cancel();
    /// assert!(mesh.is_cancelled() && !other.is_cancelled());
    /// ```
    pub fn child(&self) -> CancelToken {
        CancelToken::with(Some(self.clone()))
    }

    /// Calls the work off. This cannot be taken back; a second call does nothing. What this thread has
    /// written before is visible to a thread that then sees the token cancelled.
    ///
    /// ```
    /// let closing = paceline::CancelToken::new();
    /// closing.cancel();
    /// assert!(closing.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        // Release, partner: the Acquire load in `is_cancelled`.
        self.0.is_cancelled.store(1, Ordering::Release);
    }

    /// Whether this token, or one that it is a child of, was cancelled: a load for each of them.
    ///
    /// ```
    /// assert!(!paceline::CancelToken::new().child().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        let mut token = self;
        loop {
            // Acquire, partner: the Release store in `cancel`.
            if token.0.is_cancelled.load(Ordering::Acquire) != 0 {
                return true;
            }
            match &token.0.parent {
                Some(parent) => token = parent,
                None => return false,
            }
        }
    }
}

impl Default for CancelToken {
    fn default() -> CancelToken {
        CancelToken::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Drop for TokenState {
    /// Iterative: a chain of children may be long.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(CancelToken(state)) = next {
            next = Arc::into_inner(state).and_then(|mut state| state.parent.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a chain of tokens of any length can be asked and dropped. Method: one of a million.
    #[test]
    fn a_chain_may_be_long() {
        let first = CancelToken::new();
        let mut last = first.clone();
        for _ in 0..if cfg!(miri) { 1000 } else { 1_000_000 } {
            last = last.child();
        }
        assert!(!last.is_cancelled());
        first.cancel();
        assert!(last.is_cancelled());
    }
}
