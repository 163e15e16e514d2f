//! Texts of markers and names, kept once while a file is read, as long as they come again soon.

use crate::read::mix::{mix, of_ends};

/// Slots of the cache in front of the texts.
const SLOTS: usize = 1 << 13;

/// A text: its number in [`Texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextId(u32);

impl TextId {
    pub(super) const EMPTY: TextId = TextId(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Texts by number.
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// By number: where a text ends; it begins where the one before ends. The first one is empty.
    ends: Vec<u64>,
    /// By a part of the hash: the text that came last.
    latest: Box<[Slot]>,
}

/// A text in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// With its length they identify a text of up to 16 bytes.
    ends: [u64; 2],
    length: u32,
    text: u32,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            bytes: Vec::new(),
            ends: vec![0],
            latest: vec![Slot::default(); SLOTS].into(),
        }
    }
}

impl Texts {
    /// Keeps a text.
    #[inline]
    pub(super) fn keep(&mut self, text: &[u8]) -> TextId {
        let ends = of_ends(text);
        let slot = mix(ends, text.len() as u64) as usize % SLOTS;
        let latest = self.latest[slot];
        let known = TextId(latest.text);
        let is_alike = latest.ends == ends && latest.length as usize == text.len();
        if is_alike && (text.len() <= 16 || self.get(known) == text) {
            return known;
        }
        // More texts than numbers would be more bytes than any machine has.
        let number = TextId(self.ends.len() as u32);
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u64);
        self.latest[slot] = Slot {
            ends,
            // A longer text is never found again.
            length: u32::try_from(text.len()).unwrap_or(u32::MAX),
            text: number.0,
        };
        number
    }

    /// A text that was kept.
    #[inline]
    pub(super) fn get(&self, text: TextId) -> &[u8] {
        let at = text.0 as usize;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin as usize..self.ends[at] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: texts come back, and equal ones that come again soon are kept once. Method: texts of every
    /// length up to 20 and two that differ in the middle, twice.
    #[test]
    fn texts_come_back() {
        let mut texts = Texts::default();
        let long: Vec<u8> = (1..=20).collect();
        let mut all: Vec<&[u8]> = (0..=20).map(|length| &long[..length]).collect();
        all.extend([
            b"B|1|what is here is one".as_slice(),
            b"B|1|what is HERE is one",
        ]);
        for _ in 0..2 {
            let kept: Vec<TextId> = all.iter().map(|text| texts.keep(text)).collect();
            for (kept, text) in kept.into_iter().zip(&all) {
                assert_eq!(texts.get(kept), *text);
            }
        }
        let once = texts.keep(&long);
        assert_eq!(texts.keep(&long), once);
    }
}
