//! Recursion: joins without a cut-off, and jobs of scopes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Fibonacci's numbers, by a join for each sum: what a join costs.
pub(crate) fn fibonacci() -> u64 {
    fn of(n: u32) -> u64 {
        if n < 2 {
            return u64::from(n);
        }
        let (a, b) = rayon::join(|| of(n - 1), || of(n - 2));
        a + b
    }
    of(27)
}

/// A tree of jobs in one scope: what a spawned job costs.
pub(crate) fn scopes() -> u64 {
    fn grow<'scope>(scope: &rayon::Scope<'scope>, leaves: &'scope AtomicU64, depth: u32) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..2 {
            scope.spawn(move |scope| grow(scope, leaves, depth - 1));
        }
    }
    let leaves = AtomicU64::new(0);
    rayon::scope(|scope| grow(scope, &leaves, 14));
    leaves.into_inner()
}
