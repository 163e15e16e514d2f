//! Waiting for a thread's end on Windows.
//!
//! What a thread has kept in thread-local variables is dropped under a lock of the process, the loader's,
//! and so are static variables of a library that is unloaded. No thread can begin or end meanwhile, since
//! both take that lock, too. A job system that is dropped there would wait for its workers for ever. So the
//! wait goes on for a moment after a thread has done all of its work, and for a second if it has not begun
//! any, and then leaves the thread to itself.

use std::any::Any;
use std::os::windows::io::AsRawHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use windows_sys::Win32::Foundation::WAIT_TIMEOUT;
use windows_sys::Win32::System::Threading::WaitForSingleObject;

/// How long one look lasts. A thread that may end does so in some microseconds.
const LOOK_MILLIS: u32 = 50;

/// So many looks for a thread that has not begun: others may have the CPUs.
const LOOKS_FOR_BEGIN: u32 = 20;

/// Whether a thread has begun its work.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun(Arc<AtomicBool>);

impl Begun {
    /// It has.
    pub(super) fn note(&self) {
        // Relaxed: it publishes nothing.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for the end of a thread, or of its work if it cannot end. Then a panic of it is not told. A thread
/// that could not begin does its work later.
pub(super) fn join(thread: JoinHandle<()>, begun: &Begun) -> Result<(), Box<dyn Any + Send>> {
    let mut looks_for_begin = LOOKS_FOR_BEGIN;
    loop {
        let had_finished = thread.is_finished();
        if !begun.is_noted() {
            looks_for_begin -= 1;
        }
        // SAFETY: the handle is open as long as `thread` lives.
        let outcome = unsafe { WaitForSingleObject(thread.as_raw_handle(), LOOK_MILLIS) };
        if outcome != WAIT_TIMEOUT {
            return thread.join();
        }
        if had_finished || looks_for_begin == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// A thread that works until it is told to end.
    struct Worker(Option<JoinHandle<()>>, mpsc::Sender<()>);

    impl Drop for Worker {
        fn drop(&mut self) {
            self.1.send(()).expect("it listens");
            let thread = self.0.take().expect("it is dropped once");
            join(thread, &has_begun()).expect("it does not panic");
        }
    }

    fn has_begun() -> Begun {
        let begun = Begun::default();
        begun.note();
        begun
    }

    thread_local! { static KEPT: RefCell<Option<Worker>> = const { RefCell::new(None) } }

    /// Goal: a thread can be waited for by one that drops its thread-locals. Method: a variable that ends a
    /// thread when it is dropped.
    #[test]
    fn a_thread_that_ends_may_join() {
        let (send, receive) = mpsc::channel();
        let (begins, begin) = mpsc::channel();
        let worker = thread::spawn(move || {
            begins.send(()).expect("it is awaited");
            receive.recv().expect("it is sent");
        });
        begin.recv().expect("it begins");
        let worker = Worker(Some(worker), send);
        let ends = thread::spawn(|| KEPT.set(Some(worker)));
        join(ends, &has_begun()).expect("it does not panic");
    }

    /// Goal: a thread that cannot begin is not waited for either. Method: a variable that starts a thread
    /// when it is dropped.
    #[test]
    fn a_thread_that_does_not_begin_is_left() {
        struct Starts(Begun);
        impl Drop for Starts {
            fn drop(&mut self) {
                let begun = self.0.clone();
                let late = thread::spawn(move || begun.note());
                join(late, &self.0).expect("it does not panic");
            }
        }
        thread_local! { static LATE: RefCell<Option<Starts>> = const { RefCell::new(None) } }
        let begun = Begun::default();
        let kept = begun.clone();
        let ends = thread::spawn(|| LATE.set(Some(Starts(kept))));
        join(ends, &has_begun()).expect("it does not panic");
        while !begun.is_noted() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Goal: a panic is told. Method: a thread that panics, again while another test has the loader's lock.
    #[test]
    fn a_panic_is_told() {
        let panics = || {
            let begun = Begun::default();
            let noted = begun.clone();
            let thread = thread::spawn(move || {
                noted.note();
                panic!("meant")
            });
            join(thread, &begun)
        };
        while panics().is_ok() {}
    }
}
