//! Events of a recording, in a ring for each thread slot.
#![doc = ""]
#![doc = include_str!("README.md")]

use std::fmt;
use std::sync::Arc;

use event::{Event, Sink};
use platform::{Atomic, Lock, Memory, Ordering, Os, Padded, SharedCell};

use crate::limits::{SPARES_MAX, THREADS_MAX, VISITORS_MAX, WORKERS_MAX};

/// The most events that a ring can hold: 2^32, or 2^24 where addresses have 32 bits.
const CAPACITY_MAX: usize = if usize::BITS > 32 {
    1 << (usize::BITS / 2)
} else {
    1 << 24
};

/// Words of an event.
const WORDS: usize = 4;

/// A sink of fixed size for the events of one job system, see [`Builder::sink`](crate::Builder::sink).
///
/// Each thread slot has a ring of its own, so recording an event takes a few nanoseconds: it never waits,
/// locks nothing, allocates nothing and wakes no thread. An event that finds its ring full is left out and
/// counted, see [`RingReader::lost`]. The memory of a ring is allocated when a thread first gets that thread
/// slot, and is kept until the rings and their reader are dropped.
///
/// ```
/// use paceline::record::EventKind;
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
    slots: Box<[RingPlace<M>]>,
    growth: M::Lock<()>,
    /// No place from this one on has a ring.
    end: M::AtomicU32,
    /// Events that each ring holds.
    capacity: usize,
    /// Events of thread slots that have no ring.
    strays: M::AtomicU64,
}

/// Takes events out of [`Rings`].
///
/// The reader may be used on any thread, while the job system runs and after it is gone. It takes no lock and
/// wakes no thread.
///
/// ```
/// use paceline::{Builder, Rings};
/// let (rings, mut reader) = Rings::new(1024);
/// let js = Builder::new().workers(1).sink(rings).build().unwrap();
/// js.wait(js.schedule(|_| ()));
/// let writer = std::thread::spawn(move || {
///     let mut file = Vec::new();
///     reader.drain(|event| file.extend(event.to_bytes()));
///     file.len()
/// });
/// assert!(writer.join().unwrap() > 0);
/// ```
pub struct RingReader<M: Memory = Os> {
    rings: Arc<Rings<M>>,
}

/// Room for one ring.
struct RingPlace<M: Memory> {
    /// 1 as soon as the ring exists.
    made: M::AtomicU32,
    ring: M::Cell<Option<Ring<M>>>,
}

// SAFETY: the cell is written once, under the lock `growth` and before `made` is 1 (Release); all other
// threads look into it only after they have seen that 1 (Acquire). A ring consists of atomic words.
unsafe impl<M: Memory> Sync for RingPlace<M> {}
// SAFETY: as above.
unsafe impl<M: Memory> Send for RingPlace<M> {}

/// See the module.
pub(crate) struct Ring<M: Memory> {
    written: Padded<M::AtomicU64>,
    lost: M::AtomicU64,
    read: Padded<M::AtomicU64>,
    words: Box<[M::AtomicU64]>,
}

impl<M: Memory> Ring<M> {
    /// A ring for this many events, a power of two.
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

    /// Writer: puts an event in, or counts it as lost.
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

    /// Reader: takes out the events that are there now, in the order in which they were put in.
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

    /// How many events have found no room so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Rings<Os> {
    /// Rings of `capacity` events each, and their reader.
    ///
    /// The capacity is rounded up to a power of two. It is at least 1, and at most 2³² (where addresses have
    /// 32 bits, 2²⁴). An event takes 32 bytes. Only the table of rings is allocated here; each ring is
    /// allocated when a thread first gets its thread slot.
    ///
    /// ```
    /// let (rings, reader) = paceline::Rings::new(4096);
    /// let js = paceline::Builder::new().sink(rings).build().unwrap();
    /// assert!(js.is_recording());
    /// assert_eq!(reader.lost(), 0);
    /// ```
    pub fn new(capacity: usize) -> (Arc<Rings<Os>>, RingReader<Os>) {
        Rings::in_memory(capacity)
    }
}

impl<M: Memory> Rings<M> {
    /// As [`new`](Rings::new), in the memory of another platform: a simulator or a model checker.
    /// It has no example, because programs on the operating system use [`new`](Rings::new).
    pub fn in_memory(capacity: usize) -> (Arc<Rings<M>>, RingReader<M>) {
        Rings::for_slots(
            capacity,
            WORKERS_MAX + SPARES_MAX + THREADS_MAX + VISITORS_MAX,
        )
    }

    /// Rings for a job system that has this many thread slots.
    pub(crate) fn for_slots(capacity: usize, slots: usize) -> (Arc<Rings<M>>, RingReader<M>) {
        let place = |_| RingPlace {
            made: M::AtomicU32::new(0),
            ring: M::Cell::new(None),
        };
        let rings = Arc::new(Rings {
            slots: (0..slots).map(place).collect(),
            growth: M::Lock::new(()),
            end: M::AtomicU32::new(0),
            capacity: capacity.clamp(1, CAPACITY_MAX).next_power_of_two(),
            strays: M::AtomicU64::new(0),
        });
        let reader = RingReader {
            rings: rings.clone(),
        };
        (rings, reader)
    }

    fn ring(&self, slot: usize) -> Option<&Ring<M>> {
        let place = self.slots.get(slot)?;
        // Acquire, partner: the Release store in `slot_taken`.
        if place.made.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: the ring is made, and the cell will not be written any more: the ring lives as long as
        // `self`.
        unsafe { place.ring.with(|ring| (*ring).as_ref()) }
    }

    /// The rings that exist, with their thread slots.
    fn made(&self) -> impl Iterator<Item = (u32, &Ring<M>)> {
        // Relaxed: `made` has the edge. A ring that is made meanwhile may be missing.
        let slots = 0..self.end.load(Ordering::Relaxed);
        slots.filter_map(|slot| Some((slot, self.ring(slot as usize)?)))
    }
}

impl<M: Memory> Sink for Rings<M> {
    #[inline]
    fn record(&self, event: &Event) {
        match self.ring(event.slot as usize) {
            Some(ring) => ring.put(event),
            None => _ = self.strays.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn is_leaf(&self) -> bool {
        true
    }

    fn slot_taken(&self, slot: u32) {
        let Some(place) = self.slots.get(slot as usize) else {
            return;
        };
        self.growth.with(|()| {
            if place.made.load(Ordering::Relaxed) == 0 {
                // SAFETY: no thread looks before `made` says so, and the lock keeps other writers out.
                unsafe {
                    place
                        .ring
                        .with_mut(|ring| *ring = Some(Ring::new(self.capacity)))
                };
                // Release, partner: the Acquire load in `ring`.
                place.made.store(1, Ordering::Release);
                // Relaxed: only changed under the lock.
                let end = self.end.load(Ordering::Relaxed);
                self.end.store(end.max(slot + 1), Ordering::Relaxed);
            }
        });
    }
}

impl<M: Memory> RingReader<M> {
    /// Takes out the events that are there now and hands them to `take`: all events of one thread slot, then
    /// those of the next. The events of a thread slot come in the order of their times.
    ///
    /// The cost is proportional to the number of thread slots that were used plus the number of events. It
    /// neither blocks nor allocates, and events that are recorded meanwhile stay for the next call. If `take`
    /// panics, the ring that is being drained keeps its events, and they come again.
    ///
    /// ```
    /// use paceline::{Builder, Rings};
    /// let (rings, mut reader) = Rings::new(1024);
    /// let js = Builder::new().workers(1).sink(rings).build().unwrap();
    /// js.wait(js.schedule(|_| ()));
    /// drop(js);
    /// let mut times = Vec::new();
    /// reader.drain(|event| times.push((event.slot, event.time)));
    /// assert!(times.is_sorted(), "by thread slot, and then by time");
    /// ```
    pub fn drain(&mut self, mut take: impl FnMut(Event)) {
        for (_, ring) in self.rings.made() {
            ring.drain(&mut take);
        }
    }

    /// How many events have found no room so far, in all rings together. Events of thread slots that have no
    /// ring count, too.
    ///
    /// ```
    /// use paceline::{Builder, Rings};
    ///
    /// let (rings, mut reader) = Rings::new(1); // One event for each thread slot.
    /// let js = Builder::new().workers(1).sink(rings).build().unwrap();
    /// js.wait(js.job("hello").schedule(|_| ()));
    /// drop(js);
    /// let mut kept = 0;
    /// reader.drain(|_| kept += 1);
    /// assert!(kept > 0 && reader.lost() > 0);
    /// ```
    pub fn lost(&self) -> u64 {
        let strays = self.rings.strays.load(Ordering::Relaxed);
        self.lost_by_slot().map(|(_, lost)| lost).sum::<u64>() + strays
    }

    /// For each thread slot that has a ring: its number, and how many events have found no room in its ring
    /// so far. The iterator allocates nothing.
    ///
    /// ```
    /// use paceline::{Builder, Rings};
    /// let (rings, reader) = Rings::new(1); // One event for each thread slot.
    /// let js = Builder::new().workers(0).sink(rings).build().unwrap();
    /// js.wait(js.schedule(|_| ()));
    /// let lost: Vec<(u32, u64)> = reader.lost_by_slot().collect();
    /// assert!(lost.iter().any(|&(_, events)| events > 0));
    /// ```
    pub fn lost_by_slot(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let rings = self.rings.made();
        rings.map(|(slot, ring)| (slot, ring.lost()))
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
