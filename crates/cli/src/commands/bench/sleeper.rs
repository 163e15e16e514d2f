//! A plain thread that is parked until somebody wakes it: what the floors of rows are made of.
//!
//! Invariant: before [`Sleeper::wake`] returns, a run of the body is certain that begins after the
//! call and sees what the caller has written. Calls during a run may share one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use event::Nanos;
use platform::{Os, Parker, Platform};

/// Ends its thread when it is dropped.
pub(super) struct Sleeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    parker: <Os as Platform>::Parker,
    /// The next return from the parker was wanted, and not one of its early ones.
    wanted: AtomicBool,
    stop: AtomicBool,
}

impl Sleeper {
    /// A thread that runs `body`, which must not panic, whenever it is woken.
    pub(super) fn start(mut body: impl FnMut() + Send + 'static) -> Result<Sleeper, String> {
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

    pub(super) fn wake(&self) {
        // Release, partner: the Acquire swap of the sleeper, which sees what was prepared for it.
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

    /// Goal: a run for each wake-up that waits for the one before, and none without; it ends when it is
    /// dropped. Method: a body that counts aloud and is heard each time; its end closes the channel.
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
