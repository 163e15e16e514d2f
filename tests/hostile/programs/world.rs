//! The state that all programs of a slice share: one job system, threads that complete its events, counts of
//! planted failures, and notes of what is wrong.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline::{Event, JobId, JobSystem, WaitError};

use crate::watchdog;

/// Ids that programs leave for each other.
const KNOWN: usize = 64;

/// The payload of a failing body's panic.
pub(crate) struct Expected;

/// Fails without the noise of the panic hook.
pub(crate) fn fail() -> ! {
    resume_unwind(Box::new(Expected))
}

/// One job system and what belongs to it. Jobs hold it: when the last one is gone, they are all over.
pub(crate) struct World {
    pub(crate) js: Arc<JobSystem>,
    /// Ingredients that are left out.
    pub(crate) without: Vec<String>,
    /// A node of a certain seed gives a wrong result on purpose.
    pub(crate) is_planted: bool,
    foreign: Mutex<mpsc::Sender<(Event, u64)>>,
    known: Mutex<Vec<JobId>>,
    /// Bombs that went off in the hands of the job system.
    pub(crate) bombs: Arc<AtomicU64>,
    /// Wakers that panicked.
    pub(crate) wakers: Arc<AtomicU64>,
    wrong: Mutex<Vec<String>>,
}

impl World {
    /// With threads that complete events, until the last owner of the world is gone.
    pub(crate) fn new(js: Arc<JobSystem>, without: Vec<String>) -> (World, Vec<JoinHandle<()>>) {
        let (foreign, events) = mpsc::channel();
        let events = Arc::new(Mutex::new(events));
        let completer = |_| {
            let events = Arc::clone(&events);
            thread::spawn(move || complete_all(&events))
        };
        let threads = (0..2).map(completer).collect();
        let world = World {
            js,
            without,
            is_planted: false,
            foreign: Mutex::new(foreign),
            known: Mutex::default(),
            bombs: Arc::default(),
            wakers: Arc::default(),
            wrong: Mutex::default(),
        };
        (world, threads)
    }

    /// Has a foreign thread complete the event, sooner or later.
    pub(crate) fn complete_elsewhere(&self, event: Event, seed: u64) {
        let sent = lock(&self.foreign).send((event, seed));
        assert!(sent.is_ok(), "the threads live as long as the world");
    }

    /// Leaves an id for others, and gives one that was left, by any thread.
    pub(crate) fn exchange(&self, id: JobId, at: usize) -> JobId {
        let mut known = lock(&self.known);
        if known.len() < KNOWN {
            known.push(id);
        } else {
            known[at % KNOWN] = id;
        }
        known[at / KNOWN % known.len()]
    }

    /// Something is wrong. It is not only raised: a node above might catch it.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        lock(&self.wrong).push(what.into());
    }

    /// The first thing that is wrong.
    pub(crate) fn first_wrong(&self) -> Option<String> {
        lock(&self.wrong).first().cloned()
    }

    /// The result of a wait. A failure below is a failure here; every other error is wrong.
    pub(crate) fn settle<T>(&self, given: Result<T, WaitError>) -> T {
        match given {
            Ok(value) => value,
            Err(WaitError::Panicked { .. } | WaitError::Cancelled { .. }) => fail(),
            Err(error) => {
                self.wrong(format!("a wait that must succeed said: {error}"));
                fail()
            }
        }
    }

    /// A value whose drop panics, in the hands of the job system.
    pub(crate) fn bomb(&self) -> Bomb {
        Bomb(Some(Arc::clone(&self.bombs)))
    }
}

/// Panics when it is dropped, unless the thread is panicking already.
pub(crate) struct Bomb(Option<Arc<AtomicU64>>);

impl Bomb {
    /// It can be dropped now.
    pub(crate) fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if let Some(count) = self.0.take()
            && !thread::panicking()
        {
            count.fetch_add(1, Ordering::SeqCst);
            fail();
        }
    }
}

/// A lock that a panic may have gone through.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|poison| poison.into_inner())
}

fn complete_all(events: &Mutex<mpsc::Receiver<(Event, u64)>>) {
    loop {
        let next = lock(events).recv();
        let Ok((event, seed)) = next else { return };
        spin(seed % 3_000);
        if seed % 5 == 0 {
            thread::sleep(Duration::from_micros(seed % 300));
        }
        event.complete();
        watchdog::progress();
    }
}

/// A little work.
pub(crate) fn spin(turns: u64) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}
