//! What a file that was written here tells beside what Perfetto's format can.

use prost::Message;

use event::{Cpu, Event};

use crate::read::builder::{Builder, ThreadFacts};
use crate::supplement::{Head, LONGEST, Supplement};
use crate::{Clock, CpuFacts, Loss};

/// What it told so far.
#[derive(Default)]
pub(super) struct Told {
    head: Option<Head>,
    rest: Supplement,
    events: Vec<Event>,
    unknown: u64,
}

impl Told {
    /// Takes in a message; `None` if it is broken.
    pub(super) fn learn(&mut self, message: &[u8]) -> Option<()> {
        if message.len() > LONGEST {
            return None;
        }
        let mut part = Supplement::decode(message).ok()?;
        self.head = part.head.take().or(self.head.take());
        self.rest.threads.append(&mut part.threads);
        self.rest.cpus.append(&mut part.cpus);
        self.rest.seats.append(&mut part.seats);
        self.rest.labels.append(&mut part.labels);
        self.rest.losses.append(&mut part.losses);
        if let Some(jobs) = part.jobs {
            let (mut events, unknown) = jobs.events()?;
            self.events.append(&mut events);
            self.unknown += unknown;
        }
        Some(())
    }

    /// Whether this sequence only shows what is told here.
    pub(super) fn is_picture(&self, sequence: u32) -> bool {
        self.head
            .as_ref()
            .is_some_and(|head| head.pictures.contains(&sequence))
    }

    /// Threads, in the order of their numbers there, so that they get the same ones here.
    pub(super) fn introduce(&mut self, builder: &mut Builder) {
        self.rest.threads.sort_by_key(|thread| thread.task);
        for thread in &self.rest.threads {
            if let Some(task) = builder.task(thread.tid) {
                builder.thread_facts(
                    task,
                    ThreadFacts {
                        priority: Some(thread.priority),
                        allowed: thread
                            .has_allowed
                            .then(|| thread.allowed.iter().copied().map(Cpu).collect()),
                        is_made_up: thread.is_made_up,
                    },
                );
            }
        }
    }

    /// Everything else.
    pub(super) fn tell(mut self, builder: &mut Builder) {
        for cpu in self.rest.cpus {
            builder.cpu_facts(CpuFacts {
                cpu: Cpu(cpu.cpu),
                capacity: cpu.capacity,
                max_khz: cpu.max_khz,
            });
        }
        if !self.events.is_sorted_by_key(|event| event.time) {
            self.events.sort_by_key(|event| event.time);
        }
        for lost in &self.rest.losses {
            let known = Loss::ALL.iter().find(|loss| loss.word() == lost.word);
            builder.lose(*known.unwrap_or(&Loss::Unsupported), lost.count);
        }
        builder.lose(Loss::Unsupported, self.unknown);
        for seat in self.rest.seats {
            if let Some(task) = builder.task(seat.tid) {
                builder.recording().seats.insert(seat.seat, task);
            }
        }
        let recording = builder.recording();
        recording.jobs = self.events;
        recording.labels = self.rest.labels;
        if let Some(head) = self.head {
            if let Some(clock) = &head.clock {
                recording.origin.clock = Clock::named(clock);
            }
            head.made_up_pids
                .iter()
                .for_each(|pid| builder.made_up_pid(*pid));
        }
    }
}
