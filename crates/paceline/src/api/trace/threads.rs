//! Which thread had which slot when.
//!
//! A slot is used again when its thread has ended, but in a recording a slot has one thread. So each further
//! thread of a slot has a number of its own there, above those of all slots. The events say when a slot
//! changes hands ([`EventKind::SlotTaken`]).

use std::collections::{BTreeMap, HashMap};

use ::trace::{Recording, Thread};
use event::{Event, EventKind, Task};
use platform::Platform;

use crate::work::shared::Shared;
use crate::work::thread_slot::ThreadKind;

/// The threads that a trace finds when it begins.
pub(super) struct Present {
    /// Their slots, and the platform's names for them.
    slots: Vec<(u32, u64)>,
    names: Vec<(u64, String)>,
}

impl Present {
    /// Those of this moment. From here on newcomers are noted.
    pub(super) fn now<P: Platform>(shared: &Shared<P>) -> Present {
        let slots = shared.threads();
        let name = |&(slot, thread): &(u32, u64)| {
            let name = shared.threads.get(slot as usize).tenant_name();
            name.map(|name| (thread, name))
        };
        let names = slots.iter().filter_map(name).collect();
        Present { slots, names }
    }
}

/// The slots as a recording numbers them.
pub(super) struct Numbers {
    /// The number of each slot at this point of the events.
    now: BTreeMap<u32, u32>,
    /// Of each number whose thread is known: the slot, and the platform's name for the thread.
    known: BTreeMap<u32, (u32, u64)>,
    next: u32,
}

impl Numbers {
    /// `limit`: the number of slots.
    pub(super) fn new(present: &Present, limit: u32) -> Numbers {
        let mut numbers = Numbers {
            now: BTreeMap::new(),
            known: BTreeMap::new(),
            next: limit,
        };
        for &(slot, thread) in &present.slots {
            numbers.take(slot, thread);
        }
        numbers
    }

    /// From here on this thread has the slot.
    fn take(&mut self, slot: u32, thread: u64) {
        if thread == 0 {
            return; // The platform has no names for threads: all of a slot are one.
        }
        let now = self.of(slot);
        let number = match self.known.get(&now) {
            Some(&(_, known)) if known == thread => return,
            Some(_) => {
                self.next += 1;
                self.next - 1
            }
            None => now,
        };
        self.now.insert(slot, number);
        self.known.insert(number, (slot, thread));
    }

    fn of(&self, slot: u32) -> u32 {
        self.now.get(&slot).copied().unwrap_or(slot)
    }

    /// Gives the slots in the event, which is the next one, their numbers.
    pub(super) fn renumber(&mut self, event: &mut Event) {
        if event.kind == EventKind::SlotTaken {
            self.take(event.slot, event.arg);
        }
        event.slot = self.of(event.slot);
        let number = |slot: u64| u64::from(self.of(slot as u32));
        event.arg = match event.kind {
            EventKind::Steal
            | EventKind::Wake
            | EventKind::Spare
            | EventKind::MaskRestored
            | EventKind::Nudged => number(event.arg),
            EventKind::Unpark if event.arg > 0 => number(event.arg - 1) + 1,
            _ => event.arg,
        };
    }

    /// The threads of the recording, after all events. `main`: the number of the program's main thread.
    pub(super) fn write<P: Platform>(
        mut self,
        shared: &Shared<P>,
        present: Present,
        main: Option<u32>,
        recording: &mut Recording,
    ) {
        // Those whose arrival was lost.
        for (slot, thread) in shared.threads() {
            if !self.known.contains_key(&self.of(slot)) {
                self.take(slot, thread);
            }
        }
        let recorder = shared.recorder.get().into_iter();
        let newcomers = recorder.flat_map(|recorder| recorder.take_newcomers());
        let names: HashMap<u64, String> = present.names.into_iter().chain(newcomers).collect();
        let main = main.and_then(|main| self.known.get(&main));
        let main = main.map(|&(_, thread)| thread);
        let mut tasks = HashMap::new();
        for (number, (slot, thread)) in self.known {
            let next = Task(tasks.len() as u32);
            let task = *tasks.entry(thread).or_insert(next);
            recording.slots.insert(number, task);
            if task != next {
                continue; // It has had another slot, too.
            }
            let name = match names.get(&thread) {
                _ if Some(thread) == main => "main".to_owned(),
                Some(name) => name.clone(),
                None => unnamed(shared.threads.get(slot as usize).kind, slot),
            };
            recording.threads.push(Thread {
                tid: u32::try_from(thread).ok(),
                ..Thread::new(task, name, Some(0))
            });
        }
    }
}

fn unnamed(kind: ThreadKind, slot: u32) -> String {
    match kind {
        ThreadKind::Guest => format!("thread {slot}"),
        _ => format!("paceline {slot}"),
    }
}

#[cfg(test)]
mod tests {
    use event::Nanos;

    use super::*;

    /// Goal: each thread of a slot has a number of its own, also where others wake it or steal from it; a
    /// thread that comes back to its slot keeps it. Method: two slots, of which one changes hands twice.
    #[test]
    fn each_thread_of_a_slot_has_a_number() {
        let present = Present {
            slots: vec![(0, 100), (1, 101)],
            names: Vec::new(),
        };
        let mut numbers = Numbers::new(&present, 8);
        let mut told = |slot, kind, arg| {
            let (time, job) = (Nanos(0), 0);
            let mut event = Event {
                time,
                job,
                arg,
                slot,
                kind,
            };
            numbers.renumber(&mut event);
            (event.slot, event.arg)
        };
        assert_eq!(told(1, EventKind::SlotTaken, 101), (1, 101));
        assert_eq!(told(0, EventKind::Steal, 1), (0, 1));
        assert_eq!(told(1, EventKind::SlotTaken, 102), (8, 102));
        assert_eq!(told(0, EventKind::Steal, 1), (0, 8));
        assert_eq!(told(0, EventKind::Unpark, 2), (0, 9));
        assert_eq!(told(0, EventKind::Unpark, 0), (0, 0));
        assert_eq!(told(1, EventKind::SlotTaken, 101), (9, 101));
        assert_eq!(told(1, EventKind::Park, 1), (9, 1));
        assert_eq!(told(5, EventKind::Begin, 0), (5, 0));
    }
}
