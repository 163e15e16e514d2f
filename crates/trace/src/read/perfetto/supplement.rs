//! The supplement of a file that was written here: facts without a place in Perfetto's format.

use std::collections::HashSet;

use event::{Cpu, Event};
use prost::Message;

use crate::read::builder::{Builder, ThreadFacts};
use crate::supplement::{LONGEST, Supplement, SupplementHead};
use crate::{Clock, CpuFacts, Loss, Wakers};

/// The supplement so far.
#[derive(Default)]
pub(super) struct PartialSupplement {
    head: Option<SupplementHead>,
    rest: Supplement,
    events: Vec<Event>,
    unknown: u64,
}

impl PartialSupplement {
    /// Reads a message; `None` if it is broken.
    pub(super) fn learn(&mut self, message: &[u8]) -> Option<()> {
        if message.len() > LONGEST {
            return None;
        }
        let mut part = Supplement::decode(message).ok()?;
        self.head = part.head.take().or(self.head.take());
        self.rest.threads.append(&mut part.threads);
        self.rest.cpus.append(&mut part.cpus);
        self.rest.slots.append(&mut part.slots);
        self.rest.labels.append(&mut part.labels);
        self.rest.losses.append(&mut part.losses);
        if let Some(jobs) = part.jobs {
            let (mut events, unknown) = jobs.events()?;
            self.events.append(&mut events);
            self.unknown += unknown;
        }
        Some(())
    }

    /// Whether this sequence only shows the contents of the supplement.
    pub(super) fn is_picture(&self, sequence: u32) -> bool {
        let head = self.head.as_ref();
        head.is_some_and(|head| head.pictures.contains(&sequence))
    }

    /// Processes that are there only because the format wants one for each thread.
    pub(super) fn no_processes(&self) -> HashSet<u32> {
        let alone = self.rest.threads.iter().filter(|thread| thread.is_alone);
        alone.map(|thread| thread.tid).collect()
    }

    /// Threads, in the order of their numbers there, so that they get the same ones here.
    pub(super) fn introduce(&mut self, builder: &mut Builder) {
        self.rest.threads.sort_by_key(|thread| thread.task);
        for thread in &self.rest.threads {
            let allowed = thread.allowed.iter().copied().map(Cpu).collect();
            let facts = ThreadFacts {
                priority: Some(thread.priority),
                allowed: thread.has_allowed.then_some(allowed),
                is_made_up: false,
            };
            if let Some(task) = builder.task(thread.tid) {
                builder.thread_facts(task, facts);
            }
        }
    }

    /// Everything else.
    pub(super) fn tell(mut self, builder: &mut Builder) {
        for cpu in &self.rest.cpus {
            builder.cpu_facts(CpuFacts {
                cpu: Cpu(cpu.cpu),
                capacity: cpu.capacity,
                max_khz: cpu.max_khz,
            });
        }
        for lost in &self.rest.losses {
            let known = Loss::ALL.iter().find(|loss| loss.word() == lost.word);
            builder.lose(*known.unwrap_or(&Loss::Unsupported), lost.count);
        }
        builder.lose(Loss::Unsupported, self.unknown);
        for slot in &self.rest.slots {
            if let Some(task) = builder.task(slot.tid) {
                builder.recording().slots.insert(slot.slot, task);
            }
        }
        if !self.events.is_sorted_by_key(|event| event.time) {
            self.events.sort_by_key(|event| event.time);
        }
        let recording = builder.recording();
        recording.jobs = self.events;
        recording.labels = self.rest.labels;
        let Some(head) = self.head else { return };
        if let Some(clock) = &head.clock {
            recording.origin.clock = Clock::named(clock);
        }
        recording.origin.recorder = head.recorder;
        recording.origin.recorded = head.recorded.iter().copied().collect();
        builder.set_wakers(match head.wakers {
            Some(1) => Wakers::Queued,
            Some(2) => Wakers::Decided,
            _ => Wakers::Unknown,
        });
        builder.set_unmarked(head.is_unmarked);
    }
}
