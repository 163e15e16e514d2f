//! Tasks as events name them: tid, name and priority together, kept once while a file is read.
//!
//! A switch names two tasks and a wake-up one, and nearly always as they were named before. So an event holds
//! a number for each, and whoever knows what it means that a task is named so, knows it for the next event.

use std::collections::HashMap;

use super::words::{Text, Texts};
use crate::read::builder;
use crate::read::mix::{mix, of_ends};

/// The number of a [`Party`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartyNumber(pub(super) u32);

impl PartyNumber {
    /// The idle task of a CPU of which nothing was heard.
    pub(super) const NOBODY: PartyNumber = PartyNumber(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Party {
    tid: u32,
    comm: Comm,
    priority: i16,
}

/// No kernel has this one: the event does not say.
pub(super) const NO_PRIORITY: i16 = i16::MIN;

/// A name in a form that is compared fast. Kernels keep 15 bytes of names, and up to 16 it is here as a
/// whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Comm {
    /// Its first and last eight bytes, or as many as there are; of a longer one, its number.
    ends: [u64; 2],
    /// Its length; of a longer one, [`LONG`].
    length: u8,
}

const LONG: u8 = u8::MAX;

/// Slots of the cache in front of the table.
const SLOTS: usize = 4096;

/// All that were named so far.
pub(super) struct Parties {
    list: Vec<Party>,
    numbers: HashMap<Party, PartyNumber>,
    /// By a part of the hash: the one that was named last, or beside it.
    latest: Box<[PartyNumber; SLOTS]>,
    texts: Texts,
    /// In the order of `list`.
    names: Vec<Text>,
    /// Names of more than 16 bytes.
    long: HashMap<Box<[u8]>, u64>,
}

impl Default for Parties {
    fn default() -> Parties {
        let nobody = Party {
            priority: NO_PRIORITY,
            ..Party::default()
        };
        Parties {
            list: vec![nobody],
            numbers: HashMap::from([(nobody, PartyNumber::NOBODY)]),
            latest: Box::new([PartyNumber::NOBODY; SLOTS]),
            texts: Texts::default(),
            names: vec![Text::EMPTY],
            long: HashMap::new(),
        }
    }
}

impl Parties {
    /// The number of a task that an event names so.
    #[inline]
    pub(super) fn number(&mut self, tid: u32, comm: &[u8], priority: i16) -> PartyNumber {
        let comm_as_key = match comm.len() {
            0..=16 => Comm {
                ends: of_ends(comm),
                length: comm.len() as u8,
            },
            _ => self.long(comm),
        };
        let party = Party {
            tid,
            comm: comm_as_key,
            priority,
        };
        let [begin, end] = party.comm.ends;
        let hash = mix(
            [begin, end],
            u64::from(tid) << 16 | u64::from(priority as u16),
        );
        let slot = hash as usize % SLOTS;
        let latest = self.latest[slot];
        if self.list[latest.index()] == party {
            return latest;
        }
        // Two that share a slot have the one beside it, too.
        let beside = self.latest[slot ^ 1];
        if self.list[beside.index()] == party {
            return beside;
        }
        let number = self.look_up(party, comm);
        self.latest[slot] = number;
        self.latest[slot ^ 1] = latest;
        number
    }

    #[cold]
    fn long(&mut self, comm: &[u8]) -> Comm {
        let next = self.long.len() as u64;
        let number = match self.long.get(comm) {
            Some(&number) => number,
            None => *self.long.entry(comm.into()).or_insert(next),
        };
        let (ends, length) = ([number, 0], LONG);
        Comm { ends, length }
    }

    #[cold]
    fn look_up(&mut self, party: Party, comm: &[u8]) -> PartyNumber {
        if let Some(&number) = self.numbers.get(&party) {
            return number;
        }
        // More of them than numbers would be more bytes than any machine has.
        let number = PartyNumber(self.list.len() as u32);
        self.list.push(party);
        self.names.push(self.texts.keep(comm));
        self.numbers.insert(party, number);
        number
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The tid of one.
    #[inline]
    pub(super) fn tid(&self, number: PartyNumber) -> u32 {
        self.list[number.index()].tid
    }

    /// What its event says of one.
    pub(super) fn party(&self, number: PartyNumber) -> builder::Party<'_> {
        let party = &self.list[number.index()];
        builder::Party {
            tid: party.tid,
            comm: self.texts.get(self.names[number.index()]),
            priority: (party.priority != NO_PRIORITY).then_some(party.priority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whoever is named alike has one number, whoever is named otherwise another, and what was said
    /// comes back. Method: names of every length up to 40, with tids and priorities that differ in one
    /// thing, twice.
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
        assert_eq!(parties.len(), all.len() + 1);
        for (number, (tid, comm, priority)) in first.into_iter().zip(all) {
            let party = parties.party(number);
            let expected = (priority != NO_PRIORITY).then_some(priority);
            assert_eq!(
                (party.tid, party.comm, party.priority),
                (tid, comm, expected)
            );
        }
    }

    /// Goal: the first number is nobody's. Method: a task that is named like nobody.
    #[test]
    fn nobody_is_the_first() {
        let mut parties = Parties::default();
        assert_eq!(parties.number(0, b"", NO_PRIORITY), PartyNumber::NOBODY);
        assert_ne!(parties.number(0, b"swapper/0", 120), PartyNumber::NOBODY);
    }
}
