//! What 60 threads on 8 CPUs might have done: the same each time, in the order of time.
//!
//! One CPU after the other, a few microseconds apart, does one thing: mostly it switches, to somebody who was
//! woken just before, or to nobody; a thread that switches out sleeps, or has lost its CPU and comes back.

use std::collections::VecDeque;

use event::Random;

const CPUS: usize = 8;
const THREADS: u32 = 60;

/// Who is in the trace: a number, and the name and priority that go with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Who(u32);

impl Who {
    /// The kernel's number; 0 for idle tasks.
    pub(super) fn tid(self) -> u32 {
        match self.0 {
            0 => 0,
            number => 1_000 + number,
        }
    }

    /// The number of its program.
    pub(super) fn tgid(self) -> u32 {
        1_001 + (self.0.saturating_sub(1)) / 10 * 10
    }

    pub(super) fn priority(self) -> u32 {
        match self.0 % 10 {
            1 => 110,
            2 => 98,
            _ => 120,
        }
    }

    /// Its name, on this CPU if it is nobody.
    pub(super) fn name(self, cpu: u32) -> String {
        match self.0 {
            0 => format!("swapper/{cpu}"),
            number => format!(
                "{} {}",
                ["render", "worker", "audio", "net"][number as usize % 4],
                number
            ),
        }
    }
}

/// One thing that happened.
pub(super) struct Event {
    pub(super) ns: u64,
    pub(super) cpu: u32,
    /// Who was there.
    pub(super) current: Who,
    pub(super) what: What,
}

pub(super) enum What {
    /// To whom; whether the one before sleeps.
    Switch {
        next: Who,
        sleeps: bool,
    },
    /// Whom.
    Waking {
        woken: Who,
    },
    /// A slice, of this number.
    Begin {
        slice: u64,
    },
    End,
}

/// All that happens, without an end.
pub(super) struct Events {
    random: Random,
    ns: u64,
    count: u64,
    /// Who is on each CPU, and whether a slice of its is open.
    running: [(Who, bool); CPUS],
    sleeping: VecDeque<Who>,
    runnable: VecDeque<Who>,
}

impl Events {
    pub(super) fn new() -> Events {
        Events {
            random: Random::new(1),
            ns: 1_000_000_000_000,
            count: 0,
            running: [(Who(0), false); CPUS],
            sleeping: (1..=THREADS).map(Who).collect(),
            runnable: VecDeque::new(),
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let cpu = self.random.below(CPUS as u64) as usize;
        self.ns += 500 + self.random.below(3_000);
        self.count += 1;
        let (current, is_open) = self.running[cpu];
        let is_idle = current == Who(0);
        let what = match self.random.below(10) {
            0 if is_open => {
                self.running[cpu].1 = false;
                What::End
            }
            0 if !is_idle => {
                self.running[cpu].1 = true;
                What::Begin {
                    slice: self.count % 500,
                }
            }
            1..=4 if !self.sleeping.is_empty() && self.runnable.len() < CPUS => {
                let woken = self.sleeping.pop_front()?;
                self.runnable.push_back(woken);
                What::Waking { woken }
            }
            // A thread keeps its CPU as long as a slice of its is open.
            _ if is_open => {
                self.running[cpu].1 = false;
                What::End
            }
            _ if is_idle && self.runnable.is_empty() => {
                let woken = self.sleeping.pop_front()?;
                self.runnable.push_back(woken);
                What::Waking { woken }
            }
            _ => {
                let next = self.runnable.pop_front().unwrap_or(Who(0));
                let sleeps = next == Who(0) || self.random.below(3) > 0;
                match (is_idle, sleeps) {
                    (true, _) => {}
                    (_, true) => self.sleeping.push_back(current),
                    (_, false) => self.runnable.push_back(current),
                }
                self.running[cpu] = (next, false);
                What::Switch { next, sleeps }
            }
        };
        let cpu = cpu as u32;
        Some(Event {
            ns: self.ns,
            cpu,
            current,
            what,
        })
    }
}
