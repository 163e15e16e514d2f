//! The scheduler's look at a page.
//!
//! Whatever a page holds, a look costs at most one pass over its slots. An entry counts only as far as the
//! threads in it are of the process that has the page.

use std::fmt;
use std::ops::AddAssign;

use event::{Nanos, Task};
use platform::{Atomic, Memory, Ordering};

use crate::layout::{
    BadCode, Head, LINE_WORDS, MAGIC, Run, VERSION, WAIT_WORDS, WAITS_MAX, header, pair_in, slot,
    version_in,
};

/// What a thread says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The process.
    pub process: u32,
    /// The thread, which is one of this process.
    pub thread: Task,
    /// What it runs, if it says so.
    pub runs: Option<Run>,
    /// The threads that run what it waits for: each once, others than itself, of the same process, at most
    /// [`WAITS_MAX`]. If there is none the thread does not wait, or does not say for which.
    pub waits_for: &'a [Task],
}

/// What a look did not believe or could not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// Slots that were being written, or were left in the middle by a writer that died.
    pub changing: u64,
    /// Threads, in entries or as their owners, that are not of the page's process, or are over.
    pub foreign: u64,
    /// Slots with numbers that mean nothing, and pages of another version.
    pub malformed: u64,
    /// Threads that found no slot in their page, as the pages say.
    pub refused: u64,
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, other: Skipped) {
        // Wrapping: pages can claim any number.
        self.changing = self.changing.wrapping_add(other.changing);
        self.foreign = self.foreign.wrapping_add(other.foreign);
        self.malformed = self.malformed.wrapping_add(other.malformed);
        self.refused = self.refused.wrapping_add(other.refused);
    }
}

/// In words, for a line that says what was passed over.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} slots being written, {} threads that are not the program's or have ended, {} slots or pages \
             that mean nothing, {} threads without a slot",
            self.changing, self.foreign, self.malformed, self.refused
        )
    }
}

/// Visits each entry of a page that `process` has, and returns what was passed over.
///
/// `process_of` says of which process a thread is, `None` if there is no such thread. It is asked about each
/// thread of each entry, each time, so it should remember: `/proc/TID/status` has the answer as `Tgid`.
///
/// Costs one pass over the slots that were ever used, whatever the page holds, and allocates nothing.
pub fn read_page<M: Memory>(
    process: u32,
    words: &[M::AtomicU64],
    process_of: &dyn Fn(Task) -> Option<u32>,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> Skipped {
    let mut skipped = Skipped::default();
    let mut lines = words.chunks_exact(LINE_WORDS);
    let Some(first) = lines.next() else {
        skipped.malformed = 1;
        return skipped;
    };
    // Relaxed, all of these: nothing follows from them that the slots do not say again.
    let word = |word: usize| first[word].load(Ordering::Relaxed);
    if word(header::MAGIC) != MAGIC || version_in(word(header::SHAPE)) != VERSION {
        skipped.malformed = 1;
        return skipped;
    }
    skipped.refused = word(header::REFUSED);
    let used = usize::try_from(word(header::USED)).unwrap_or(usize::MAX);
    for line in lines.take(used) {
        let Some(seen) = read_slot::<M>(line) else {
            skipped.changing += 1;
            continue;
        };
        match seen.check(process, process_of, &mut skipped.foreign) {
            Ok(Some(entry)) => visit(&entry.as_entry(process)),
            Ok(None) => {}
            Err(BadCode) => skipped.malformed += 1,
        }
    }
    skipped
}

/// The words of a slot, all of one moment.
struct Seen {
    head: Head,
    deadline: u64,
    waits: [u64; WAIT_WORDS],
}

/// Reads a slot once; `None` if it was being written.
fn read_slot<M: Memory>(line: &[M::AtomicU64]) -> Option<Seen> {
    // Acquire, partner: the Release store in `write`: the words.
    let sequence = line[slot::SEQUENCE].load(Ordering::Acquire);
    if sequence & 1 == 1 {
        return None;
    }
    // Relaxed, and the second look at the sequence: the fence between them has the order.
    let word = |word: usize| line[word].load(Ordering::Relaxed);
    let seen = Seen {
        head: Head(word(slot::HEAD)),
        deadline: word(slot::DEADLINE),
        waits: std::array::from_fn(|number| word(slot::WAITS + number)),
    };
    // Acquire, partner: the fence in `write`: the odd number that came before a word that was seen here.
    M::fence(Ordering::Acquire);
    (word(slot::SEQUENCE) == sequence).then_some(seen)
}

/// An entry that may be believed as far as anything may.
struct Checked {
    thread: Task,
    runs: Option<Run>,
    waits: [Task; WAITS_MAX],
    count: usize,
}

impl Checked {
    fn as_entry(&self, process: u32) -> Entry<'_> {
        Entry {
            process,
            thread: self.thread,
            runs: self.runs,
            waits_for: &self.waits[..self.count],
        }
    }
}

impl Seen {
    /// The entry without threads that are not of the process; `None` if there is nothing in it.
    fn check(
        &self,
        process: u32,
        process_of: &dyn Fn(Task) -> Option<u32>,
        foreign: &mut u64,
    ) -> Result<Option<Checked>, BadCode> {
        let (lane, listed) = (self.head.lane()?, self.head.waits()?);
        let thread = self.head.thread();
        let runs = lane.map(|lane| Run {
            lane,
            deadline: (self.deadline != 0).then_some(Nanos(self.deadline)),
        });
        if thread == Task(0) || runs.is_none() && listed == 0 {
            return Ok(None);
        }
        if process_of(thread) != Some(process) {
            *foreign += 1;
            return Ok(None);
        }
        let mut checked = Checked {
            thread,
            runs,
            waits: [Task(0); WAITS_MAX],
            count: 0,
        };
        let threads = self.waits.iter().flat_map(|&word| pair_in(word));
        for other in threads.take(listed) {
            let is_known = checked.waits[..checked.count].contains(&other);
            if other == Task(0) || other == thread || is_known {
                continue;
            }
            if process_of(other) != Some(process) {
                *foreign += 1;
                continue;
            }
            checked.waits[checked.count] = other;
            checked.count += 1;
        }
        Ok((runs.is_some() || checked.count > 0).then_some(checked))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform::{Lane, Os};
    use proptest::prelude::*;

    use super::*;
    use crate::Page;

    const PROCESS: u32 = 40;

    /// Threads 1 to 19 are of the process, those from 20 to 29 of another one, and the others do not exist.
    fn process_of(thread: Task) -> Option<u32> {
        match thread.0 {
            1..20 => Some(PROCESS),
            20..30 => Some(PROCESS + 1),
            _ => None,
        }
    }

    type Seen = (u32, Option<Run>, Vec<u32>);

    fn read(words: &[<Os as Memory>::AtomicU64]) -> (Vec<Seen>, Skipped) {
        let mut seen = Vec::new();
        let skipped = read_page::<Os>(PROCESS, words, &process_of, &mut |entry| {
            assert_eq!(entry.process, PROCESS);
            let others = entry.waits_for.iter().map(|other| other.0);
            seen.push((entry.thread.0, entry.runs, others.collect()));
        });
        (seen, skipped)
    }

    /// Goal: what was published is read, and what was taken back is not. Method: each call, alone and after
    /// others, by a thread and a second one.
    #[test]
    fn what_is_published_is_read() {
        let page = Arc::new(Page::<Os>::unshared(4));
        let mut slot = page.slot(Task(1)).unwrap();
        assert_eq!(read(page.words()), (vec![], Skipped::default()));
        slot.publish_wait(&[Task(2), Task(3), Task(4)]);
        assert_eq!(read(page.words()).0, [(1, None, vec![2, 3, 4])]);
        let run = Run {
            lane: Lane::Frame,
            deadline: Some(Nanos(5)),
        };
        slot.publish_run(run);
        assert_eq!(read(page.words()).0, [(1, Some(run), vec![2, 3, 4])]);
        slot.publish_wait(&[Task(5)]);
        assert_eq!(read(page.words()).0, [(1, Some(run), vec![5])]);
        slot.publish_wait(&(2..12).map(Task).collect::<Vec<_>>());
        let six: Vec<u32> = (2..8).collect();
        assert_eq!(read(page.words()).0, [(1, Some(run), six)]);
        slot.clear_wait();
        let mut second = page.slot(Task(2)).unwrap();
        second.publish_wait(&[Task(1)]);
        let both = [(1, Some(run), vec![]), (2, None, vec![1])];
        assert_eq!(read(page.words()).0, both);
        slot.clear_run();
        drop(second);
        assert_eq!(read(page.words()), (vec![], Skipped::default()));
    }

    /// Goal: threads that find no slot are counted, a slot is used again, and its last thread is forgotten.
    /// Method: a thousand threads and ten slots.
    #[test]
    fn threads_without_a_slot_are_counted() {
        let page = Arc::new(Page::<Os>::unshared(10));
        let slots: Vec<_> = (0..1000).map(|tid| page.slot(Task(tid % 19 + 1))).collect();
        assert_eq!(slots.iter().flatten().count(), 10);
        assert_eq!((page.refused(), read(page.words()).1.refused), (990, 990));
        drop(slots);
        let mut again = page.slot(Task(19)).unwrap();
        again.publish_wait(&[Task(1)]);
        assert_eq!(read(page.words()).0, [(19, None, vec![1])]);
    }

    /// Goal: a writer that was killed in the middle costs its own entry and no other. Method: the sequence as
    /// it is then.
    #[test]
    fn a_slot_that_is_left_in_the_middle_is_passed_over() {
        let page = Arc::new(Page::<Os>::unshared(2));
        let mut slots = [1, 2].map(|tid| page.slot(Task(tid)).unwrap());
        slots[0].publish_wait(&[Task(2)]);
        slots[1].publish_wait(&[Task(1)]);
        let sequence = &page.words()[LINE_WORDS + slot::SEQUENCE];
        sequence.fetch_add(1, Ordering::Relaxed);
        let (seen, skipped) = read(page.words());
        assert_eq!((seen, skipped.changing), (vec![(2, None, vec![1])], 1));
    }

    /// Goal: threads of other processes are ignored wherever they stand. Method: one as the owner of an
    /// entry, some among those that it waits for.
    #[test]
    fn threads_of_other_processes_are_ignored() {
        let page = Arc::new(Page::<Os>::unshared(2));
        let mut liar = page.slot(Task(20)).unwrap();
        liar.publish_wait(&[Task(1)]);
        let mut slot = page.slot(Task(1)).unwrap();
        slot.publish_wait(&[Task(21), Task(2), Task(1), Task(99), Task(2), Task(0)]);
        let (seen, skipped) = read(page.words());
        assert_eq!(seen, [(1, None, vec![2])]);
        assert_eq!(skipped.foreign, 3);
    }

    /// What the README says about bytes, read without the crate's own code.
    fn by_the_readme(bytes: &[u8]) -> Vec<Seen> {
        let number = |at: usize, size: usize| {
            let part = &bytes[at..at + size];
            let part = part.iter().rev();
            part.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        if bytes.len() < 64 || number(0, 8) != 0x504c_4e48_494e_5453 || number(8, 4) != 1 {
            return Vec::new();
        }
        let slots = number(24, 8).min(bytes.len() as u64 / 64 - 1);
        let ours = |tid: &u32| (1..20).contains(tid);
        let slot = |slot: u64| {
            let at = 64 * (slot as usize + 1);
            let tid = number(at + 8, 4) as u32;
            let (lane, count) = (number(at + 12, 1), number(at + 13, 1));
            if number(at, 1) & 1 == 1 || lane > 3 || count > 6 || !ours(&tid) {
                return None;
            }
            let lanes = [Lane::Background, Lane::Normal, Lane::Frame];
            let deadline = number(at + 16, 8);
            let runs = (lane > 0).then(|| Run {
                lane: lanes[lane as usize - 1],
                deadline: (deadline != 0).then_some(Nanos(deadline)),
            });
            let mut others = Vec::new();
            for other in 0..count as usize {
                let other = number(at + 24 + 4 * other, 4) as u32;
                if ours(&other) && other != tid && !others.contains(&other) {
                    others.push(other);
                }
            }
            (runs.is_some() || !others.is_empty()).then_some((tid, runs, others))
        };
        (0..slots).filter_map(slot).collect()
    }

    /// A byte that is mostly a small number: most of a random page then means something.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![9 => Just(0), 4 => 0..8u8, 2 => 0..40u8, 1 => any::<u8>()]
    }

    proptest! {
        /// Goal: whatever the bytes, a look ends, panics nowhere, and sees what the README says. Method:
        /// random pages, with a header and without, against a reader of bytes.
        #[test]
        #[cfg_attr(target_endian = "big", ignore = "its numbers are little-endian")]
        fn any_bytes_are_read_as_the_readme_says(
            mut bytes in prop::collection::vec(byte(), 0..64 * 8),
            used in prop_oneof![0..12u64, any::<u64>()],
            is_page in prop::bool::weighted(0.9),
        ) {
            if is_page && bytes.len() >= 64 {
                bytes[..8].copy_from_slice(&0x504c_4e48_494e_5453u64.to_le_bytes());
                bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
                bytes[24..32].copy_from_slice(&used.to_le_bytes());
            }
            bytes.truncate(bytes.len() / 8 * 8);
            let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            let words: Vec<_> = words.map(<Os as Memory>::AtomicU64::new).collect();
            prop_assert_eq!(read(&words).0, by_the_readme(&bytes));
        }
    }
}
