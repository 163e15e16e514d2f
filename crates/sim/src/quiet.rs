//! Silence for expected panics.
//!
//! A planted bug is found by a panic, thousands of times in one test run. The panic hook is global, tests run
//! side by side, and an unexpected panic next door must still be printed. So one hook is installed once, and
//! it looks at a mark on the panicking thread.
//!
//! Invariant: outside [`quietly`] the hook that was there before works as it always did.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// The number of calls of `quietly` that this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Text and place of the last panic that was not printed on this thread.
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Calls `f`; panics on this thread are not printed meanwhile. They are still panics.
pub fn quietly<R>(f: impl FnOnce() -> R) -> R {
    struct QuietGuard;
    impl Drop for QuietGuard {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    install();
    DEPTH.set(DEPTH.get() + 1);
    let _guard = QuietGuard;
    f()
}

/// The message of a panic's payload.
pub fn text_of(payload: &(dyn Any + Send)) -> String {
    text_of_any(payload)
}

fn text_of_any(payload: &dyn Any) -> String {
    let text = payload
        .downcast_ref::<&'static str>()
        .map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic whose payload is no text".into())
}

/// The message of a panic's payload and its place, if it is the last panic that was not printed on this
/// thread.
pub fn text_and_place_of(payload: &(dyn Any + Send)) -> String {
    let text = text_of(payload);
    let place = LAST.with_borrow(|last| match last {
        Some((said, place)) if *said == text => Some(place.clone()),
        _ => None,
    });
    match place {
        Some(place) => format!("{text} (at {place})"),
        None => text,
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match DEPTH.get() {
            0 => before(info),
            _ => remember(info),
        }));
    });
}

fn remember(info: &PanicHookInfo<'_>) {
    let text = text_of_any(info.payload());
    let place = info
        .location()
        .map_or_else(String::new, ToString::to_string);
    // A panic while the last one is being read or written would find it borrowed; its place is then
    // lost, which costs a line number.
    LAST.with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some((text, place));
        }
    });
}
