//! Maps and sets for what is rare: labels, failures, pending futures, searches through the graph.
//!
//! Each sort of map is code in every program that uses the job system, and the standard library's are
//! thousands of bytes a sort. So here the table is the same for all sorts: [`Index`] finds an entry's place
//! by a number made of its key ([`Key::digest`]), and the entries lie side by side in a `Vec`.
//!
//! Entries are in the order of insertion, except that the last entry takes the place of a removed one. So
//! their order is the same in every run.

/// A key of a [`Map`].
pub(crate) trait Key: Eq {
    /// The same number for equal keys, and mostly another one for others.
    fn digest(&self) -> u64;
}

impl Key for u32 {
    fn digest(&self) -> u64 {
        u64::from(*self)
    }
}

impl Key for usize {
    fn digest(&self) -> u64 {
        *self as u64
    }
}

/// A number made of a text and another number (FNV-1a).
pub(crate) fn digest_of_text(number: u64, text: &str) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let mix = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(PRIME);
    text.bytes().fold(START ^ number, mix)
}

/// See the module.
pub(crate) struct Map<K, V> {
    entries: Vec<(K, V)>,
    index: Index,
}

/// A map without values.
pub(crate) type Set<K> = Map<K, ()>;

impl<K, V> Default for Map<K, V> {
    fn default() -> Map<K, V> {
        Map {
            entries: Vec::new(),
            index: Index::default(),
        }
    }
}

impl<K: Key, V> Map<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find(&self, key: &K) -> Option<usize> {
        let is_it = |place: usize| self.entries.get(place).is_some_and(|(it, _)| it == key);
        self.index.find(key.digest(), &is_it)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (_, value) = self.entries.get(self.find(key)?)?;
        Some(value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.find(key)?;
        let (_, value) = self.entries.get_mut(place)?;
        Some(value)
    }

    /// The value of this key, which is the given one if there was none.
    pub(crate) fn get_or_insert(&mut self, key: K, value: V) -> &mut V {
        let place = self.find(&key).unwrap_or_else(|| self.push(key, value));
        &mut self.entries[place].1
    }

    /// Whether the key is new. If it is not, it has the new value now.
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        match self.get_mut(&key) {
            Some(old) => {
                *old = value;
                false
            }
            None => {
                self.push(key, value);
                true
            }
        }
    }

    fn push(&mut self, key: K, value: V) -> usize {
        let place = self.entries.len();
        self.index.reserve(place, 1);
        self.index.enter(key.digest(), place);
        self.entries.push((key, value));
        place
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.find(key).map(|place| self.remove_at(place))
    }

    fn remove_at(&mut self, place: usize) -> V {
        let (key, value) = self.entries.swap_remove(place);
        self.index.remove(key.digest(), place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.index
                .move_to(moved.digest(), self.entries.len(), place);
        }
        value
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        // From the end, so that the entry that takes a removed one's place has been asked about.
        for place in (0..self.entries.len()).rev() {
            let (key, value) = &self.entries[place];
            if !is_kept(key, value) {
                drop(self.remove_at(place));
            }
        }
    }

    /// Makes memory for this many further entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.index.reserve(self.entries.len(), entries);
        self.entries.reserve(entries);
    }

    #[cfg(test)]
    fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

impl<K: Key, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map<K, V> {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// A hash table of places: open addressing with linear probing.
///
/// Invariants
/// - The number of slots is zero or a power of two, and at most half of them are in use.
/// - Between the first slot for a digest and the slot that it is in there is no free one.
#[derive(Default)]
struct Index {
    slots: Vec<IndexSlot>,
}

/// A place, and what finds it.
#[derive(Clone, Copy, Default)]
struct IndexSlot {
    /// The high half of the digest, mixed.
    hash: u32,
    /// The place plus one, or 0 if the slot is free.
    number: u32,
}

impl Index {
    const SLOTS_MIN: usize = 8;

    /// The place that was entered with this digest and for which `is_it` is true.
    fn find(&self, digest: u64, is_it: &dyn Fn(usize) -> bool) -> Option<usize> {
        let at = self.slot_of(mixed(digest), is_it)?;
        Some(self.slots.get(at)?.number as usize - 1)
    }

    fn slot_of(&self, hash: u32, is_it: &dyn Fn(usize) -> bool) -> Option<usize> {
        let mut at = self.first(hash);
        loop {
            let slot = self.slots.get(at)?;
            let place = (slot.number as usize).checked_sub(1)?;
            if slot.hash == hash && is_it(place) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    /// Adds a place, for which there is room.
    fn enter(&mut self, digest: u64, place: usize) {
        self.put(IndexSlot {
            hash: mixed(digest),
            number: place as u32 + 1,
        });
    }

    fn put(&mut self, slot: IndexSlot) {
        let mut at = self.first(slot.hash);
        while let Some(other) = self.slots.get_mut(at) {
            if other.number == 0 {
                *other = slot;
                return;
            }
            at = self.after(at);
        }
    }

    /// What was entered for `from` is at the place `to` now.
    fn move_to(&mut self, digest: u64, from: usize, to: usize) {
        let found = self.slot_of(mixed(digest), &|place| place == from);
        if let Some(slot) = found.and_then(|at| self.slots.get_mut(at)) {
            slot.number = to as u32 + 1;
        }
    }

    /// Removes a place. Those that were entered further along because of it move up.
    fn remove(&mut self, digest: u64, place: usize) {
        let Some(mut free) = self.slot_of(mixed(digest), &|it| it == place) else {
            return;
        };
        let mut at = free;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            let steps_from = |start: usize| at.wrapping_sub(start) & (self.slots.len() - 1);
            if slot.number == 0 {
                break;
            }
            if steps_from(self.first(slot.hash)) >= steps_from(free) {
                self.slots[free] = slot;
                free = at;
            }
        }
        self.slots[free] = IndexSlot::default();
    }

    /// Makes room for `more` places beside the `len` that there are.
    fn reserve(&mut self, len: usize, more: usize) {
        let needed = 2 * (len + more);
        if needed > self.slots.len() {
            let slots = needed.next_power_of_two().max(Index::SLOTS_MIN);
            let old = std::mem::replace(&mut self.slots, vec![IndexSlot::default(); slots]);
            for slot in old {
                if slot.number != 0 {
                    self.put(slot);
                }
            }
        }
    }

    /// The slot where the search for a hash begins.
    fn first(&self, hash: u32) -> usize {
        let slots = self.slots.len() as u64;
        ((u64::from(hash) * slots) >> u32::BITS) as usize
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len().wrapping_sub(1))
    }
}

fn mixed(digest: u64) -> u32 {
    /// 2^64 divided by the golden ratio: it spreads numbers that follow each other.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (digest.wrapping_mul(ODD) >> u32::BITS) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A key that has its digest in common with others.
    impl Key for (u8, u8) {
        fn digest(&self) -> u64 {
            u64::from(self.0)
        }
    }

    /// Goal: a map holds what a map of the standard library holds. Method: insert, change, remove and sweep
    /// at random, with few digests for many keys and with many for few; compare after each step.
    #[test]
    fn maps_hold_what_was_inserted_and_not_removed() {
        const STEPS: u64 = if cfg!(miri) { 300 } else { 20_000 };
        for digests in [1, 7, 64, 256] {
            let (mut map, mut model) = (Map::default(), HashMap::new());
            let mut random = 0x2545_f491_4f6c_dd1d_u64;
            for step in 0..STEPS {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let key = ((random % digests) as u8, (random >> 20) as u8 % 5);
                match random >> 40 & 7 {
                    0..4 => {
                        let is_new = model.insert(key, step).is_none();
                        assert_eq!(map.insert(key, step), is_new);
                    }
                    4 => {
                        let value = model.entry(key).or_insert(step);
                        assert_eq!(map.get_or_insert(key, step), value);
                    }
                    5 | 6 => assert_eq!(map.remove(&key), model.remove(&key)),
                    _ if step % 64 == 0 => {
                        let is_kept = |key: &(u8, u8), _: &_| key.0.is_multiple_of(2);
                        map.retain(is_kept);
                        model.retain(|key, value| is_kept(key, value));
                    }
                    _ => map.reserve(3),
                }
                assert_eq!(map.len(), model.len());
                assert_eq!(map.get(&key), model.get(&key));
                assert_eq!(map.contains_key(&key), model.contains_key(&key));
            }
            let mut rest: Vec<_> = map.keys().zip(map.values()).collect();
            let mut expected: Vec<_> = model.iter().collect();
            rest.sort_unstable();
            expected.sort_unstable();
            assert_eq!(rest, expected);
            assert!(map.keys().all(|key| map.get(key).is_some()));
        }
    }
}
