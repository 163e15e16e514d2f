//! Names of jobs, as C gives them: texts that may go away after the call.
//!
//! The job system keeps each text once ([`paceline::Name`]), which is a hash and a search. A program gives
//! the same literal every frame, so each thread remembers what lay at an address ([`Seen`]), and its number
//! in the job system that it was used in.

use std::cell::Cell;
use std::ffi::c_char;
use std::ptr::NonNull;

use paceline::{JobSystem, Name, NameNumber};

use crate::described::text;
use crate::seen::Seen;
use crate::sites;
use crate::status::Answer;

/// A place in the program: PL_HERE in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_site {
    /// The file; the text may go away after the call.
    pub file: *const c_char,
    /// The line in it.
    pub line: u32,
}

/// How many names a thread remembers.
const REMEMBERED: usize = 64;

thread_local! {
    /// The name, the file (their addresses) and the line of sites that were noted.
    static SITES_SEEN: [Cell<(usize, usize, u32)>; REMEMBERED] =
        const { [const { Cell::new((0, 0, 0)) }; REMEMBERED] };
    static RECENT: [Recent; REMEMBERED] = const { [const { Recent::nothing() }; REMEMBERED] };
}

/// A name that the thread was given lately.
struct Recent {
    seen: Seen,
    /// In the job system that it was last used in.
    number: Cell<NameNumber>,
}

impl Recent {
    const fn nothing() -> Recent {
        Recent {
            seen: Seen::nothing(),
            number: Cell::new(NameNumber::NONE),
        }
    }
}

/// A name, and what the thread remembers of it.
pub(crate) struct Named {
    pub(crate) name: Name,
    number: NameNumber,
    at: *const c_char,
}

impl Named {
    /// The number of the name in this job system.
    #[inline(always)] // As below.
    pub(crate) fn number_in(&self, js: &JobSystem) -> NameNumber {
        if self.number.is_of(js) {
            return self.number;
        }
        new_number(js, self.name, self.at)
    }
}

/// The number of a name that the thread has not used in this job system lately.
#[inline(never)]
fn new_number(js: &JobSystem, name: Name, at: *const c_char) -> NameNumber {
    let number = js.name_number(name);
    // The thread does not remember a name that is cut, or none; if it is ending it remembers nothing.
    let _ = RECENT.try_with(|recent| {
        let recent = &recent[place_of(at)];
        if recent.seen.is(at, name.as_str()) {
            recent.number.set(number);
        }
    });
    number
}

/// As [`name_of`], at a place of the program, which texts about jobs of that name have from now on. Null is
/// none, and costs nothing; a place that the thread has named lately costs three comparisons.
///
/// # Safety
/// As [`name_of`]; `site` is null, or points to a place whose file is null or ends with a zero byte.
#[inline(always)] // Each call that makes something has a name: it is not worth a call of its own.
pub(crate) unsafe fn name_at(
    name: *const c_char,
    unnamed: &'static str,
    site: *const pl_site,
) -> Answer<Named> {
    // SAFETY: the caller's promise.
    let named = unsafe { named(name, unnamed) }?;
    if !site.is_null() {
        // SAFETY: the caller's promise.
        unsafe { note_site(named.name, site) }?;
    }
    Ok(named)
}

/// # Safety
/// As [`name_at`], and `site` is not null.
unsafe fn note_site(name: Name, site: *const pl_site) -> Answer {
    // SAFETY: the caller's promise.
    let pl_site { file, line } = unsafe { site.read_unaligned() };
    let seen = (name.as_str().as_ptr() as usize, file as usize, line);
    let place = (seen.0 >> 4 ^ line as usize) % REMEMBERED;
    let known = SITES_SEEN.try_with(|all| all[place].get());
    if known.is_ok_and(|known| known == seen) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let is_noted = match unsafe { text(file, "the site's file") }? {
        Some(file) => sites::add(name.as_str(), (Name::from(file.to_owned()).as_str(), line)),
        None => true,
    };
    if is_noted {
        // A thread that is ending remembers nothing.
        let _ = SITES_SEEN.try_with(|all| all[place].set(seen));
    }
    Ok(())
}

/// The name that C gives, or `unnamed`, if it gives none.
///
/// # Safety
/// `name` is null, or ends with a zero byte and stays as it is during the call.
pub(crate) unsafe fn name_of(name: *const c_char, unnamed: &'static str) -> Answer<Name> {
    // SAFETY: the caller's promise.
    unsafe { named(name, unnamed) }.map(|named| named.name)
}

/// The same, with what the thread remembers of it.
///
/// # Safety
/// As [`name_of`].
#[inline(always)] // As above.
unsafe fn named(at: *const c_char, unnamed: &'static str) -> Answer<Named> {
    let recent = RECENT.try_with(|recent| NonNull::from(&recent[place_of(at)]));
    if let Ok(recent) = recent {
        // SAFETY: it is there for as long as the thread is.
        let Recent { seen, number } = unsafe { recent.as_ref() };
        // SAFETY: the caller's promise.
        if let Some(name) = unsafe { seen.at(at) } {
            let (name, number) = (Name::from(name), number.get());
            return Ok(Named { name, number, at });
        }
    }
    Ok(Named {
        // SAFETY: the caller's promise.
        name: unsafe { new_name(at, unnamed) }?,
        number: NameNumber::NONE,
        at,
    })
}

/// Where the text at this address is remembered.
#[inline]
fn place_of(name: *const c_char) -> usize {
    let address = name as usize;
    // Literals are some bytes apart.
    (address ^ address >> 6) % REMEMBERED
}

/// The same for a name that the thread does not remember.
///
/// # Safety
/// As [`name_of`].
#[inline(never)]
unsafe fn new_name(name: *const c_char, unnamed: &'static str) -> Answer<Name> {
    // SAFETY: the caller's promise.
    let text = unsafe { text(name, "the name") }?;
    let Some(text) = text else {
        return Ok(Name::from(unnamed));
    };
    let kept = Name::from(text.to_owned());
    // A longer text is kept cut, and is not remembered; a thread that is ending remembers nothing.
    if kept.as_str() == text {
        let _ = RECENT.try_with(|recent| {
            let recent = &recent[place_of(name)];
            recent.seen.see(name, kept.as_str());
            recent.number.set(NameNumber::NONE);
        });
    }
    Ok(kept)
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
        assert!(name(b"\xff\0").unwrap_err().text().contains("UTF-8"));
    }
}
