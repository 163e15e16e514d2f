//! What C passes by pointer: descriptions that say their size, texts, arrays, places for results.
//!
//! A description begins with its size, as the program was compiled. A program that is older than the library
//! has a shorter one: the fields that it does not have are zero, which always means the default. A program
//! that is newer has a longer one: what this library does not know has to be zero, or the call is refused.

use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, size_of};

use crate::status::{Answer, Refusal, pl_status};

/// A description: plain data whose first field is its size in bytes, and for which all zero is a value.
///
/// # Safety
/// The type is `repr(C)`, begins with a `usize`, and has fields only for which zero bytes are valid.
pub(crate) unsafe trait Described: Copy {
    /// Its name, for messages.
    const NAME: &'static str;
    /// Its size in the first version of this library.
    const FIRST_SIZE: usize;
}

/// No description is that long: a larger size is a number that was never set.
const LONGEST: usize = 4096;

/// A description: where C has put it, or in `room`, if it was compiled with an older or a newer header.
///
/// # Safety
/// `description` is null, or points to as many bytes as its first field says if that is at most [`LONGEST`].
/// They stay as they are for as long as the result is used.
#[inline]
pub(crate) unsafe fn read<T: Described>(
    description: *const T,
    room: &mut MaybeUninit<T>,
) -> Answer<&T> {
    if !description.is_null() && description.is_aligned() {
        // SAFETY: it is there, and begins with its size.
        let size = unsafe { description.cast::<usize>().read() };
        if size == size_of::<T>() {
            // SAFETY: the whole is there, and what a program puts there is valid ([`Described`]).
            return Ok(unsafe { &*description });
        }
    }
    // SAFETY: the caller's promise.
    unsafe { copied(description, room) }
}

/// The same for a description that is not as this library has it.
///
/// # Safety
/// As [`read`].
#[cold]
unsafe fn copied<T: Described>(description: *const T, room: &mut MaybeUninit<T>) -> Answer<&T> {
    let name = T::NAME;
    if description.is_null() {
        return Err(Refusal::invalid(format!("the {name} is a null pointer")));
    }
    // SAFETY: it is not null, and begins with its size.
    let size = unsafe { description.cast::<usize>().read_unaligned() };
    if !(T::FIRST_SIZE..=LONGEST).contains(&size) {
        return Err(Refusal::invalid(format!(
            "the {name} says that it has {size} bytes: set its field size to sizeof({name})"
        )));
    }
    *room = MaybeUninit::zeroed();
    let known = size.min(size_of::<T>());
    // SAFETY: as many bytes are there, and fit.
    unsafe {
        std::ptr::copy_nonoverlapping(description.cast::<u8>(), room.as_mut_ptr().cast(), known);
    }
    let unknown = known..size;
    // SAFETY: the caller's promise.
    let is_set = |at: usize| unsafe { description.cast::<u8>().add(at).read() } != 0;
    if unknown.into_iter().any(is_set) {
        return Err(Refusal::invalid(format!(
            "the {name} sets a field that this version of the library does not know: \
             it is older than the program's header"
        )));
    }
    // SAFETY: zero bytes are valid for each field ([`Described`]), and so is what a program has put there.
    Ok(unsafe { room.assume_init_ref() })
}

/// Whether all these fields are zero. They are read one by one, and asked once: to read two at a time would
/// take as long as the program's stores to them, if these have just been made.
#[inline(always)]
pub(crate) fn are_zero<const COUNT: usize>(fields: [&u64; COUNT]) -> bool {
    // SAFETY: each is borrowed. Volatile, so that the compiler does not read two at a time.
    let values = fields.map(|field| unsafe { std::ptr::from_ref(field).read_volatile() });
    values.into_iter().fold(0, |all, value| all | value) == 0
}

/// A text of C; null is none.
///
/// # Safety
/// `text` is null or ends with a zero byte, and stays as it is for `'t`.
pub(crate) unsafe fn text<'t>(text: *const c_char, what: &str) -> Answer<Option<&'t str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) };
    match bytes.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Refusal::invalid(format!("{what} is not UTF-8"))),
    }
}

/// The same, where a text that is not UTF-8 is no mistake: what is none of it is replaced.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub(crate) unsafe fn any_text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: it is not null, and the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) };
    Some(bytes.to_string_lossy().into_owned())
}

/// An array of C.
///
/// # Safety
/// `array` is null, or points to `count` values that stay as they are for `'a`.
#[inline]
pub(crate) unsafe fn array<'a, T>(array: *const T, count: usize, what: &str) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if array.is_null() || !array.is_aligned() {
        return Err(no_array(array.is_null(), count, what));
    }
    // SAFETY: it is not null, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(array, count) })
}

#[cold]
fn no_array(is_null: bool, count: usize, what: &str) -> Refusal {
    let why = if is_null { "null" } else { "not aligned" };
    Refusal::invalid(format!("{what} is {why}, and its count is {count}"))
}

/// Puts a result where the program wants it; null is nowhere.
///
/// # Safety
/// `place` is null or may be written to.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write_unaligned(value) };
    }
}

/// What a call that makes something returns. If it was refused, the program has `nothing` where it wants the
/// result: it may not have looked at the status, and the place may never have been set.
///
/// # Safety
/// As [`put`].
#[inline]
pub(crate) unsafe fn or_nothing<T>(status: pl_status, place: *mut T, nothing: T) -> pl_status {
    if status != pl_status::PL_OK {
        // SAFETY: the caller's promise.
        unsafe { put(place, nothing) };
    }
    status
}

/// Refuses a place for a result that has to be there.
pub(crate) fn must_be<T>(place: *mut T, what: &str) -> Answer {
    if place.is_null() {
        return Err(Refusal::invalid(format!("{what} is a null pointer")));
    }
    Ok(())
}

/// Writes a text into a buffer of C, cut to its size and always ended by a zero byte, and how many bytes the
/// whole needs, that one included.
///
/// # Safety
/// `buffer` is null or has `size` bytes; `needed` is null or may be written to.
pub(crate) unsafe fn put_text(text: &str, buffer: *mut c_char, size: usize, needed: *mut usize) {
    // SAFETY: the caller's promise.
    unsafe { put(needed, text.len() + 1) };
    if buffer.is_null() || size == 0 {
        return;
    }
    let mut length = text.len().min(size - 1);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    // SAFETY: `length` is less than `size`.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
        buffer.add(length).write(0);
    }
}

/// A pointer of the program's that a job carries to another thread. The program promises that its function
/// may use it there.
#[derive(Clone, Copy)]
pub(crate) struct Carried(pub(crate) *mut c_void);

// SAFETY: the pointer is only handed to the program's own function; that this is sound on another thread is
// the program's promise, as `data` of each description says.
unsafe impl Send for Carried {}
// SAFETY: as above.
unsafe impl Sync for Carried {}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Pair {
        size: usize,
        first: u32,
        second: u32,
    }

    // SAFETY: it is `repr(C)`, begins with its size, and has numbers only.
    unsafe impl Described for Pair {
        const NAME: &'static str = "pair";
        const FIRST_SIZE: usize = 12;
    }

    #[repr(C)]
    struct Longer {
        pair: Pair,
        later: u64,
    }

    fn read_sized(size: usize, later: u64) -> Answer<Pair> {
        let (first, second) = (1, 2);
        let pair = Pair {
            size,
            first,
            second,
        };
        let longer = Longer { pair, later };
        let mut room = MaybeUninit::uninit();
        // SAFETY: it has as many bytes as any size here that is not refused.
        unsafe { read((&raw const longer).cast(), &mut room) }.copied()
    }

    /// Goal: older and newer programs are understood, and what cannot be is refused. Method: each size.
    #[test]
    fn descriptions_may_grow() {
        let whole = |size| Pair {
            size,
            first: 1,
            second: 2,
        };
        assert_eq!(read_sized(16, 0).unwrap(), whole(16));
        assert_eq!(
            read_sized(12, 0).unwrap(),
            Pair {
                second: 0,
                ..whole(12)
            }
        );
        assert_eq!(read_sized(24, 0).unwrap(), whole(24));
        assert!(
            read_sized(24, 1)
                .unwrap_err()
                .text()
                .contains("does not know")
        );
        for size in [0, 11, LONGEST + 1, usize::MAX] {
            let refusal = read_sized(size, 0).unwrap_err();
            let text = refusal.text();
            assert!(text.contains("sizeof(pair)"), "{text}");
        }
        let mut room = MaybeUninit::uninit();
        // SAFETY: null is allowed.
        let null = unsafe { read::<Pair>(std::ptr::null(), &mut room) };
        assert!(null.unwrap_err().text().contains("null"));
    }

    /// Goal: texts are cut between characters and always end. Method: each size of the buffer.
    #[test]
    fn texts_are_cut_between_characters() {
        let text = "aé√z";
        for size in 0..=text.len() + 2 {
            let mut buffer = vec![0x7f; size + 1];
            let mut needed = 0;
            // SAFETY: the buffer has as many bytes.
            unsafe { put_text(text, buffer.as_mut_ptr().cast(), size, &mut needed) };
            assert_eq!(needed, text.len() + 1);
            assert_eq!(buffer[size], 0x7f, "nothing is written past the end");
            if size > 0 {
                let end = buffer.iter().position(|&byte| byte == 0).unwrap();
                assert!(text.starts_with(std::str::from_utf8(&buffer[..end]).unwrap()));
            }
        }
    }
}
