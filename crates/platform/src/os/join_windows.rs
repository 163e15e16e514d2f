//! Waiting for the last threads' ends on Windows.
//!
//! What a thread has kept in thread-local variables is dropped under a lock of the process, the loader's,
//! and so are static variables of a library that is unloaded. No thread can begin or end meanwhile, since
//! both take that lock, too. A job system that is dropped there would wait for its workers for ever. So the
//! wait goes on for a moment after a thread has done all of its work, and for a second if it has not begun
//! any, and then leaves the thread to itself.

use std::any::Any;
use std::os::windows::io::AsRawHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, fence};
use std::thread::JoinHandle;

use windows_sys::Win32::Foundation::WAIT_TIMEOUT;
use windows_sys::Win32::System::Threading::WaitForSingleObject;

/// How long one look lasts. A thread that may end does so in some microseconds.
const LOOK_MILLIS: u32 = 50;

/// So many looks for a thread that has not begun: others may have the CPUs.
const LOOKS_FOR_BEGIN: u32 = 20;

/// What has become of a thread that was started.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning(Arc<AtomicU32>);

impl Beginning {
    const OPEN: u32 = 0;
    const BEGUN: u32 = 1;
    const LEFT: u32 = 2;

    /// Whether the calling thread, which is about to begin, may: it may not once it was left.
    pub(super) fn begin(&self) -> bool {
        self.turn(Self::BEGUN)
    }

    /// Leaves a thread that has not begun. False if it has.
    fn leave(&self) -> bool {
        self.turn(Self::LEFT)
    }

    /// One of both gets it.
    fn turn(&self, to: u32) -> bool {
        // Relaxed, here and below: it publishes nothing. Work that is not begun is never done.
        let turned = self.0.compare_exchange(Self::OPEN, to, Relaxed, Relaxed);
        turned.is_ok()
    }

    fn is_open(&self) -> bool {
        self.0.load(Relaxed) == Self::OPEN
    }
}

/// Waits for the end of a thread, or of its work if it cannot end. Then a panic of it is not told. A thread
/// that cannot begin never does its work.
pub(super) fn join_last(
    thread: JoinHandle<()>,
    beginning: &Beginning,
) -> Result<(), Box<dyn Any + Send>> {
    let mut looks_for_begin = LOOKS_FOR_BEGIN;
    loop {
        let had_finished = thread.is_finished();
        // SAFETY: the handle is open as long as `thread` lives.
        let outcome = unsafe { WaitForSingleObject(thread.as_raw_handle(), LOOK_MILLIS) };
        if outcome != WAIT_TIMEOUT {
            return thread.join();
        }
        if had_finished {
            // Acquire, partner: the thread's drop of what std shares with it, by which it counts as finished.
            fence(Acquire);
            return Ok(());
        }
        if beginning.is_open() {
            looks_for_begin -= 1;
            if looks_for_begin == 0 && beginning.leave() {
                return Ok(());
            }
            looks_for_begin = looks_for_begin.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A thread that works until it is told to end.
    struct Worker(Option<JoinHandle<()>>, mpsc::Sender<()>);

    impl Drop for Worker {
        fn drop(&mut self) {
            self.1.send(()).expect("it listens");
            let thread = self.0.take().expect("it is dropped once");
            join_last(thread, &has_begun()).expect("it does not panic");
        }
    }

    fn has_begun() -> Beginning {
        let beginning = Beginning::default();
        assert!(beginning.begin());
        beginning
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
        join_last(ends, &has_begun()).expect("it does not panic");
    }

    /// Goal: a thread that cannot begin is not waited for either, and then never begins. Method: a variable
    /// that starts a thread when it is dropped.
    #[test]
    fn a_thread_that_does_not_begin_is_left() {
        struct Starts(mpsc::Sender<bool>);
        impl Drop for Starts {
            fn drop(&mut self) {
                let (beginning, begins) = (Beginning::default(), self.0.clone());
                let own = beginning.clone();
                let late = thread::spawn(move || begins.send(own.begin()).expect("it listens"));
                join_last(late, &beginning).expect("it does not panic");
            }
        }
        thread_local! { static LATE: RefCell<Option<Starts>> = const { RefCell::new(None) } }
        let (send, receive) = mpsc::channel();
        let ends = thread::spawn(|| LATE.set(Some(Starts(send))));
        join_last(ends, &has_begun()).expect("it does not panic");
        assert_eq!(receive.recv(), Ok(false));
    }

    /// Goal: a panic is told. Method: a thread that panics, again while another test has the loader's lock.
    #[test]
    fn a_panic_is_told() {
        let panics = || {
            let beginning = Beginning::default();
            let own = beginning.clone();
            let thread = thread::spawn(move || {
                own.begin();
                panic!("meant")
            });
            join_last(thread, &beginning)
        };
        while panics().is_ok() {}
    }
}
