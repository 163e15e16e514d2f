//! Names of jobs, as C gives them: texts that may go away after the call.
//!
//! The job system keeps each text once ([`paceline::Name`]), which is a hash and a search. A program gives
//! the same literal every frame, so each thread remembers what lay at an address: a hit is one comparison of
//! the texts.

use std::cell::Cell;
use std::ffi::c_char;

use paceline::Name;

use crate::described::text;
use crate::status::Answer;

/// How many names a thread remembers.
const REMEMBERED: usize = 64;

thread_local! {
    static RECENT: [Cell<(usize, &'static str)>; REMEMBERED] =
        const { [const { Cell::new((0, "")) }; REMEMBERED] };
}

/// The name that C gives, or `unnamed`, if it gives none.
///
/// # Safety
/// `name` is null, or ends with a zero byte and stays as it is during the call.
pub(crate) unsafe fn name_of(name: *const c_char, unnamed: &'static str) -> Answer<Name> {
    let address = name as usize;
    // Literals are some bytes apart.
    let place = (address ^ address >> 6) % REMEMBERED;
    let recent = RECENT.try_with(|recent| recent[place].get());
    if let Ok((known, kept)) = recent
        && known == address
        && known != 0
    {
        // SAFETY: the caller's promise.
        if unsafe { is_text(name, kept) } {
            return Ok(Name::from(kept));
        }
    }
    // SAFETY: the caller's promise.
    let text = unsafe { text(name, "the name") }?;
    let Some(text) = text else {
        return Ok(Name::from(unnamed));
    };
    let kept = Name::from(text.to_owned());
    // A longer text is kept cut, and is not remembered; a thread that is ending remembers nothing.
    if kept.as_str() == text {
        let _ = RECENT.try_with(|recent| recent[place].set((address, kept.as_str())));
    }
    Ok(kept)
}

/// Whether this text lies there.
///
/// # Safety
/// `at` ends with a zero byte.
unsafe fn is_text(at: *const c_char, text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Answer<Name> {
        assert_eq!(bytes.last(), Some(&0));
        // SAFETY: it ends with a zero byte.
        unsafe { name_of(bytes.as_ptr().cast(), "job") }
    }

    /// Goal: a name is what lies there now. Method: one buffer with several texts in turn, each twice,
    /// longer, shorter and alike at the beginning; null; no UTF-8.
    #[test]
    fn names_are_what_lies_there_now() {
        let mut buffer = *b"integrate\0";
        for text in ["integrate", "integer", "int", "integrate", ""] {
            buffer[..text.len()].copy_from_slice(text.as_bytes());
            buffer[text.len()] = 0;
            for _ in 0..2 {
                assert_eq!(name(&buffer).unwrap().as_str(), text);
            }
        }
        // SAFETY: null is allowed.
        let unnamed = unsafe { name_of(std::ptr::null(), "job") };
        assert_eq!(unnamed.unwrap().as_str(), "job");
        assert!(name(b"\xff\0").unwrap_err().text.contains("UTF-8"));
    }
}
