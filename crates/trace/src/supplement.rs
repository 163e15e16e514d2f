//! The facts of a recording that have no place in Perfetto's format, in our own field of its packets.
//!
//! The tracks that are written for the job system are a picture for people: a slice for each body, an arrow
//! for each dependency. The events themselves, with thread slots, labels and facts about threads and CPUs,
//! are in these messages. So a file that was written here gives the whole recording to this crate's reader.
//! Perfetto skips fields that it does not know. Of the events, each field is a list of its own, times as
//! differences: about ten bytes for each event.
//!
//! Invariant: a field's number never means anything else. Additions of later versions get new ones.

use event::{Event, EventKind, Nanos};
use prost::Message;

/// Our field in `TracePacket`. Perfetto gives out numbers below 2000, protobuf's own libraries use 19000 to
/// 19999.
pub(crate) const FIELD: u32 = 20_606;

/// The largest size of our messages; the reader takes longer ones for broken.
pub(crate) const LONGEST: usize = 1 << 20;

/// Events of one message.
pub(crate) const BATCH: usize = 2_048;

/// Longest label that is written, in bytes.
const LABEL: usize = 1 << 10;

/// A part of these facts.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Supplement {
    /// Once, in the first packet of a file.
    #[prost(message, optional, tag = "1")]
    pub(crate) head: Option<SupplementHead>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) threads: Vec<ThreadEntry>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) cpus: Vec<CpuEntry>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) slots: Vec<SlotEntry>,
    /// The next labels, in the order of their numbers.
    #[prost(string, repeated, tag = "5")]
    pub(crate) labels: Vec<String>,
    #[prost(message, optional, tag = "6")]
    pub(crate) jobs: Option<JobBatch>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) losses: Vec<Lost>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SupplementHead {
    /// The sequences that only show the contents of the supplement: readers of the supplement leave them out.
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) pictures: Vec<u32>,
    /// The clock of the times.
    #[prost(string, optional, tag = "2")]
    pub(crate) clock: Option<String>,
    /// How wakers are known: 0 not, 1 by where tasks were queued, 2 by where it was decided.
    #[prost(uint32, optional, tag = "3")]
    pub(crate) wakers: Option<u32>,
    /// Whether wake-ups by interrupts are not told apart.
    #[prost(bool, tag = "4")]
    pub(crate) is_unmarked: bool,
    /// The process that recorded while a program ran.
    #[prost(uint32, optional, tag = "5")]
    pub(crate) recorder: Option<u32>,
    /// The threads and processes of that program, by the kernel's numbers.
    #[prost(uint32, repeated, tag = "6")]
    pub(crate) recorded: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadEntry {
    #[prost(uint32, tag = "1")]
    pub(crate) tid: u32,
    #[prost(sint32, tag = "2")]
    pub(crate) priority: i32,
    #[prost(bool, tag = "3")]
    pub(crate) has_allowed: bool,
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) allowed: Vec<u32>,
    /// Its number in the recording.
    #[prost(uint32, tag = "5")]
    pub(crate) task: u32,
    /// Whether it has no process: its process in the file is made up.
    #[prost(bool, tag = "6")]
    pub(crate) is_alone: bool,
}

/// Facts about a CPU.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CpuEntry {
    #[prost(uint32, tag = "1")]
    pub(crate) cpu: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) capacity: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) max_khz: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SlotEntry {
    #[prost(uint32, tag = "1")]
    pub(crate) slot: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) tid: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Lost {
    /// As in [`Loss::word`](crate::Loss::word).
    #[prost(string, tag = "1")]
    pub(crate) word: String,
    #[prost(uint64, tag = "2")]
    pub(crate) count: u64,
}

/// Events of the job system, in the order of their times; all lists are equally long.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct JobBatch {
    /// The first since the beginning of the clock, each other one since the one before it.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) times: Vec<u64>,
    /// Codes of [`EventKind`].
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) kinds: Vec<u8>,
    /// The first as it is, each other one as the difference to the one before it.
    #[prost(sint64, repeated, tag = "3")]
    pub(crate) jobs: Vec<i64>,
    #[prost(uint64, repeated, tag = "4")]
    pub(crate) args: Vec<u64>,
    #[prost(uint32, repeated, tag = "5")]
    pub(crate) slots: Vec<u32>,
}

impl JobBatch {
    /// A batch of events that are in the order of their times.
    pub(crate) fn of(events: &[Event]) -> JobBatch {
        let mut jobs = JobBatch::default();
        let (mut time, mut job) = (0u64, 0u64);
        for event in events {
            jobs.times.push(event.time.0.wrapping_sub(time));
            jobs.kinds.push(event.kind as u8);
            jobs.jobs.push(event.job.wrapping_sub(job) as i64);
            jobs.args.push(event.arg);
            jobs.slots.push(event.slot);
            (time, job) = (event.time.0, event.job);
        }
        jobs
    }

    /// The events; `None` if the lists are not equally long. The second is the number of events of unknown
    /// kinds.
    pub(crate) fn events(&self) -> Option<(Vec<Event>, u64)> {
        let lengths = [
            self.jobs.len(),
            self.args.len(),
            self.slots.len(),
            self.kinds.len(),
        ];
        if lengths.iter().any(|length| *length != self.times.len()) {
            return None;
        }
        let (mut time, mut job) = (0u64, 0u64);
        let mut events = Vec::with_capacity(self.times.len());
        let mut unknown = 0;
        for at in 0..self.times.len() {
            time = time.wrapping_add(self.times[at]);
            job = job.wrapping_add(self.jobs[at] as u64);
            match EventKind::from_code(self.kinds[at]) {
                Some(kind) => events.push(Event {
                    time: Nanos(time),
                    job,
                    arg: self.args[at],
                    slot: self.slots[at],
                    kind,
                }),
                None => unknown += 1,
            }
        }
        Some((events, unknown))
    }
}

/// Labels in messages that are not too long. A label that is too long is cut.
pub(crate) fn labels(labels: &[String]) -> impl Iterator<Item = Vec<String>> {
    let cut = |label: &String| {
        let end = (0..=label.len().min(LABEL))
            .rev()
            .find(|end| label.is_char_boundary(*end));
        label[..end.unwrap_or(0)].to_owned()
    };
    labels
        .chunks(LONGEST / LABEL / 2)
        .map(move |some| some.iter().map(cut).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Goal: events come back as they were. Method: random ones, extremes included, as bytes and back;
        /// a full batch is never too long.
        #[test]
        fn events_come_back(
            raw in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(),
                proptest::sample::select(EventKind::ALL)), 0..50),
        ) {
            let mut events: Vec<Event> = raw
                .into_iter()
                .map(|(time, job, arg, slot, kind)| Event { time: Nanos(time), job, arg, slot, kind })
                .collect();
            events.sort_by_key(|event| event.time);
            let bytes = JobBatch::of(&events).encode_to_vec();
            prop_assert!(bytes.len() / events.len().max(1) * BATCH < LONGEST);
            let jobs = JobBatch::decode(&bytes[..]).unwrap();
            prop_assert_eq!(jobs.events(), Some((events, 0)));
        }
    }

    /// Goal: lists that do not fit are refused, kinds of later versions are counted. Method: one of each.
    #[test]
    fn what_cannot_be_is_refused() {
        let one = JobBatch {
            times: vec![5],
            kinds: vec![250],
            jobs: vec![1],
            args: vec![2],
            slots: vec![3],
        };
        assert_eq!(one.events(), Some((vec![], 1)));
        let short = JobBatch {
            args: vec![],
            ..one
        };
        assert_eq!(short.events(), None);
    }

    /// Goal: no message of labels is too long, and only long labels are cut. Method: many, one of them long.
    #[test]
    fn labels_fit() {
        let mut all: Vec<String> = (0..5_000).map(|number| format!("label {number}")).collect();
        all[7] = "ä".repeat(LABEL);
        let mut seen = Vec::new();
        for some in labels(&all) {
            let message = Supplement {
                labels: some.clone(),
                ..Supplement::default()
            };
            assert!(message.encoded_len() < LONGEST);
            seen.extend(some);
        }
        assert_eq!(seen[7], "ä".repeat(LABEL / 2));
        seen[7] = all[7].clone();
        assert_eq!(seen, all);
    }
}
