//! Names of tasks and texts of markers, kept once while a file is read.

use std::collections::HashMap;

/// Slots of the cache in front of the table.
const SLOTS: usize = 1024;

/// A marker's text: where it is in [`Words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    at: u64,
    length: u32,
}

/// Names by number, and texts.
pub(super) struct Words {
    comms: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// By the low bits of a tid: the name that it had last. A task is named in each of its events, and
    /// nearly always the same.
    latest: Box<[u32; SLOTS]>,
    texts: Vec<u8>,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            comms: vec![Box::default()],
            numbers: HashMap::new(),
            latest: Box::new([0; SLOTS]),
            texts: Vec::new(),
        }
    }
}

impl Words {
    /// The number of a name, which this tid has; 0 if it is empty.
    #[inline]
    pub(super) fn comm(&mut self, name: &[u8], tid: u32) -> u32 {
        let slot = tid as usize % SLOTS;
        let latest = self.latest[slot];
        if &*self.comms[latest as usize] == name {
            return latest;
        }
        let number = self.look_up(name);
        self.latest[slot] = number;
        number
    }

    fn look_up(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        // More names than numbers would be more bytes than any machine has.
        let number = self.comms.len() as u32;
        self.comms.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// The name with this number.
    pub(super) fn name(&self, number: u32) -> &[u8] {
        &self.comms[number as usize]
    }

    /// Keeps a text.
    pub(super) fn text(&mut self, text: &[u8]) -> Text {
        let at = self.texts.len() as u64;
        self.texts.extend_from_slice(text);
        Text {
            at,
            length: text.len() as u32,
        }
    }

    /// A text that was kept.
    pub(super) fn text_of(&self, text: Text) -> &[u8] {
        let at = text.at as usize;
        &self.texts[at..at + text.length as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: equal names have equal numbers and other names others, whatever the cache holds. Method: three
    /// names in turn, by tids that share a slot and by one that does not.
    #[test]
    fn names_are_kept_once() {
        let mut words = Words::default();
        let names: [&[u8]; 4] = [b"a", b"bb", b"", b"a"];
        for tid in [1, 1 + SLOTS as u32, 7] {
            let numbers = names.map(|name| words.comm(name, tid));
            assert_eq!(numbers, [1, 2, 0, 1]);
        }
        assert_eq!(words.name(2), b"bb");
    }

    /// Goal: texts come back. Method: three, one of them empty.
    #[test]
    fn texts_come_back() {
        let mut words = Words::default();
        let texts = [b"B|1|x".as_slice(), b"", b"E"].map(|text| (words.text(text), text));
        for (kept, text) in texts {
            assert_eq!(words.text_of(kept), text);
        }
    }
}
