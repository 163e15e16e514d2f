//! The names of jobs, and the places in the program that scheduled them.
//!
//! A slot has room for a number only, so each pair of name and call site is registered once per job system.
//! Registration takes a lock. Each thread slot remembers the labels it has used, so to schedule the same job
//! every frame costs two compares.

use std::fmt;
use std::panic::Location;

use platform::{Lock, Memory};

use super::maps::{Key, Map, digest_of_text};

/// A job's name and the place in the program that scheduled it.
///
/// Errors and hooks name jobs by their labels. A label is two references: to copy it neither allocates nor
/// blocks. It is shown as `'name' (file:line)`.
///
/// ```
/// use paceline::{Builder, WaitError};
///
/// let js = Builder::new().workers(1).build().unwrap();
/// let load = js.job("load").schedule(|_| panic!("no such file"));
/// let Err(WaitError::Panicked { label, .. }) = js.try_wait(load) else {
///     unreachable!("it panicked");
/// };
/// assert_eq!(label.name, "load");
/// assert!(label.to_string().starts_with("'load' ("));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label {
    /// The name that was given to `job`, or "job".
    pub name: &'static str,
    /// The line of the program that scheduled it.
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

/// The same text, so that it can be read inside of other things.
impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The place of a call in the program.
pub(crate) type CallSite = &'static Location<'static>;

/// A label's number: dense, in the order of first use.
pub(crate) type LabelId = u32;

/// Equal labels have equal texts, which may lie at several addresses.
impl Key for Label {
    fn digest(&self) -> u64 {
        let site = u64::from(self.site.line()) << 32 | u64::from(self.site.column());
        digest_of_text(site, self.name)
    }
}

type Addresses = (usize, usize);

fn addresses(label: &Label) -> Addresses {
    // The address of a name or a location identifies it well enough for a cache. Two addresses for the same
    // text (a call site that was inlined twice) only mean two entries with the same number.
    (
        label.name.as_ptr() as usize ^ label.name.len().rotate_right(16),
        std::ptr::from_ref(label.site) as usize,
    )
}

impl Key for Addresses {
    #[inline]
    fn digest(&self) -> u64 {
        // Locations are 24 bytes apart and names can lie anywhere: both are mixed.
        self.0 as u64 ^ (self.1 as u64).rotate_left(17)
    }
}

/// All labels of a job system.
pub(crate) struct Labels<M: Memory> {
    table: M::Lock<Table>,
}

#[derive(Default)]
struct Table {
    labels: Vec<Label>,
    numbers: Map<Label, LabelId>,
}

impl<M: Memory> Labels<M> {
    pub(crate) fn new() -> Labels<M> {
        Labels {
            table: M::Lock::new(Table::default()),
        }
    }

    /// The label's number, found through the cache of the caller's thread slot.
    #[inline]
    pub(crate) fn number(&self, cache: &mut LabelCache, label: &Label) -> LabelId {
        let key = addresses(label);
        let place = LabelCache::place(key);
        if cache.recent[place].key != key {
            let number = u64::from(self.find(cache, key, *label));
            cache.recent[place] = Recent { key, number };
        }
        cache.recent[place].number as LabelId
    }

    #[cold]
    fn find(&self, cache: &mut LabelCache, key: Addresses, label: Label) -> LabelId {
        if let Some(&number) = cache.known.get(&key) {
            return number;
        }
        let number = self.register(label);
        cache.known.insert(key, number);
        number
    }

    #[cold]
    fn register(&self, label: Label) -> LabelId {
        self.table.with(|table| {
            let next = table.labels.len() as LabelId;
            let number = *table.numbers.get_or_insert(label, next);
            if number == next {
                table.labels.push(label);
            }
            number
        })
    }

    /// Makes memory for this many further labels, here and in the cache of the caller's thread slot.
    pub(crate) fn reserve(&self, cache: &mut LabelCache, labels: usize) {
        cache.known.reserve(labels);
        self.table.with(|table| {
            table.labels.reserve(labels);
            table.numbers.reserve(labels);
        });
    }

    /// The label with this number, found through the cache of the caller's thread slot.
    pub(crate) fn label(&self, cache: &mut LabelCache, number: LabelId) -> Option<Label> {
        let at = number as usize;
        if let Some(&Some(label)) = cache.by_number.get(at) {
            return Some(label);
        }
        let label = self.get(number)?;
        if cache.by_number.len() <= at {
            cache.by_number.resize(at + 1, None);
        }
        cache.by_number[at] = Some(label);
        Some(label)
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

/// The labels that a thread slot has used. All of them are kept, so that the lock is taken once per label and
/// thread slot whatever the addresses are: a simulated run must not depend on addresses. In front of them are
/// the most recent ones, which are found without hashing.
pub(crate) struct LabelCache {
    recent: [Recent; LabelCache::RECENT],
    known: Map<Addresses, LabelId>,
    /// The labels that hooks were told here.
    by_number: Vec<Option<Label>>,
}

/// A label that was used lately.
#[derive(Clone, Copy)]
struct Recent {
    key: Addresses,
    /// As wide as the key, so that an empty cache is nothing but zeros.
    number: u64,
}

impl Recent {
    /// No label has a null name and a null site.
    const NONE: Recent = Recent {
        key: (0, 0),
        number: 0,
    };
}

impl LabelCache {
    const RECENT: usize = 64;

    pub(crate) fn new() -> LabelCache {
        LabelCache {
            recent: [Recent::NONE; LabelCache::RECENT],
            known: Map::default(),
            by_number: Vec::new(),
        }
    }

    #[inline]
    fn place(key: Addresses) -> usize {
        // Keep the high bits, into which all others are mixed.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = key.digest().wrapping_mul(ODD);
        (mixed >> (u64::BITS - LabelCache::RECENT.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: a label has one number, wherever its texts lie. Method: the same name at two addresses.
    #[test]
    fn labels_are_told_apart_by_what_they_say() {
        let labels = Labels::<Os>::new();
        let mut cache = LabelCache::new();
        let site = Location::caller();
        let mut number = |name: &'static str| labels.number(&mut cache, &Label { name, site });
        let copy = &"draw again"[..4];
        assert_ne!(copy.as_ptr(), "draw".as_ptr());
        assert_eq!([number("draw"), number("cull"), number(copy)], [0, 1, 0]);
        assert_eq!(labels.all().len(), 2);
        for _ in 0..2 {
            let names = [1, 0, 2].map(|number| labels.label(&mut cache, number).map(|it| it.name));
            assert_eq!(names, [Some("cull"), Some("draw"), None]);
        }
    }
}
