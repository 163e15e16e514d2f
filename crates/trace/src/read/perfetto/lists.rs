//! A CPU's events in the order in which they came, in little memory.
//!
//! A file of 256 MB has six million of them, and touching memory for the first time costs more than reading
//! the data that go there. So an event has 16 bytes: its time is the difference to the base of its chunk.
//! Chunks are freed one by one as they are read.

use std::vec;

use super::raw::KernelFact;

/// Events in a chunk, 64 KB of them.
const CHUNK: usize = 4096;

/// The usual smallest size of an event in a file.
const BYTES: usize = 24;

/// An event and its time, after its chunk's base.
#[derive(Clone, Copy, Debug)]
struct ListEntry {
    after: u32,
    what: KernelFact,
}

/// Events on one clock that are not too far apart.
#[derive(Debug)]
struct Chunk {
    /// No event of it is earlier.
    base: u64,
    clock: u8,
    entries: Vec<ListEntry>,
}

/// Room for chunks to come.
///
/// Memory goes back to the allocator of the thread that allocated it. So the thread that lets others decode
/// allocates the chunks; it can then use the freed memory for something else.
#[derive(Debug, Default)]
pub(super) struct Spare(Vec<Vec<ListEntry>>);

impl Spare {
    /// Makes room for the events in this many bytes of a file.
    pub(super) fn make(&mut self, bytes: usize) {
        let chunks = 2 + bytes / (BYTES * CHUNK);
        while self.0.len() < chunks {
            self.0.push(Vec::with_capacity(CHUNK));
        }
    }

    fn take(&mut self) -> Vec<ListEntry> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }
}

/// A CPU's events.
#[derive(Debug)]
pub(super) struct List {
    chunks: Vec<Chunk>,
    /// The time of the event that came last.
    latest: Option<u64>,
    is_sorted: bool,
}

impl Default for List {
    fn default() -> List {
        List {
            chunks: Vec::new(),
            latest: None,
            is_sorted: true,
        }
    }
}

impl List {
    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.entries.len()).sum()
    }

    /// The time of the event that came last.
    pub(super) fn latest(&self) -> Option<u64> {
        self.latest
    }

    /// Appends an event. `clock`: the number of the clock of its time.
    #[inline]
    pub(super) fn push(&mut self, time: u64, clock: u8, what: KernelFact, spare: &mut Spare) {
        self.is_sorted &= self.latest.is_none_or(|latest| latest <= time);
        self.latest = Some(time);
        if let Some(chunk) = self.chunks.last_mut()
            && chunk.entries.len() < CHUNK
            && chunk.clock == clock
            && let Some(after) = time.checked_sub(chunk.base)
            && let Ok(after) = u32::try_from(after)
        {
            chunk.entries.push(ListEntry { after, what });
            return;
        }
        self.begin(time, clock, what, spare);
    }

    /// Appends events, all on one clock.
    pub(super) fn extend(
        &mut self,
        clock: u8,
        mut events: &[(u64, KernelFact)],
        spare: &mut Spare,
    ) {
        while let Some((first, others)) = events.split_first() {
            // It finds the chunk with room.
            self.push(first.0, clock, first.1, spare);
            let Some(chunk) = self.chunks.last_mut() else {
                return;
            };
            let (base, room) = (chunk.base, CHUNK - chunk.entries.len());
            let is_near = |(time, _): &&(u64, KernelFact)| {
                let after = time.checked_sub(base);
                after.is_some_and(|after| after <= u32::MAX.into())
            };
            let fit = others.iter().take(room).take_while(is_near).count();
            let (fit, behind) = others.split_at(fit);
            let entry = |&(time, what): &(u64, KernelFact)| ListEntry {
                after: (time - base) as u32,
                what,
            };
            chunk.entries.extend(fit.iter().map(entry));
            let last = fit.last().unwrap_or(first).0;
            self.is_sorted &= events[..=fit.len()].is_sorted_by_key(|event| event.0);
            self.latest = Some(last);
            events = behind;
        }
    }

    #[cold]
    fn begin(&mut self, base: u64, clock: u8, what: KernelFact, spare: &mut Spare) {
        // A list that has filled a chunk will fill another one.
        let mut entries = match self.chunks.last() {
            Some(chunk) if chunk.entries.len() == CHUNK => spare.take(),
            _ => Vec::with_capacity(1),
        };
        entries.push(ListEntry { after: 0, what });
        self.chunks.push(Chunk {
            base,
            clock,
            entries,
        });
    }

    /// Converts the times of the events. Events whose time has no conversion are left out, and their number
    /// is returned.
    pub(super) fn convert(&mut self, time: impl Fn(u64, u8) -> Option<u64>) -> u64 {
        let before = std::mem::take(self);
        let (mut lost, mut spare) = (0, Spare::default());
        for chunk in before.chunks {
            for entry in &chunk.entries {
                match time(chunk.base + u64::from(entry.after), chunk.clock) {
                    Some(time) => self.push(time, chunk.clock, entry.what, &mut spare),
                    None => lost += 1,
                }
            }
        }
        lost
    }

    /// The events in the order of their times, equal times as they came.
    pub(super) fn into_sorted(self) -> Sorted {
        let list = if self.is_sorted { self } else { self.sort() };
        let mut sorted = Sorted {
            chunks: list.chunks.into_iter(),
            base: 0,
            entries: Vec::new().into_iter(),
        };
        sorted.settle();
        sorted
    }

    fn sort(self) -> List {
        let mut all: Vec<(u64, KernelFact)> = Vec::new();
        for chunk in self.chunks {
            let entries = chunk.entries.iter();
            all.extend(entries.map(|entry| (chunk.base + u64::from(entry.after), entry.what)));
        }
        all.sort_by_key(|(time, _)| *time);
        let (mut sorted, mut spare) = (List::default(), Spare::default());
        for (time, what) in all {
            sorted.push(time, 0, what, &mut spare);
        }
        sorted
    }
}

/// Events in the order of their times.
pub(super) struct Sorted {
    chunks: vec::IntoIter<Chunk>,
    base: u64,
    /// Never empty, unless at the end.
    entries: vec::IntoIter<ListEntry>,
}

impl Sorted {
    /// The time of the next event.
    #[inline]
    pub(super) fn time(&self) -> Option<u64> {
        let next = self.entries.as_slice().first();
        next.map(|entry| self.base + u64::from(entry.after))
    }

    #[inline]
    fn settle(&mut self) {
        while self.entries.as_slice().is_empty()
            && let Some(chunk) = self.chunks.next()
        {
            self.base = chunk.base;
            self.entries = chunk.entries.into_iter();
        }
    }
}

impl Iterator for Sorted {
    type Item = (u64, KernelFact);

    #[inline]
    fn next(&mut self) -> Option<(u64, KernelFact)> {
        let entry = self.entries.next()?;
        let time = self.base + u64::from(entry.after);
        self.settle();
        Some((time, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(number: u32) -> KernelFact {
        let (cpu, is_online) = (number, true);
        KernelFact::Online { cpu, is_online }
    }

    fn all(list: List) -> Vec<(u64, u32)> {
        let events = list.into_sorted();
        let number = |what| match what {
            KernelFact::Online { cpu, .. } => cpu,
            _ => unreachable!("nothing else was put there"),
        };
        events.map(|(time, what)| (time, number(what))).collect()
    }

    /// Goal: an event takes 16 bytes. Method: its size.
    #[test]
    fn events_are_small() {
        assert_eq!(size_of::<ListEntry>(), 16);
    }

    /// Goal: whatever the times, events come back in their order, equal times as they came. Method: times far
    /// apart, at the ends of what a number holds, back and forth, and more of one time than a chunk
    /// has, one by one and many together.
    #[test]
    fn events_come_back_in_order() {
        let far = [
            0,
            u64::MAX,
            5,
            1 << 32,
            (1 << 32) - 1,
            u64::MAX - 1,
            5,
            5 + (1 << 32),
        ];
        let many = (0..3 * CHUNK as u64).map(|at| 1_000 + at / 7);
        for times in [far.to_vec(), many.collect()] {
            let mut expected: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            for together in [1, 3, times.len()] {
                let (mut list, mut spare) = (List::default(), Spare::default());
                spare.make(CHUNK * BYTES);
                let events: Vec<_> = times.iter().zip((0..).map(marked)).collect();
                let events: Vec<_> = events
                    .into_iter()
                    .map(|(time, what)| (*time, what))
                    .collect();
                for events in events.chunks(together) {
                    list.extend(0, events, &mut spare);
                }
                assert_eq!(list.latest(), times.last().copied());
                assert_eq!(all(list), expected);
            }
        }
    }

    /// Goal: times are converted by their clocks, events without a conversion are left out and counted, and
    /// events that are out of order after that are put in order. Method: three clocks, one of them unknown.
    #[test]
    fn times_are_converted() {
        let (mut list, mut spare) = (List::default(), Spare::default());
        for (number, clock) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
            list.push(u64::from(number) * 10, clock, marked(number), &mut spare);
        }
        let lost = list.convert(|time, clock| match clock {
            0 => Some(time),
            1 => Some(time + (1 << 40)),
            _ => None,
        });
        assert_eq!(lost, 1);
        assert_eq!(all(list), [(0, 0), (30, 3), ((1 << 40) + 10, 1)]);
    }
}
