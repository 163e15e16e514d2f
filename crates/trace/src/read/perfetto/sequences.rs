//! The state of the writers of a file: each has a sequence of packets, in which words are written once and
//! then referred to by number.

use std::collections::HashMap;

use super::wire::{Fields, Row, Value};
use crate::Name;

/// The meaning of a category here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Category {
    /// None.
    #[default]
    Other,
    /// A finding, written beside a trace by this crate.
    Annotation,
    /// A slice that may end on another thread, written by this crate.
    Async,
    /// An instant that only carries arrows, written by this crate.
    Flow,
}

impl Category {
    /// The category of this name.
    pub(super) fn named(name: &[u8]) -> Category {
        match name {
            b"annotation" => Category::Annotation,
            b"async" => Category::Async,
            b"flow" => Category::Flow,
            _ => Category::Other,
        }
    }
}

/// The state of one sequence.
#[derive(Default)]
pub(super) struct ReadSequence {
    pub(super) names: HashMap<u64, Name>,
    pub(super) categories: HashMap<u64, Category>,
    /// Numbers of the words "cookie" and "tid" among the names of annotations.
    pub(super) cookie: Option<u64>,
    pub(super) tid: Option<u64>,
    /// The default clock of its packets.
    pub(super) clock: Option<u32>,
    /// The default track of its events.
    pub(super) track: Option<u64>,
    /// Whether words were lost on the way, so that numbers may mean anything.
    pub(super) is_incomplete: bool,
    /// Whether there was a packet of it.
    pub(super) is_begun: bool,
}

impl ReadSequence {
    /// Forgets everything: its writer begins anew.
    pub(super) fn clear(&mut self) {
        *self = ReadSequence::default();
    }

    /// Learns words; `None` if the message is broken. `number` gives the number of a word that is a name.
    pub(super) fn learn(
        &mut self,
        words: &[u8],
        mut number: impl FnMut(&[u8]) -> Name,
    ) -> Option<()> {
        let mut fields = Fields::of(words);
        for (field, value) in &mut fields {
            let Value::Bytes(word) = value else { continue };
            if !(1..=3).contains(&field) {
                continue;
            }
            let row = Row::of(word)?;
            let (id, name) = (row.number(1), row.bytes(2));
            match field {
                1 => drop(self.categories.insert(id, Category::named(name))),
                2 => drop(self.names.insert(id, number(name))),
                _ if name == b"cookie" => self.cookie = Some(id),
                _ if name == b"tid" => self.tid = Some(id),
                _ => {}
            }
        }
        (!fields.is_broken()).then_some(())
    }

    /// Learns the defaults of its events (`trace_packet_defaults`).
    pub(super) fn defaults(&mut self, message: &[u8]) -> Option<()> {
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (58, Value::Number(clock)) => self.clock = u32::try_from(clock).ok(),
                (11, Value::Bytes(event)) => {
                    let row = Row::of(event)?;
                    self.track = row.has(11).then(|| row.number(11));
                }
                _ => {}
            }
        }
        (!fields.is_broken()).then_some(())
    }
}
