//! Values that are to be dropped exactly once each, whatever becomes of the jobs that own them.

use std::sync::{Arc, Mutex};

/// Counts how often each of its tokens was dropped.
#[derive(Default)]
pub(crate) struct Ledger {
    drops: Mutex<Vec<u32>>,
}

/// One of a ledger's values.
pub(crate) struct Token {
    number: usize,
    ledger: Arc<Ledger>,
}

impl Ledger {
    pub(crate) fn token(self: &Arc<Ledger>) -> Token {
        let mut drops = self.drops.lock().expect("nothing panics inside");
        drops.push(0);
        Token {
            number: drops.len() - 1,
            ledger: Arc::clone(self),
        }
    }

    /// How many tokens there still are.
    pub(crate) fn kept(&self) -> usize {
        let drops = self.drops.lock().expect("nothing panics inside");
        drops.iter().filter(|&&drops| drops == 0).count()
    }

    #[track_caller]
    pub(crate) fn check_each_dropped_once(&self, at_least: usize) {
        let drops = self.drops.lock().expect("nothing panics inside");
        assert!(
            drops.len() >= at_least,
            "only {} tokens were made",
            drops.len()
        );
        for (number, &drops) in drops.iter().enumerate() {
            assert_eq!(drops, 1, "drops of token {number}");
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.drops.lock().expect("nothing panics inside")[self.number] += 1;
    }
}
