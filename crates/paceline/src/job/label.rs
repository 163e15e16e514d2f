//! What jobs are called and where they were scheduled.
//!
//! A slot has room for a number only, so (label, call site) pairs are registered once per job
//! system. Registration takes a lock; each seat keeps what it has learned, so that scheduling the same
//! job every frame costs two compares.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

use platform::{Lock, Memory};

/// A job's name and the place in the program that scheduled it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    /// The name given to `job`, or "job".
    pub name: &'static str,
    /// The line that scheduled it.
    pub site: &'static Location<'static>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' ({}:{})",
            self.name,
            self.site.file(),
            self.site.line()
        )
    }
}

/// A label's number: dense, in the order of first use.
pub(crate) type LabelId = u32;

type Key = (usize, usize);

fn key(label: &Label) -> Key {
    // The address of a name or a location identifies it well enough for a cache; two addresses for
    // the same text (a call site that was inlined twice) only mean two entries with one number.
    (
        label.name.as_ptr() as usize ^ label.name.len().rotate_right(16),
        std::ptr::from_ref(label.site) as usize,
    )
}

/// All labels of a job system.
pub(crate) struct Labels<M: Memory> {
    table: M::Lock<Table>,
}

#[derive(Default)]
struct Table {
    labels: Vec<Label>,
    numbers: HashMap<Label, LabelId>,
}

impl<M: Memory> Labels<M> {
    pub(crate) fn new() -> Labels<M> {
        Labels {
            table: M::Lock::new(Table::default()),
        }
    }

    /// The label's number, through the caller's cache.
    #[inline]
    pub(crate) fn number(&self, cache: &mut LabelCache, label: Label) -> LabelId {
        let key = key(&label);
        let place = LabelCache::place(key);
        if cache.recent[place].0 != key {
            cache.recent[place] = (key, self.find(cache, key, label));
        }
        cache.recent[place].1
    }

    #[cold]
    fn find(&self, cache: &mut LabelCache, key: Key, label: Label) -> LabelId {
        let register = || self.register(label);
        *cache.known.entry(key).or_insert_with(register)
    }

    #[cold]
    fn register(&self, label: Label) -> LabelId {
        self.table.with(|table| {
            let next = table.labels.len() as LabelId;
            let number = *table.numbers.entry(label).or_insert(next);
            if number == next {
                table.labels.push(label);
            }
            number
        })
    }

    pub(crate) fn get(&self, number: LabelId) -> Option<Label> {
        self.table
            .with(|table| table.labels.get(number as usize).copied())
    }

    /// All labels, by number.
    pub(crate) fn all(&self) -> Vec<Label> {
        self.table.with(|table| table.labels.clone())
    }
}

/// What a seat knows of the table: every label it has used, so that the lock is taken once per label
/// and seat whatever the addresses are (a simulated run must not depend on them); and in front of
/// that the most recent ones, found without hashing.
pub(crate) struct LabelCache {
    recent: [(Key, LabelId); LabelCache::RECENT],
    known: HashMap<Key, LabelId>,
}

impl LabelCache {
    const RECENT: usize = 64;

    pub(crate) fn new() -> LabelCache {
        // No label has a null name and a null site.
        LabelCache {
            recent: [((0, 0), 0); LabelCache::RECENT],
            known: HashMap::new(),
        }
    }

    #[inline]
    fn place(key: Key) -> usize {
        // Locations are 24 bytes apart and names anywhere: mix both, keep the high bits.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (key.0 as u64 ^ (key.1 as u64).rotate_left(17)).wrapping_mul(ODD);
        (mixed >> (u64::BITS - LabelCache::RECENT.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: a label has one number wherever its texts lie. Method: the same name at two addresses.
    #[test]
    fn labels_are_told_apart_by_what_they_say() {
        let labels = Labels::<Os>::new();
        let mut cache = LabelCache::new();
        let site = Location::caller();
        let mut number = |name: &'static str| labels.number(&mut cache, Label { name, site });
        let copy = &"draw again"[..4];
        assert_ne!(copy.as_ptr(), "draw".as_ptr());
        assert_eq!([number("draw"), number("cull"), number(copy)], [0, 1, 0]);
        assert_eq!(labels.all().len(), 2);
    }
}
