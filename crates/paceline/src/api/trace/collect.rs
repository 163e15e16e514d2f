//! The thread that empties the rings while a trace is recorded.

use std::sync::Arc;

use event::{Event, Nanos};
use platform::{Atomic, Lock, Ordering, Parker, Platform, SpawnError, Thread, ThreadSpec};

use crate::record::RingReader;

/// How long the thread sleeps. A ring then takes 3 million events a second.
const PERIOD: Nanos = Nanos::from_millis(10);

/// How many events are kept: 256 MB. Further ones are counted.
const EVENTS_MAX: usize = 8_000_000;

/// What the thread shares with the trace.
pub(super) struct Collector<P: Platform> {
    platform: P,
    parker: P::Parker,
    /// 1: the thread is to end.
    stopping: P::AtomicU32,
    store: P::Lock<Store<P>>,
}

struct Store<P: Platform> {
    /// Empty at the end.
    reader: Option<RingReader<P>>,
    collected: Collected,
}

/// The events of a trace.
#[derive(Default)]
pub(super) struct Collected {
    /// Those of one thread slot in the order of their times.
    pub(super) events: Vec<Event>,
    /// How many found no room.
    pub(super) beyond: u64,
}

impl<P: Platform> Store<P> {
    fn drain(&mut self) {
        let Collected { events, beyond } = &mut self.collected;
        let reader = self.reader.iter_mut();
        for reader in reader {
            reader.drain(|event| {
                if events.len() < EVENTS_MAX {
                    events.push(event);
                } else {
                    *beyond += 1;
                }
            });
        }
    }
}

impl<P: Platform> Collector<P> {
    pub(super) fn new(platform: &P, reader: RingReader<P>) -> Collector<P> {
        Collector {
            platform: platform.clone(),
            parker: platform.parker(),
            stopping: P::AtomicU32::new(0),
            store: P::Lock::new(Store {
                reader: Some(reader),
                collected: Collected::default(),
            }),
        }
    }

    /// Takes the reader away, so that the rings fill up. Says how many events were taken out before.
    #[cfg(test)]
    pub(super) fn take_reader(&self) -> (RingReader<P>, usize) {
        self.store.with(|store| {
            let reader = store.reader.take().expect("a reader is taken once");
            (reader, store.collected.events.len())
        })
    }

    /// Puts it back.
    #[cfg(test)]
    pub(super) fn put_reader(&self, reader: RingReader<P>) {
        self.store.with(|store| store.reader = Some(reader));
    }

    fn run(&self) {
        // Relaxed: only the thread's end depends on it, and the join orders the rest.
        while self.stopping.load(Ordering::Relaxed) == 0 {
            self.parker.park(self.platform.now() + PERIOD);
            self.store.with(Store::drain);
        }
    }

    /// Ends the thread, takes out the rest, and gives back the reader. For one call.
    pub(super) fn finish(&self, thread: Option<P::Thread>) -> (RingReader<P>, Collected) {
        self.stopping.store(1, Ordering::Relaxed);
        self.parker.unpark();
        if let Some(thread) = thread {
            // Its panic would be a bug of ours; the events are there all the same.
            let _ = thread.join();
        }
        self.store.with(|store| {
            store.drain();
            let reader = store.reader.take();
            let reader = reader.expect("a trace ends once");
            (reader, std::mem::take(&mut store.collected))
        })
    }
}

/// Starts the thread.
///
/// # Errors
/// If the system refuses it.
pub(super) fn start<P: Platform>(
    platform: &P,
    collector: &Arc<Collector<P>>,
) -> Result<P::Thread, SpawnError> {
    let spec = ThreadSpec {
        name: "paceline trace".to_owned(),
        ..ThreadSpec::default()
    };
    let collector = Arc::clone(collector);
    platform.spawn(spec, Box::new(move || collector.run()))
}
