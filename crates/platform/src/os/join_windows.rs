//! Waiting for a thread's end on Windows.
//!
//! What a thread has kept in thread-local variables is dropped under a lock of the process, the loader's,
//! and so are static variables of a library that is unloaded. No thread can end meanwhile, since the end
//! takes that lock, too. A job system that is dropped there would wait for its workers for ever. So the wait
//! goes on for a moment after a thread has done all of its work, and then leaves the thread to itself.

use std::any::Any;
use std::os::windows::io::AsRawHandle;
use std::thread::JoinHandle;

use windows_sys::Win32::Foundation::WAIT_TIMEOUT;
use windows_sys::Win32::System::Threading::WaitForSingleObject;

/// How long one look lasts. A thread that may end does so in some microseconds.
const LOOK_MILLIS: u32 = 50;

/// Waits for the end of a thread, or of its work if it cannot end. Then a panic of it is not told.
pub(super) fn join(thread: JoinHandle<()>) -> Result<(), Box<dyn Any + Send>> {
    loop {
        let had_finished = thread.is_finished();
        // SAFETY: the handle is open as long as `thread` lives.
        let outcome = unsafe { WaitForSingleObject(thread.as_raw_handle(), LOOK_MILLIS) };
        if outcome != WAIT_TIMEOUT {
            return thread.join();
        }
        if had_finished {
            return Ok(());
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
            join(thread).expect("it does not panic");
        }
    }

    thread_local! { static KEPT: RefCell<Option<Worker>> = const { RefCell::new(None) } }

    /// Goal: a thread can be waited for by one that drops its thread-locals. Method: a variable that ends a
    /// thread when it is dropped.
    #[test]
    fn a_thread_that_ends_may_join() {
        let (send, receive) = mpsc::channel();
        let (begins, has_begun) = mpsc::channel();
        let worker = thread::spawn(move || {
            begins.send(()).expect("it is awaited");
            receive.recv().expect("it is sent");
        });
        has_begun.recv().expect("it begins");
        let worker = Worker(Some(worker), send);
        let ends = thread::spawn(|| KEPT.set(Some(worker)));
        join(ends).expect("it does not panic");
    }

    /// Goal: a panic is told. Method: a thread that panics.
    #[test]
    fn a_panic_is_told() {
        assert!(join(thread::spawn(|| panic!("meant"))).is_err());
    }
}
