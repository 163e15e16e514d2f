//! The lock of a program: one of the system's, or a fair one.

use std::sync::atomic::{AtomicU64, Ordering};

use event::Nanos;
use platform::os::OsParker;
use platform::os::pthread::Mutex;
use platform::{Os, Parker, Platform};

use crate::scenes::LockKind;

/// A lock.
pub(crate) enum Lock {
    System(Mutex),
    Fair(Turns),
}

/// A lock that goes to the thread that waits for it. It is for two threads: one of them waits at most.
pub(crate) struct Turns {
    /// The turns that were asked for, and how many of these are over.
    asked: AtomicU64,
    over: AtomicU64,
    /// One thread at a time may sleep with a parker. The one that waits for a turn is awake before the other
    /// one waits for the turn after the next.
    parkers: [OsParker; 2],
}

impl Lock {
    /// # Errors
    /// If the system has no such lock.
    pub(crate) fn new(kind: LockKind) -> Result<Lock, String> {
        let system = |inherits| Mutex::new(inherits).map_err(|error| error.to_string());
        Ok(match kind {
            LockKind::Plain => Lock::System(system(false)?),
            LockKind::Inheriting => Lock::System(system(true)?),
            LockKind::Fair => Lock::Fair(Turns {
                asked: AtomicU64::new(0),
                over: AtomicU64::new(0),
                parkers: [Os.parker(), Os.parker()],
            }),
        })
    }

    pub(crate) fn with(&self, body: impl FnOnce()) {
        match self {
            Lock::System(mutex) => mutex.with(body),
            Lock::Fair(turns) => turns.with(body),
        }
    }
}

impl Turns {
    fn with(&self, body: impl FnOnce()) {
        // SeqCst, here and below: it is a test's lock, and orders all that its threads do.
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        while self.over.load(Ordering::SeqCst) < turn {
            self.parker(turn).park(Nanos::MAX);
        }
        body();
        self.over.fetch_add(1, Ordering::SeqCst);
        if self.asked.load(Ordering::SeqCst) > turn + 1 {
            self.parker(turn + 1).unpark();
        }
    }

    fn parker(&self, turn: u64) -> &OsParker {
        &self.parkers[(turn % 2) as usize]
    }
}
