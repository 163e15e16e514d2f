//! A plain thread that is parked until it is woken, for the floors of rows.
//!
//! Invariant: when [`Sleeper::wake`] returns, a run of the body is certain that begins after the call and
//! sees the caller's writes. Calls during a run may share the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use event::Nanos;
use platform::{Os, Parker, Platform};

/// Ends its thread when it is dropped.
pub(crate) struct Sleeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    parker: <Os as Platform>::Parker,
    /// The next return from the parker is a wake-up, and not an early return.
    wanted: AtomicBool,
    stop: AtomicBool,
}

impl Sleeper {
    /// Starts a thread that runs `body`, which must not panic, whenever it is woken.
    pub(crate) fn start(mut body: impl FnMut() + Send + 'static) -> Result<Sleeper, String> {
        let shared = Arc::new(Shared {
            parker: Os.parker(),
            wanted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let its = Arc::clone(&shared);
        let woken = move || {
            while !its.stop.load(Ordering::Relaxed) {
                its.parker.park(Nanos::MAX);
                // Acquire: with the Release of `wake`.
                if its.wanted.swap(false, Ordering::Acquire) {
                    body();
                }
            }
        };
        let thread = thread::Builder::new().name("sleeper".into()).spawn(woken);
        Ok(Sleeper {
            shared,
            thread: Some(thread.map_err(|error| error.to_string())?),
        })
    }

    pub(crate) fn wake(&self) {
        // Release, partner: the Acquire swap of the sleeper, which sees the caller's writes.
        self.shared.wanted.store(true, Ordering::Release);
        self.shared.parker.unpark();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.parker.unpark();
        let ended = self.thread.take().map(JoinHandle::join);
        debug_assert!(
            matches!(ended, Some(Ok(()))),
            "the sleeper does nothing that panics"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Goal: a wake-up after a run brings one more run, there is none without, and the thread ends when the
    /// sleeper is dropped. Method: a body that sends its count, which is received each time; its end closes
    /// the channel.
    #[test]
    fn it_runs_when_it_is_woken() {
        let (sender, heard) = mpsc::channel();
        let mut count = 0;
        let sleeper = Sleeper::start(move || {
            count += 1;
            let _ = sender.send(count);
        });
        let sleeper = sleeper.unwrap();
        for expected in 1..=3 {
            sleeper.wake();
            assert_eq!(heard.recv(), Ok(expected));
        }
        drop(sleeper);
        assert_eq!(heard.recv(), Err(mpsc::RecvError));
    }
}
