//! Tasks as events name them: tid, name and priority together, kept once while a file is read.
//!
//! A switch names two tasks and a wake-up one, and nearly always as they were named before. So an event holds
//! a number for each, and the meaning of a number is found once for all events that have it.

use std::collections::HashMap;

use super::words::{TextId, Texts};
use crate::read::builder;
use crate::read::mix::mix;

/// The number of a [`PackedParty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartyNumber(pub(super) u32);

impl PartyNumber {
    /// The idle task of a CPU without events so far.
    pub(super) const NOBODY: PartyNumber = PartyNumber(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A priority that no kernel has: it is not in the event.
pub(super) const NO_PRIORITY: i16 = i16::MIN;

/// A task as an event names it, in a form that is read, compared and hashed in words. Kernels keep 15 bytes
/// of names, and names of up to 16 are here as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PackedParty {
    /// The name, with zeros behind it; of a longer one, its number.
    comm: u128,
    /// The tid, above it the priority, and on top the length of the name; of a longer one, [`LONG`].
    rest: u64,
}

/// In place of a length: the name has more than 16 bytes.
const LONG: u8 = u8::MAX;

impl PackedParty {
    /// By the length of a name: a mask of its own bytes among 16.
    pub(super) const NAMES: [u128; 17] = {
        let mut masks = [u128::MAX; 17];
        let mut length = 0;
        while length < 16 {
            masks[length] = (1 << (8 * length)) - 1;
            length += 1;
        }
        masks
    };

    /// One with a name of up to 16 bytes, which has zeros behind it.
    #[inline(always)]
    pub(super) fn new(tid: u32, comm: u128, length: u8, priority: i16) -> PackedParty {
        let rest = u64::from(priority as u16) << 32 | u64::from(length) << 48;
        PackedParty {
            comm,
            rest: rest | u64::from(tid),
        }
    }

    #[inline(always)]
    fn tid(self) -> u32 {
        self.rest as u32
    }

    fn priority(self) -> i16 {
        (self.rest >> 32) as i16
    }

    fn length(self) -> u8 {
        (self.rest >> 48) as u8
    }

    /// Its place in the cache.
    #[inline(always)]
    fn slot(self) -> usize {
        let ends = [self.comm as u64, (self.comm >> 64) as u64];
        mix(ends, self.rest) as usize % SLOTS
    }
}

/// Slots of the cache in front of the table.
const SLOTS: usize = 4096;

/// All parties so far.
pub(super) struct Parties {
    list: Vec<PackedParty>,
    numbers: HashMap<PackedParty, PartyNumber>,
    /// By a part of the hash: the party that was named last, or beside it.
    latest: Box<[PartyNumber; SLOTS]>,
    texts: Texts,
    /// In the order of `list`.
    names: Vec<TextId>,
    /// Names of more than 16 bytes, and their numbers.
    long: HashMap<Box<[u8]>, u64>,
    long_names: Vec<TextId>,
}

impl Default for Parties {
    fn default() -> Parties {
        let nobody = PackedParty::new(0, 0, 0, NO_PRIORITY);
        Parties {
            list: vec![nobody],
            numbers: HashMap::from([(nobody, PartyNumber::NOBODY)]),
            latest: Box::new([PartyNumber::NOBODY; SLOTS]),
            texts: Texts::default(),
            names: vec![TextId::EMPTY],
            long: HashMap::new(),
            long_names: Vec::new(),
        }
    }
}

impl Parties {
    /// The number of a task with this tid, name and priority.
    pub(super) fn number(&mut self, tid: u32, comm: &[u8], priority: i16) -> PartyNumber {
        let mut short = [0; 16];
        let (name, length) = match short.get_mut(..comm.len()) {
            Some(begin) => {
                begin.copy_from_slice(comm);
                (u128::from_le_bytes(short), comm.len() as u8)
            }
            None => (self.long(comm), LONG),
        };
        self.known(PackedParty::new(tid, name, length, priority))
    }

    /// The number of a task. A name of more than 16 bytes was seen before.
    #[inline(always)]
    pub(super) fn known(&mut self, party: PackedParty) -> PartyNumber {
        let slot = party.slot();
        let latest = self.latest[slot];
        if self.is(latest, party) {
            latest
        } else {
            self.beside(slot, latest, party)
        }
    }

    /// Whether this is its number.
    #[inline(always)]
    pub(super) fn is(&self, number: PartyNumber, party: PackedParty) -> bool {
        self.list[number.index()] == party
    }

    /// The slot beside a party's own, for two that share one.
    fn beside(&mut self, slot: usize, latest: PartyNumber, party: PackedParty) -> PartyNumber {
        let beside = self.latest[slot ^ 1];
        if self.is(beside, party) {
            return beside;
        }
        let number = self.look_up(party);
        self.latest[slot] = number;
        self.latest[slot ^ 1] = latest;
        number
    }

    #[cold]
    fn long(&mut self, comm: &[u8]) -> u128 {
        let next = self.long_names.len() as u64;
        let number = match self.long.get(comm) {
            Some(&number) => number,
            None => {
                self.long_names.push(self.texts.keep(comm));
                *self.long.entry(comm.into()).or_insert(next)
            }
        };
        number.into()
    }

    #[cold]
    fn look_up(&mut self, party: PackedParty) -> PartyNumber {
        if let Some(&number) = self.numbers.get(&party) {
            return number;
        }
        let name = match party.length() {
            LONG => self.long_names[party.comm as usize],
            length => {
                let bytes = party.comm.to_le_bytes();
                self.texts.keep(&bytes[..length.into()])
            }
        };
        // More of them than numbers would be more bytes than any machine has.
        let number = PartyNumber(self.list.len() as u32);
        self.list.push(party);
        self.names.push(name);
        self.numbers.insert(party, number);
        number
    }

    /// All of them, in the order of their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = builder::Party<'_>> {
        (0..self.list.len() as u32).map(|number| self.party(PartyNumber(number)))
    }

    /// The party of this number, as its event named it.
    pub(super) fn party(&self, number: PartyNumber) -> builder::Party<'_> {
        let party = self.list[number.index()];
        builder::Party {
            tid: party.tid(),
            comm: self.texts.get(self.names[number.index()]),
            priority: Some(party.priority()).filter(|known| *known != NO_PRIORITY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: equal parties have one number, different ones have different numbers, and a number gives its
    /// party back. Method: names of every length up to 40, with tids and priorities that differ in one thing,
    /// twice.
    #[test]
    fn each_is_kept_once() {
        let mut parties = Parties::default();
        let text: Vec<u8> = (0..40).collect();
        let mut all = Vec::new();
        for length in 0..text.len() {
            for from in [0, 1] {
                for (tid, priority) in [(7, 120), (8, 120), (7, -1), (7, NO_PRIORITY)] {
                    all.push((tid, &text[from.min(length)..length], priority));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut number = |(tid, comm, priority)| parties.number(tid, comm, priority);
        let first: Vec<PartyNumber> = all.iter().map(|named| number(*named)).collect();
        let again: Vec<PartyNumber> = all.iter().map(|named| number(*named)).collect();
        assert_eq!(first, again);
        assert_eq!(parties.all().count(), all.len() + 1);
        for (number, (tid, comm, priority)) in first.into_iter().zip(all) {
            let party = parties.party(number);
            let expected = (priority != NO_PRIORITY).then_some(priority);
            assert_eq!(
                (party.tid, party.comm, party.priority),
                (tid, comm, expected)
            );
        }
    }

    /// Goal: the first number is the idle task's. Method: a task that is named like the idle task.
    #[test]
    fn nobody_is_the_first() {
        let mut parties = Parties::default();
        assert_eq!(parties.number(0, b"", NO_PRIORITY), PartyNumber::NOBODY);
        assert_ne!(parties.number(0, b"swapper/0", 120), PartyNumber::NOBODY);
    }
}
