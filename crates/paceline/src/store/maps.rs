//! Maps and sets for what is rare: labels, failures, pending futures, searches through the graph.
//!
//! Each sort of map is code in every program that uses the job system, and the standard library's are
//! thousands of bytes a sort. So here the table is the same for all sorts: [`Index`] finds an entry's place by
//! a number made of its key ([`Key::digest`]), and the entries lie side by side in a `Vec`.
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
        let is_it = |place: usize| self.entries[place].0 == *key;
        self.index.find(key.digest(), &is_it)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).map(|place| &self.entries[place].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).map(|place| &mut self.entries[place].1)
    }

    /// The value of this key, which is the given one if there was none.
    pub(crate) fn get_or_insert(&mut self, key: K, value: V) -> &mut V {
        let place = self.find(&key).unwrap_or_else(|| {
            self.index.push(key.digest());
            self.entries.push((key, value));
            self.entries.len() - 1
        });
        &mut self.entries[place].1
    }

    /// Whether the key is new. If it is not, it has the new value now.
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        let found = self.find(&key);
        match found {
            Some(place) => self.entries[place].1 = value,
            None => {
                self.index.push(key.digest());
                self.entries.push((key, value));
            }
        }
        found.is_none()
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.find(key).map(|place| self.remove_at(place))
    }

    fn remove_at(&mut self, place: usize) -> V {
        self.index.swap_remove(place);
        self.entries.swap_remove(place).1
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        // From the end, so that the entry that takes a removed one's place has been asked about.
        for place in (0..self.entries.len()).rev() {
            if !is_kept(&self.entries[place].0) {
                drop(self.remove_at(place));
            }
        }
    }

    /// Makes memory for this many further entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.entries.reserve(entries);
        self.index.reserve(entries);
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

/// A hash table of places: open addressing with linear probing. It knows the digests of the keys.
///
/// Invariants
/// - The number of slots is zero or a power of two, and at most half of them are in use.
/// - Between the first slot for a digest and the slot that it is in there is no free one.
#[derive(Default)]
struct Index {
    /// Each is a place plus one, or 0 if it is free.
    slots: Vec<u32>,
    /// By place.
    digests: Vec<u64>,
}

impl Index {
    const SLOTS_MIN: usize = 8;

    /// The place that has this digest and for which `is_it` is true.
    fn find(&self, digest: u64, is_it: &dyn Fn(usize) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = self.first_slot(digest);
        while let Some(place) = self.place_in(slot) {
            if self.digests[place] == digest && is_it(place) {
                return Some(place);
            }
            slot = self.after(slot);
        }
        None
    }

    /// Adds the next place.
    fn push(&mut self, digest: u64) {
        self.reserve(1);
        self.digests.push(digest);
        self.enter(self.digests.len() - 1);
    }

    /// Removes a place. The last place moves there.
    fn swap_remove(&mut self, place: usize) {
        let last = self.digests.len() - 1;
        self.vacate(self.slot_of(place));
        if place != last {
            let slot = self.slot_of(last);
            self.slots[slot] = place as u32 + 1;
        }
        self.digests.swap_remove(place);
    }

    /// Frees a slot. Places that were entered further along because of it move up.
    fn vacate(&mut self, mut free: usize) {
        self.slots[free] = 0;
        let mut slot = self.after(free);
        while let Some(place) = self.place_in(slot) {
            let steps_from = |start: usize| slot.wrapping_sub(start) & (self.slots.len() - 1);
            if steps_from(self.first_slot(self.digests[place])) >= steps_from(free) {
                self.slots.swap(free, slot);
                free = slot;
            }
            slot = self.after(slot);
        }
    }

    fn slot_of(&self, place: usize) -> usize {
        let mut slot = self.first_slot(self.digests[place]);
        while self.place_in(slot) != Some(place) {
            slot = self.after(slot);
        }
        slot
    }

    fn reserve(&mut self, more: usize) {
        self.digests.reserve(more);
        let slots = 2 * (self.digests.len() + more);
        if slots > self.slots.len() {
            let slots = slots.next_power_of_two().max(Index::SLOTS_MIN);
            self.slots = vec![0; slots];
            for place in 0..self.digests.len() {
                self.enter(place);
            }
        }
    }

    fn enter(&mut self, place: usize) {
        let mut slot = self.first_slot(self.digests[place]);
        while self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = place as u32 + 1;
    }

    fn first_slot(&self, digest: u64) -> usize {
        /// 2^64 divided by the golden ratio: it spreads numbers that follow each other.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let unused_bits = (self.slots.len() as u64 - 1).leading_zeros();
        (digest.wrapping_mul(ODD) >> unused_bits) as usize
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn place_in(&self, slot: usize) -> Option<usize> {
        (self.slots[slot] as usize).checked_sub(1)
    }
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
                        let is_kept = |key: &(u8, u8)| key.0 % 2 == 0;
                        map.retain(is_kept);
                        model.retain(|key, _| is_kept(key));
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
