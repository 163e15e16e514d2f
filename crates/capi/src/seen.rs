//! A text that a thread has seen at an address, and whether it still lies there.
//!
//! A program gives the same few texts again and again, and each may have been changed since. To compare one
//! byte by byte takes a third of what it takes to make a job. So a short text is kept as the words of eight
//! bytes that it lies in, and compared word by word.

use std::cell::Cell;
use std::ffi::c_char;

/// Words of a text, and bytes of each.
const WORDS: usize = 4;
const BYTES: usize = size_of::<u64>();

/// A text, and where it was seen. See the module.
pub(crate) struct Seen {
    address: Cell<usize>,
    text: Cell<&'static str>,
    /// How many words the text lies in, with the zero byte behind it; zero if it is compared byte by byte.
    count: Cell<usize>,
    words: [Cell<Word>; WORDS],
}

/// Eight bytes of memory, of which some are a text's.
#[derive(Clone, Copy)]
struct Word {
    /// Zero where the memory is not the text's.
    bytes: u64,
    /// All bits set in each byte that is the text's.
    mask: u64,
}

impl Seen {
    /// That of no text.
    pub(crate) const fn nothing() -> Seen {
        Seen {
            address: Cell::new(0),
            text: Cell::new(""),
            count: Cell::new(0),
            words: [const { Cell::new(Word { bytes: 0, mask: 0 }) }; WORDS],
        }
    }

    /// What was seen at this address, and still lies there.
    ///
    /// # Safety
    /// `address` is null, or that of a text which ends with a zero byte and stays as it is during the call.
    #[inline(always)] // Each call that makes something has a name: it is not worth a call of its own.
    pub(crate) unsafe fn at(&self, address: *const c_char) -> Option<&'static str> {
        if self.address.get() != address as usize || address.is_null() {
            return None;
        }
        let text = self.text.get();
        let is_there = match self.count.get() {
            // SAFETY: the caller's promise.
            0 => unsafe { lies_at(address, text) },
            // SAFETY: as above; the words were made for this address.
            count => unsafe { self.words_lie_at(address, count) },
        };
        is_there.then_some(text)
    }

    /// Whether this text was seen last, at this address. Null is no address.
    pub(crate) fn is(&self, address: *const c_char, text: &'static str) -> bool {
        let is_there = self.address.get() == address as usize && !address.is_null();
        is_there && std::ptr::eq(self.text.get(), text)
    }

    /// Remembers a text that lies at this address.
    #[cold]
    pub(crate) fn see(&self, address: *const c_char, text: &'static str) {
        self.address.set(address as usize);
        self.text.set(text);
        let before = address as usize % BYTES;
        let (end, room) = (before + text.len() + 1, BYTES * WORDS);
        if !CAN_READ_WORDS || end > room {
            return self.count.set(0);
        }
        let (mut bytes, mut mask) = ([0; BYTES * WORDS], [0; BYTES * WORDS]);
        bytes[before..end - 1].copy_from_slice(text.as_bytes());
        mask[before..end].fill(u8::MAX);
        let words = bytes.chunks(BYTES).zip(mask.chunks(BYTES));
        for (word, (bytes, mask)) in self.words.iter().zip(words) {
            let [bytes, mask] = [bytes, mask].map(|part| {
                u64::from_ne_bytes(part.try_into().expect("all parts have as many bytes"))
            });
            word.set(Word { bytes, mask });
        }
        self.count.set(end.div_ceil(BYTES));
    }

    /// # Safety
    /// As [`at`](Seen::at). The text was seen at this address, and lies in so many words.
    #[inline(always)]
    unsafe fn words_lie_at(&self, address: *const c_char, count: usize) -> bool {
        let mut here = address.cast::<u64>().map_addr(|at| at - at % BYTES);
        for word in self.words.iter().take(count) {
            let Word { bytes, mask } = word.get();
            // SAFETY: the first word has the first byte of the text that lies there. If all words before
            // this one are as they were, then no byte of that text was zero so far, and the next one is here.
            if unsafe { word_at(here) } & mask != bytes {
                return false;
            }
            here = here.wrapping_add(1);
        }
        true
    }
}

/// Whether this text lies there.
///
/// # Safety
/// `at` ends with a zero byte.
unsafe fn lies_at(at: *const c_char, text: &str) -> bool {
    let mut at = at.cast::<u8>();
    for &byte in text.as_bytes() {
        // SAFETY: a byte that differs ends the search, so none is read past the zero byte (a text has none).
        if unsafe { *at } != byte {
            return false;
        }
        // SAFETY: the byte there was not the last one.
        at = unsafe { at.add(1) };
    }
    // SAFETY: as above.
    unsafe { *at == 0 }
}

/// Whether [`word_at`] can be called. Miri knows no instructions.
const CAN_READ_WORDS: bool = cfg!(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
));

/// The eight bytes there. Those that may not be read are made up.
///
/// # Safety
/// `word` is a multiple of eight, and one of its bytes may be read.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn word_at(word: *const u64) -> u64 {
    let bytes: u64;
    // SAFETY: a word does not cross a page, so the processor can read all of it if it can read one byte. An
    // instruction that the compiler does not see into may say of the others what it likes.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "mov {}, qword ptr [{}]", out(reg) bytes, in(reg) word,
            options(nostack, preserves_flags, readonly)
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "ldr {}, [{}]", out(reg) bytes, in(reg) word,
            options(nostack, preserves_flags, readonly)
        );
    }
    bytes
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn word_at(_: *const u64) -> u64 {
    unreachable!("see CAN_READ_WORDS")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a text is found where it lies and nowhere else, and no word of it counts that is not its own.
    /// Method: each length up to two more than fits, at each place in a word, with other bytes before and
    /// behind; then each byte of it changed, the zero byte too, and the bytes around it.
    #[test]
    fn texts_are_compared_whole() {
        const LONGEST: usize = BYTES * WORDS + 2;
        let alphabet: &'static str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop";
        for before in BYTES..2 * BYTES {
            let step = if cfg!(miri) { 11 } else { 1 }; // Miri is slow, and compares bytes alone.
            for length in (0..=LONGEST).step_by(step) {
                let text = &alphabet[..length];
                let mut memory = [0xee_u64; 2 + WORDS + 3].map(u64::to_ne_bytes);
                let memory = memory.as_flattened_mut();
                memory[before..before + length].copy_from_slice(text.as_bytes());
                memory[before + length] = 0;
                let is_there = |seen: &Seen, memory: &[u8]| {
                    // SAFETY: a zero byte comes after at most LONGEST + 2 others.
                    let found = unsafe { seen.at(memory[before..].as_ptr().cast()) };
                    found.inspect(|found| assert_eq!(*found, text)).is_some()
                };
                let seen = Seen::nothing();
                assert!(!is_there(&seen, memory));
                seen.see(memory[before..].as_ptr().cast(), text);
                assert!(is_there(&seen, memory), "{length} bytes behind {before}");
                memory[before + length + 2] = 0; // The end, if the zero byte is changed.
                for at in 0..memory.len() {
                    let is_of_text = (before..=before + length).contains(&at);
                    memory[at] ^= 0x80;
                    assert_eq!(is_there(&seen, memory), !is_of_text, "{length}, {at}");
                    memory[at] ^= 0x80;
                }
            }
        }
    }
}
