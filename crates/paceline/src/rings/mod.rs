//! Events of a recording, in a ring for each seat.
#![doc = ""]
#![doc = include_str!("README.md")]

use std::fmt;
use std::sync::Arc;

use event::{Event, Sink};
use platform::{Atomic, Lock, Memory, Ordering, Os, Padded, SharedCell};

use crate::limits::{SPARES_MAX, THREADS_MAX, VISITORS_MAX, WORKERS_MAX};

/// Words of an event.
const WORDS: usize = 4;

/// A sink of fixed size for the events of one job system, see [`Builder::sink`](crate::Builder::sink).
///
/// Recording an event takes a few nanoseconds and never waits: there is a ring for each thread. What
/// finds its ring full is counted, see [`RingReader::lost`].
///
/// ```
/// use event::EventKind;
/// use paceline::{Builder, Rings};
///
/// let (rings, mut reader) = Rings::new(1024);
/// let js = Builder::new().workers(1).sink(rings).build().unwrap();
/// js.wait(js.job("hello").schedule(|_| ()));
/// drop(js); // Or drain in between, as often as you like.
/// let mut events = Vec::new();
/// reader.drain(|event| events.push(event));
/// assert!(events.iter().any(|event| event.kind == EventKind::Begin));
/// assert_eq!(reader.lost(), 0);
/// ```
pub struct Rings<M: Memory = Os> {
    seats: Box<[Place<M>]>,
    growth: M::Lock<()>,
    /// Events that each ring holds.
    capacity: usize,
    /// Events of seats that have no ring.
    strays: M::AtomicU64,
}

/// The one that takes events out of [`Rings`].
pub struct RingReader<M: Memory = Os> {
    rings: Arc<Rings<M>>,
}

/// Room for one ring.
struct Place<M: Memory> {
    /// 1 as soon as the ring is there.
    made: M::AtomicU32,
    ring: M::Cell<Option<Ring<M>>>,
}

// SAFETY: the cell is written once, under the lock `growth` and before `made` is 1 (Release); everybody
// else looks into it only after having seen that 1 (Acquire). A ring consists of atomic words.
unsafe impl<M: Memory> Sync for Place<M> {}
// SAFETY: as above.
unsafe impl<M: Memory> Send for Place<M> {}

/// See the module.
pub(crate) struct Ring<M: Memory> {
    written: Padded<M::AtomicU64>,
    lost: M::AtomicU64,
    read: Padded<M::AtomicU64>,
    words: Box<[M::AtomicU64]>,
}

impl<M: Memory> Ring<M> {
    /// A ring for so many events, a power of two.
    pub(crate) fn new(capacity: usize) -> Ring<M> {
        Ring {
            written: Padded(M::AtomicU64::new(0)),
            lost: M::AtomicU64::new(0),
            read: Padded(M::AtomicU64::new(0)),
            words: (0..capacity * WORDS)
                .map(|_| M::AtomicU64::new(0))
                .collect(),
        }
    }

    fn capacity(&self) -> u64 {
        (self.words.len() / WORDS) as u64
    }

    fn slot(&self, number: u64) -> &[M::AtomicU64] {
        let at = (number & (self.capacity() - 1)) as usize * WORDS;
        &self.words[at..at + WORDS]
    }

    /// By the writer: puts an event in, or counts it as lost.
    #[inline]
    pub(crate) fn put(&self, event: &Event) {
        // Relaxed: only this thread changes it.
        let written = self.written.load(Ordering::Relaxed);
        // Acquire: edge R2, partner: the store in `drain`.
        if written.wrapping_sub(self.read.load(Ordering::Acquire)) >= self.capacity() {
            let lost = self.lost.load(Ordering::Relaxed);
            self.lost.store(lost + 1, Ordering::Relaxed);
            return;
        }
        for (place, word) in self.slot(written).iter().zip(event.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: edge R1, partner: the load in `drain`.
        self.written.store(written + 1, Ordering::Release);
    }

    /// By the reader: takes out what is there now, in the order in which it was put in.
    pub(crate) fn drain(&self, mut take: impl FnMut(Event)) {
        // Relaxed: only this thread changes it.
        let read = self.read.load(Ordering::Relaxed);
        // Acquire: edge R1, partner: the store in `put`.
        let written = self.written.load(Ordering::Acquire);
        for number in read..written {
            let mut words = [0; WORDS];
            for (word, place) in words.iter_mut().zip(self.slot(number)) {
                *word = place.load(Ordering::Relaxed);
            }
            take(Event::from_words(words).expect("it was made of an event"));
        }
        // Release: edge R2, partner: the load in `put`.
        self.read.store(written, Ordering::Release);
    }

    /// How many events found no room so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Rings<Os> {
    /// Rings for `capacity` events each (32 bytes an event; the next power of two), and their reader.
    /// Memory is taken when threads begin to work, for each that does.
    pub fn new(capacity: usize) -> (Arc<Rings<Os>>, RingReader<Os>) {
        Rings::in_memory(capacity)
    }
}

impl<M: Memory> Rings<M> {
    /// As [`new`](Rings::new), in another world's memory.
    pub fn in_memory(capacity: usize) -> (Arc<Rings<M>>, RingReader<M>) {
        let seats = WORKERS_MAX + SPARES_MAX + THREADS_MAX + VISITORS_MAX;
        let place = |_| Place {
            made: M::AtomicU32::new(0),
            ring: M::Cell::new(None),
        };
        let rings = Arc::new(Rings {
            seats: (0..seats).map(place).collect(),
            growth: M::Lock::new(()),
            capacity: capacity.clamp(1, 1 << 32).next_power_of_two(),
            strays: M::AtomicU64::new(0),
        });
        let reader = RingReader {
            rings: rings.clone(),
        };
        (rings, reader)
    }

    fn ring(&self, seat: usize) -> Option<&Ring<M>> {
        let place = self.seats.get(seat)?;
        // Acquire, partner: the Release store in `seat_taken`.
        if place.made.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: it is made, and will not be written any more: it lives as long as `self`.
        unsafe { place.ring.with(|ring| (*ring).as_ref()) }
    }
}

impl<M: Memory> Sink for Rings<M> {
    #[inline]
    fn record(&self, event: &Event) {
        match self.ring(event.seat as usize) {
            Some(ring) => ring.put(event),
            None => _ = self.strays.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn is_leaf(&self) -> bool {
        true
    }

    fn seat_taken(&self, seat: u32) {
        let Some(place) = self.seats.get(seat as usize) else {
            return;
        };
        self.growth.with(|()| {
            if place.made.load(Ordering::Relaxed) == 0 {
                // SAFETY: nobody looks before `made` says so, and the lock keeps other writers out.
                unsafe {
                    place
                        .ring
                        .with_mut(|ring| *ring = Some(Ring::new(self.capacity)))
                };
                // Release, partner: the Acquire load in `ring`.
                place.made.store(1, Ordering::Release);
            }
        });
    }
}

impl<M: Memory> RingReader<M> {
    /// Takes out what is there now: the events of one seat after those of another, each seat's in the
    /// order of their times.
    pub fn drain(&mut self, mut take: impl FnMut(Event)) {
        let rings = (0..self.rings.seats.len()).filter_map(|seat| self.rings.ring(seat));
        rings.for_each(|ring| ring.drain(&mut take));
    }

    /// How many events found no room so far, all seats together.
    pub fn lost(&self) -> u64 {
        let strays = self.rings.strays.load(Ordering::Relaxed);
        self.lost_by_seat().map(|(_, lost)| lost).sum::<u64>() + strays
    }

    /// The seats that have a ring, and how many events found no room in it so far.
    pub fn lost_by_seat(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let seats = 0..self.rings.seats.len();
        seats.filter_map(|seat| Some((seat as u32, self.rings.ring(seat)?.lost())))
    }
}

impl<M: Memory> fmt::Debug for Rings<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rings")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
