//! Names that are made while the program runs, kept for as long as the process lives.
//!
//! A job's name may be in an error that outlives the job system, so it is never given back; but each text is
//! kept once, however many job systems and threads use it, and there is a limit. The table needs no lock,
//! which the child of a `fork` could find taken for ever.
//!
//! A place of the table is empty or has one text for ever. The search for a text goes from the place of its
//! hash to the next ones, up to the first empty place. So whoever looks for it comes to the same empty place,
//! and one of them fills it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The most names that a process keeps.
pub const NAMES_MAX: usize = 1 << 14;

/// The most bytes of a name that are kept.
pub const NAME_BYTES_MAX: usize = 128;

/// Twice as many as names, so that there is an empty place and the way to it is short.
const PLACES: usize = 2 * NAMES_MAX;

static NAMES: Names<PLACES> = Names::new();

/// The text, kept for the rest of the process: its first [`NAME_BYTES_MAX`] bytes, or a few less where that
/// would cut a character. `None` if it is new and [`NAMES_MAX`] others are kept.
///
/// It hashes the text. A new one costs two allocations. It takes no lock and never waits.
///
/// ```
/// let text = String::from("system 7");
/// let kept: &'static str = paceline_platform::kept_name(&text).unwrap();
/// assert_eq!(kept, text);
/// assert!(std::ptr::eq(kept, paceline_platform::kept_name("system 7").unwrap()));
/// ```
pub fn kept_name(text: &str) -> Option<&'static str> {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    NAMES.kept(&text[..end])
}

/// A table of texts with half as many names as places.
struct Names<const PLACES: usize> {
    places: [Place; PLACES],
    count: AtomicUsize,
}

/// Null, or a text that stays.
struct Place(AtomicPtr<&'static str>);

impl<const PLACES: usize> Names<PLACES> {
    const fn new() -> Names<PLACES> {
        Names {
            places: [const { Place(AtomicPtr::new(ptr::null_mut())) }; PLACES],
            count: AtomicUsize::new(0),
        }
    }

    fn kept(&self, text: &str) -> Option<&'static str> {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let first = hasher.finish() as usize % PLACES;
        let (before, from) = self.places.split_at(first);
        for place in from.iter().chain(before) {
            let there = match place.get() {
                Some(there) => there,
                None => self.fill(place, text)?,
            };
            if there == text {
                return Some(there);
            }
        }
        None
    }

    /// Puts the text into this place, unless another thread has put one there; what is there then. `None` if
    /// there are as many names as may be, and this is none of them.
    #[cold]
    fn fill(&self, place: &Place, text: &str) -> Option<&'static str> {
        // Relaxed, both: a number that nothing is published with.
        if self.count.fetch_add(1, Ordering::Relaxed) >= PLACES / 2 {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return place.newest();
        }
        let (there, is_ours) = place.fill(text);
        if !is_ours {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Some(there)
    }
}

impl Place {
    fn get(&self) -> Option<&'static str> {
        // Acquire, partner: the CAS in `fill`.
        let there = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a box that `fill` has leaked and nothing changes.
        unsafe { there.as_ref() }.copied()
    }

    /// As [`get`](Place::get), which may find the place empty for some time after another thread has filled
    /// it.
    fn newest(&self) -> Option<&'static str> {
        let null = ptr::null_mut();
        // Acquire, partner: the CAS in `fill`. Only an RMW is sure to see the newest value.
        let seen = self
            .0
            .compare_exchange(null, null, Ordering::Acquire, Ordering::Acquire);
        let there = seen.unwrap_or_else(|there| there);
        // SAFETY: as in `get`.
        unsafe { there.as_ref() }.copied()
    }

    /// The text that is here afterwards, and whether it was put here by this call.
    fn fill(&self, text: &str) -> (&'static str, bool) {
        let text: *mut str = Box::into_raw(Box::<str>::from(text));
        // SAFETY: a box of our own, which is given back below or never.
        let kept: &'static str = unsafe { &*text };
        let new = Box::into_raw(Box::new(kept));
        // Release, partner: the Acquire load in `get`. Acquire, partner: the other thread's Release here.
        let before =
            self.0
                .compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Acquire);
        match before {
            Ok(_) => (kept, true),
            Err(there) => {
                // SAFETY: both boxes were made above and no other thread has seen them.
                unsafe {
                    drop(Box::from_raw(new));
                    drop(Box::from_raw(text));
                }
                // SAFETY: not null, so a box that another call has leaked and nothing changes.
                (unsafe { *there }, false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Goal: a text is kept once, its own, and no more texts than may be. Method: a small table, more texts
    /// than it takes, each of them twice.
    #[test]
    fn each_text_is_kept_once_up_to_the_limit() {
        static NAMES: Names<16> = Names::new();
        let names = &NAMES;
        let texts: Vec<String> = (0..12).map(|number| format!("name {number}")).collect();
        let kept: Vec<_> = texts.iter().map(|text| names.kept(text)).collect();
        for (text, kept) in texts.iter().zip(&kept) {
            assert!(kept.is_none_or(|kept| kept == text && !ptr::eq(kept, &**text)));
        }
        assert_eq!(kept.iter().flatten().count(), 8, "{kept:?}");
        for (text, kept) in texts.iter().zip(kept) {
            let again = names.kept(text);
            assert_eq!(again.map(str::as_ptr), kept.map(str::as_ptr));
        }
    }

    /// Goal: threads that bring the same text at the same time get one. Method: two threads, the same texts
    /// in a table that has room for just these, many tables.
    #[test]
    fn threads_agree_on_a_text() {
        const TABLES: usize = if cfg!(miri) { 5 } else { 200 };
        static NAMES: [Names<16>; TABLES] = [const { Names::new() }; TABLES];
        for names in &NAMES {
            let begin = Barrier::new(2);
            let keep_all = || {
                begin.wait();
                let texts = (0..8).map(|number| format!("name {number}"));
                texts
                    .map(|text| names.kept(&text).map(str::as_ptr).map(<*const u8>::addr))
                    .collect::<Vec<_>>()
            };
            let (here, there) = std::thread::scope(|scope| {
                let other = scope.spawn(keep_all);
                (keep_all(), other.join().expect("it does not panic"))
            });
            // A thread may find the table full for the moment in which both bring the last text.
            let both = here.iter().zip(&there);
            assert!(
                both.clone()
                    .all(|(a, b)| a == b || a.is_none() || b.is_none())
            );
            assert!(both.filter(|(a, b)| a == b).count() >= 7);
            assert_eq!(names.count.load(Ordering::Relaxed), 8);
        }
    }

    /// Goal: long texts are cut where a character ends. Method: one of two-byte characters after one of one.
    #[test]
    fn a_text_is_cut_where_a_character_ends() {
        let text = format!("x{}", "é".repeat(NAME_BYTES_MAX));
        let kept = kept_name(&text).expect("there is room");
        assert_eq!(kept.len(), NAME_BYTES_MAX - 1);
        assert!(text.starts_with(kept));
    }
}
