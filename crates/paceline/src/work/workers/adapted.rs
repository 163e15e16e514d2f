//! The workers as adaptation to the machine sees them.

use event::Nanos;
use platform::{Atomic, CpuSet, Lock, Ordering, Platform};

use crate::adapt::{PlacedThread, RefusedWorker, WorkerWords, Workers};
use crate::stats::Counters;
use crate::work::shared::Shared;
use crate::work::thread_slot::ThreadKind;

impl<P: Platform> Workers<P> for Shared<P> {
    fn platform(&self) -> &P {
        &self.platform
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn worker(&self, index: usize) -> Option<&WorkerWords<P>> {
        let slot = self.threads.get(index);
        (slot.kind != ThreadKind::Guest).then_some(&slot.words)
    }

    fn signalled(&self, index: usize) -> Option<Nanos> {
        self.threads.get(index).signalled()
    }

    fn counters(&self, index: usize) -> &Counters<P> {
        &self.threads.get(index).counters
    }

    fn frames(&self) -> u64 {
        // Relaxed: a number.
        self.frames.load(Ordering::Relaxed)
    }

    fn active(&self) -> usize {
        self.workers.active()
    }

    fn target(&self) -> usize {
        self.workers.target()
    }

    fn set_target(&self, workers: usize) {
        self.workers.set_target(workers);
    }

    fn fill(&self) -> Result<(), RefusedWorker> {
        self.apply_target()
    }

    fn slice(&self) -> Option<Nanos> {
        self.workers.slice
    }

    fn is_at_rest(&self, index: usize) -> bool {
        // Relaxed: a hint.
        self.threads.get(index).waits()
            || self.idle.is_asleep(index)
            || self.slow.idle.is_asleep(index)
    }

    fn while_they_live<R>(&self, f: impl FnOnce() -> R) -> R {
        self.workers.table.with(|_| f())
    }

    fn with_given_mask(&self, index: usize, with: impl FnOnce(&CpuSet)) {
        self.workers.table.with(|table| {
            let entry = table
                .entries
                .iter()
                .find(|entry| entry.slot as usize == index);
            if let Some(cpus) = entry.and_then(|entry| entry.given.as_ref()) {
                with(cpus);
            }
        });
    }

    fn placed(&self) -> Vec<PlacedThread> {
        self.workers.table.with(|table| {
            let placed = table.entries.iter().map(|entry| {
                let slot = self.threads.get(entry.slot as usize);
                slot.words.placed(&entry.given)
            });
            placed.flatten().collect()
        })
    }
}
