//! [`Decisions`]: counts of what a scheduler in user space has decided.

use event::Nanos;

/// What a user-space scheduler has decided so far, and what it saw then: sums over all tasks that it has
/// dispatched. Answers that came too late are not among them.
///
/// ```
/// use event::Nanos;
/// let setting = paceline_policy::Setting { cpus: 2, tick: Nanos::from_millis(4), seed: 1 };
/// let counted = |name| paceline_policy::named(name, setting).unwrap().decisions();
/// assert_eq!(counted("rustland-333").unwrap().dispatched, 0);
/// assert!(counted("eevdf-6.18").is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decisions {
    /// How many tasks it has dispatched.
    pub dispatched: u64,
    /// How many tasks it had in hand at the beginning of the round in which it dispatched one, that one
    /// included.
    pub in_hand: u64,
    /// How many tasks had no CPU then, wherever they waited, that one included.
    pub waiting: u64,
    /// The slices that it gave.
    pub slices: Nanos,
}

impl Decisions {
    /// A round is over that began with these counts and with so many tasks that had no CPU. Now so many tasks
    /// are in hand.
    pub(crate) fn round(&mut self, before: Decisions, waiting: usize, held: usize) {
        let dispatched = self.dispatched - before.dispatched;
        self.in_hand += dispatched * (dispatched + held as u64);
        self.waiting += dispatched * waiting as u64;
    }
}
