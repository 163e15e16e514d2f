//! One word per thread, with a destructor.
//!
//! Two thread-locals, because reading one that has a destructor costs a check on every access and
//! this word is read by every public entry point: the word itself is plain, a guard beside it (only
//! touched by `set`) runs the destructor.

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
            // SAFETY: whoever set the word promised with it that `at_exit` may be called with it
            // on this thread; it was taken out, so this happens once.
            unsafe { at_exit(word) };
        }
    }
}

#[inline(always)]
pub(super) fn get() -> *const () {
    WORD.with(Cell::get)
}

pub(super) fn set(word: *const (), at_exit: unsafe fn(*const ())) {
    WORD.with(|cell| cell.set(word));
    // While the thread's other destructors run the guard may be gone: then the setter's word is
    // simply not destroyed, which is what any thread-local can expect at that point.
    let _ = GUARD.try_with(|guard| guard.at_exit.set(Some(at_exit)));
}
