//! One word per thread, with a destructor that runs after those of other thread-locals.
//!
//! The word is a plain thread-local, which costs nothing to read. Its destructor is that of a key of the C
//! library's: keys are destroyed after Rust's and C++'s thread-locals. Where a system has another order, or
//! another key's destructor sets the word again, the C library goes around once more, four times at least.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

thread_local! {
    static WORD: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static AT_EXIT: Cell<Option<unsafe fn(*const ())>> = const { Cell::new(None) };
}

/// The key; `None` if the C library has no more.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is a live value; the function may be called with any word that `set` is given.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(destroy)) };
        (made == 0).then_some(key)
    })
}

/// The thread ends.
extern "C" fn destroy(_: *mut c_void) {
    let word = WORD.with(|word| word.replace(ptr::null()));
    if let (false, Some(at_exit)) = (word.is_null(), AT_EXIT.with(Cell::get)) {
        // SAFETY: the caller of `set` promised that `at_exit` may be called with the word on this thread; it
        // was taken out, so this happens once.
        unsafe { at_exit(word) };
    }
}

#[inline(always)]
pub(super) fn get() -> *const () {
    WORD.with(Cell::get)
}

/// Sets the word. False if it cannot be destroyed, because the system has no more keys.
pub(super) fn set(word: *const (), at_exit: unsafe fn(*const ())) -> bool {
    WORD.with(|cell| cell.set(word));
    AT_EXIT.with(|cell| cell.set(Some(at_exit)));
    // SAFETY: the key was made by `key` and is never deleted. A value that is not null makes the C library
    // call `destroy`, which does not read through it.
    key().is_some_and(|key| unsafe { libc::pthread_setspecific(key, word.cast()) == 0 })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Says that it goes, and sets the word in doing so.
    struct Late(Sender<&'static str>, *const ());

    impl Drop for Late {
        fn drop(&mut self) {
            self.0.send("thread-local").expect("it is awaited");
            assert!(set(self.1, say));
        }
    }

    unsafe fn say(word: *const ()) {
        // SAFETY: the words of the test are boxes, and each is destroyed once.
        let says = unsafe { Box::from_raw(word.cast::<Sender<&'static str>>().cast_mut()) };
        says.send("word").expect("it is awaited");
    }

    /// Goal: the word is destroyed after the thread's other thread-locals, also if one of these sets it.
    /// Method: a thread-local that is registered before or after the word and sets it again when it goes.
    #[test]
    fn the_word_goes_last() {
        thread_local! { static LATE: RefCell<Option<Late>> = const { RefCell::new(None) } }
        for word_first in [true, false] {
            let (says, said) = channel();
            let thread = std::thread::spawn(move || {
                let word = || {
                    Box::into_raw(Box::new(says.clone()))
                        .cast_const()
                        .cast::<()>()
                };
                let first = word();
                let late = Late(says.clone(), first);
                if word_first {
                    assert!(set(first, say));
                }
                LATE.with(|place| *place.borrow_mut() = Some(late));
                assert!(set(first, say));
            });
            thread.join().expect("it ends");
            assert_eq!(said.iter().collect::<Vec<_>>(), ["thread-local", "word"]);
        }
    }
}
