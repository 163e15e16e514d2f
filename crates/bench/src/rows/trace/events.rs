//! Events of 60 threads on 8 CPUs: invented, the same each time, in the order of time.
//!
//! One CPU after the other, a few microseconds apart, has one event. Mostly it switches, to a thread that was
//! woken just before, or to its idle task. A thread that switches out sleeps, or has lost its CPU and comes
//! back.

use std::collections::VecDeque;

use event::Random;

const CPUS: usize = 8;
const THREADS: u32 = 60;

/// A thread of the trace: a number, from which its name and priority follow. Idle tasks have the number 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TracedThread(u32);

impl TracedThread {
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

    /// Its name; the idle task of this CPU has the CPU's number in it.
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

/// One event.
pub(super) struct Event {
    pub(super) ns: u64,
    pub(super) cpu: u32,
    /// The thread that was on the CPU.
    pub(super) current: TracedThread,
    pub(super) what: What,
}

pub(super) enum What {
    /// A switch to this thread; `sleeps`: the thread before sleeps.
    Switch { next: TracedThread, sleeps: bool },
    /// A wake-up of this thread.
    Waking { woken: TracedThread },
    /// The beginning of the slice of this number.
    Begin { slice: u64 },
    /// The end of the last slice.
    End,
}

/// All events, without an end.
pub(super) struct Events {
    random: Random,
    ns: u64,
    count: u64,
    /// The thread on each CPU, and whether it has an open slice.
    running: [(TracedThread, bool); CPUS],
    sleeping: VecDeque<TracedThread>,
    runnable: VecDeque<TracedThread>,
}

impl Events {
    pub(super) fn new() -> Events {
        Events {
            random: Random::new(1),
            ns: 1_000_000_000_000,
            count: 0,
            running: [(TracedThread(0), false); CPUS],
            sleeping: (1..=THREADS).map(TracedThread).collect(),
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
        let is_idle = current == TracedThread(0);
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
            // A thread keeps its CPU while its slice is open.
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
                let next = self.runnable.pop_front().unwrap_or(TracedThread(0));
                let sleeps = next == TracedThread(0) || self.random.below(3) > 0;
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
