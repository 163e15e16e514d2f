//! One word per thread, with a destructor, as std offers it.
//!
//! Two thread-locals, because reading one that has a destructor costs a check on every access and
//! this word is read by every public entry point: the word itself is plain, a guard beside it (only
//! touched by `set`) runs the destructor. It is one of the thread's destructors: others may run after it, and
//! find that no further word will be destroyed.

use std::cell::Cell;
use std::ptr;

thread_local! {
    static WORD: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static GUARD: Guard = const { Guard { at_exit: Cell::new(None) } };
}

struct Guard {
    at_exit: Cell<Option<unsafe fn(*const ())>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let word = WORD.with(|word| word.replace(ptr::null()));
        if let (false, Some(at_exit)) = (word.is_null(), self.at_exit.get()) {
            // SAFETY: the caller of `set` promised that `at_exit` may be called with the word on this
            // thread; it was taken out, so this happens once.
            unsafe { at_exit(word) };
        }
    }
}

#[inline(always)]
pub(super) fn get() -> *const () {
    WORD.with(Cell::get)
}

/// Sets the word. False while the thread's other destructors run and the guard is gone: then the word
/// will not be destroyed.
pub(super) fn set(word: *const (), at_exit: unsafe fn(*const ())) -> bool {
    WORD.with(|cell| cell.set(word));
    GUARD
        .try_with(|guard| guard.at_exit.set(Some(at_exit)))
        .is_ok()
}
