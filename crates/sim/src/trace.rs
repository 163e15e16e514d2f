//! The records of a run: kernel events, if they were asked for, and always their hash.
//!
//! Invariant: the hash is a function of the events, in the order in which they happened, and of nothing else;
//! two runs of equal (program, machine, policy, seed) have the same.

use event::{Cpu, KernelEvent, KernelEventKind, Nanos};

/// The recorder of a run.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    latest: Nanos,
    kept: Option<Vec<KernelEvent>>,
    checks: bool,
    violation: Option<(Nanos, String)>,
}

impl Trace {
    pub(crate) fn new(keep: bool, checks: bool) -> Trace {
        Trace {
            hash: 0,
            events: 0,
            latest: Nanos::ZERO,
            kept: keep.then(Vec::new),
            checks,
            violation: None,
        }
    }

    pub(crate) fn record(&mut self, time: Nanos, cpu: Cpu, what: KernelEventKind) {
        let event = KernelEvent { time, cpu, what };
        for word in event.to_words() {
            self.hash = stir(self.hash, word);
        }
        self.events += 1;
        self.latest = time;
        if let Some(kept) = &mut self.kept {
            kept.push(event);
        }
    }

    /// Whether checks are still needed: only the first violation counts.
    pub(crate) fn checks(&self) -> bool {
        self.checks && self.violation.is_none()
    }

    /// Keeps the result of a check.
    pub(crate) fn judge(&mut self, now: Nanos, found: Result<(), String>) {
        self.violation = found.err().map(|what| (now, what));
    }

    /// The time of the last event.
    pub(crate) fn latest(&self) -> Nanos {
        self.latest
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn into_parts(self) -> (Vec<KernelEvent>, Option<(Nanos, String)>) {
        (self.kept.unwrap_or_default(), self.violation)
    }
}

/// Adds a word to a hash.
#[inline]
pub(crate) fn stir(hash: u64, word: u64) -> u64 {
    const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
    (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}
