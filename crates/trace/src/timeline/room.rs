//! The room that CPUs and threads will need.
//!
//! Copying lists of millions while they grow costs more than finding out before how long they will be.

use event::{Cpu, KernelEvent, KernelEventKind, Task};

/// The room, by how often they are switched to. It is not known for numbers that are too large for a table.
#[derive(Default)]
pub(super) struct Room {
    /// By CPU.
    switches: Vec<u32>,
    /// By task.
    runs: Vec<u32>,
}

impl Room {
    const MOST: usize = 1 << 20;

    /// How many times a CPU switches.
    pub(super) fn switches(&self, cpu: Cpu) -> usize {
        Room::of(&self.switches, cpu.index())
    }

    /// How many times a task is switched to.
    pub(super) fn runs(&self, task: Task) -> usize {
        Room::of(&self.runs, task.index())
    }

    fn of(counts: &[u32], at: usize) -> usize {
        counts.get(at).map_or(0, |count| *count as usize)
    }

    /// Adds the room for an event.
    #[inline]
    pub(super) fn add(&mut self, event: &KernelEvent) {
        if let KernelEventKind::Switch { next, .. } = event.what {
            Room::count(&mut self.switches, event.cpu.index());
            if let Some(next) = next {
                Room::count(&mut self.runs, next.index());
            }
        }
    }

    #[inline]
    fn count(counts: &mut Vec<u32>, at: usize) {
        match counts.get_mut(at) {
            Some(count) => *count = count.saturating_add(1),
            None => Room::first(counts, at),
        }
    }

    #[cold]
    fn first(counts: &mut Vec<u32>, at: usize) {
        if at < Room::MOST {
            counts.resize((at + 1).next_power_of_two(), 0);
            counts[at] = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use event::{Left, Nanos};

    use super::*;

    /// Goal: switches are counted by CPU and by the task that is switched to, and no number takes memory
    /// without bound. Method: some of small numbers, and of the largest.
    #[test]
    fn switches_are_counted() {
        let mut room = Room::default();
        for (cpu, next) in [
            (0, Some(7)),
            (3, Some(7)),
            (3, None),
            (u32::MAX, Some(u32::MAX)),
        ] {
            room.add(&KernelEvent {
                time: Nanos::ZERO,
                cpu: Cpu(cpu),
                what: KernelEventKind::Switch {
                    prev: None,
                    state: Left::Sleeping,
                    next: next.map(Task),
                },
            });
        }
        let switches = [0, 1, 3, u32::MAX].map(|cpu| room.switches(Cpu(cpu)));
        assert_eq!(switches, [1, 0, 2, 0]);
        assert_eq!(
            [7, 8, u32::MAX].map(|task| room.runs(Task(task))),
            [2, 0, 0]
        );
    }
}
