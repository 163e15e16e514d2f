//! The worker threads: starting, retiring, shutting down. Their life is in `life`, spares are in `spares`.
//!
//! Regular workers have the ordinals 0..target. Resizing changes the target. Workers beyond it retire at
//! their next idle point, with their queues empty. Missing workers are started on thread slots that were left
//! before, or on new ones. (`live` decides what the target is.)
//!
//! Invariants
//! - A thread slot has one thread at a time: an entry is vacant only after its last thread was joined.
//! - No thread is started once a thread joins the workers. Both are decided under the table's lock.
//! - No thread joins itself, and no code of the program's is called while the lock is held.

mod adapted;
mod life;
mod spares;
mod table;

use platform::{Atomic, Lock, Omission, Ordering, Parker, Platform, ThreadSpec};

use super::shared::Shared;
use super::thread_slot::{ThreadKind, ThreadSlot};
use crate::adapt::RefusedWorker;

pub(crate) use table::{Spawner, WorkerThreads};
use table::{WorkerEntry, WorkerTable, join, join_last};

impl<P: Platform> Shared<P> {
    /// Makes the number of regular workers the wanted one. Returns the first refusal of the system; then
    /// fewer workers run.
    pub(crate) fn apply_target(&self) -> Result<(), RefusedWorker> {
        let filled = loop {
            let (ended, filled) = self.workers.table.with(|table| {
                let ended = table.take_exited(ThreadKind::Worker);
                let filled = if ended.is_empty() {
                    self.fill(table)
                } else {
                    Ok(Vec::new())
                };
                (ended, filled)
            });
            if ended.is_empty() {
                break filled;
            }
            self.join_exited(ended);
        };
        let started = filled.and_then(|vacant| {
            let is_wanted = |slot: &ThreadSlot<P>| !self.has_begun_to_end() && slot.is_wanted();
            vacant.into_iter().try_for_each(|(before, slot)| {
                let started = self.start(slot, &is_wanted).map(|_| ());
                started.map_err(|error| RefusedWorker { before, error })
            })
        });
        // So that spinning workers check whether they are to leave.
        self.idle.bump();
        self.slow.idle.bump();
        started
    }

    /// Whether no worker may be started any more. Asked under the table's lock.
    fn has_begun_to_end(&self) -> bool {
        !P::omits(Omission::LookBeforeStarting) && self.workers.is_stopping()
    }

    /// Makes room for the regular workers that are wanted, and tells surplus ones to leave. Returns the
    /// ordinals and thread slots on which a worker is missing.
    fn fill(&self, table: &mut WorkerTable<P>) -> Result<Vec<(usize, u32)>, RefusedWorker> {
        if self.has_begun_to_end() {
            return Ok(Vec::new()); // Entries whose threads are being joined look vacant.
        }
        let target = self.workers.target();
        let mut fast = 0;
        let regular = |entry: &&mut WorkerEntry<P>| entry.kind == ThreadKind::Worker;
        let mut vacant = Vec::new();
        let mut ordinal = 0;
        for entry in table.entries.iter_mut().filter(regular) {
            let slot = self.threads.get(entry.slot as usize);
            let wanted = ordinal < target;
            let placed = self.adapt.assign_place(self, &slot.words, &mut entry.given);
            fast += u32::from(wanted && placed.is_slow == Some(false));
            let mut flag = if wanted { 0 } else { ThreadSlot::<P>::RETIRES };
            if placed.is_slow == Some(true) {
                flag |= ThreadSlot::<P>::IS_SLOW;
            }
            let was = slot.flag.load(Ordering::Relaxed);
            // Release, partner: the Acquire load in `must_stop`.
            slot.flag.store(flag, Ordering::Release);
            if wanted && entry.is_vacant() {
                vacant.push((ordinal, entry.slot));
            } else if flag != was || !wanted {
                slot.parker.unpark();
            }
            ordinal += 1;
        }
        while ordinal < target {
            let added = self.add_entry(table, ThreadKind::Worker);
            let before = ordinal;
            let slot = added.map_err(|error| RefusedWorker { before, error })?;
            let flag = self.threads.get(slot as usize).flag.load(Ordering::Relaxed);
            fast += u32::from(flag & ThreadSlot::<P>::IS_SLOW == 0);
            vacant.push((ordinal, slot));
            ordinal += 1;
        }
        // Relaxed: only a number. The thread that waits is one more.
        self.slow.fast_threads.store(fast + 1, Ordering::Relaxed);
        Ok(vacant)
    }

    /// Joins the threads that have exited. Only then are their entries vacant: a thread slot has one thread
    /// at a time.
    #[cold]
    fn join_exited(&self, ended: Vec<(u32, P::Thread)>) {
        for (slot, thread) in ended {
            join(thread);
            self.workers
                .table
                .with(|table| table.entry(slot).left = false);
        }
    }

    /// The thread slots of the regular workers that are wanted, in the order of their numbers.
    #[cfg(feature = "pools")]
    pub(crate) fn regular_workers(&self) -> Vec<u32> {
        self.workers.table.with(|table| {
            let regular = |entry: &&WorkerEntry<P>| entry.kind == ThreadKind::Worker;
            let entries = table.entries.iter().filter(regular);
            let wanted = entries.take(self.workers.target());
            wanted.map(|entry| entry.slot).collect()
        })
    }

    /// Finds or makes a vacant entry for one more worker.
    fn add_entry(
        &self,
        table: &mut WorkerTable<P>,
        kind: ThreadKind,
    ) -> Result<u32, platform::SpawnError> {
        let slot = self.threads.add(&self.platform, kind).ok_or_else(|| {
            let text = "all slots are taken: ask for fewer workers";
            platform::SpawnError::new(platform::RefusalKind::Exhausted, text)
        })?;
        self.graph.make_room_for(slot.index);
        let mut entry = WorkerEntry {
            slot: slot.index,
            kind,
            thread: None,
            left: false,
            given: None,
        };
        if kind == ThreadKind::Worker {
            let regular = table.entries.iter().filter(|entry| entry.kind == kind);
            let ordinal = regular.count();
            slot.words.set_ordinal(ordinal as u32);
            let placed = self.adapt.assign_place(self, &slot.words, &mut entry.given);
            if placed.is_slow == Some(true) {
                // Relaxed: its thread is started later, under this lock.
                slot.flag.store(ThreadSlot::<P>::IS_SLOW, Ordering::Relaxed);
            }
        }
        table.entries.push(entry);
        Ok(slot.index)
    }

    /// Starts a thread on a vacant entry, if `is_wanted` still holds there. False if it does not, or if
    /// another thread was faster.
    fn start(
        &self,
        index: u32,
        is_wanted: &dyn Fn(&ThreadSlot<P>) -> bool,
    ) -> Result<bool, platform::SpawnError> {
        let name = self.thread_name(index as usize);
        self.workers.table.with(|table| {
            let slot = self.threads.get(index as usize);
            let entry = table.entry(index);
            if !entry.is_vacant() || !is_wanted(slot) {
                return Ok(false);
            }
            self.spawn_worker(slot, entry, name).map(|()| true)
        })
    }

    fn spawn_worker(
        &self,
        slot: &ThreadSlot<P>,
        entry: &mut WorkerEntry<P>,
        name: String,
    ) -> Result<(), platform::SpawnError> {
        let index = slot.index as usize;
        let placed = self.adapt.assign_place(self, &slot.words, &mut entry.given);
        let spec = ThreadSpec {
            name,
            stack_bytes: self.workers.stack_bytes,
            mask: placed.mask,
            slice: self.workers.slice,
        };
        let shared = self
            .this
            .upgrade()
            .expect("the job system starts its own workers");
        self.workers.active.fetch_add(1, Ordering::Relaxed);
        let body = Box::new(move || shared.worker_main(index));
        #[cfg(feature = "pools")]
        let spawned = match &self.workers.spawner {
            Some(spawn) => spawn(spec, body),
            None => self.platform.spawn(spec, body),
        };
        #[cfg(not(feature = "pools"))]
        let spawned = self.platform.spawn(spec, body);
        match spawned {
            Ok(thread) => entry.thread = Some(thread),
            Err(error) => {
                self.workers.active.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells all workers to leave and waits until they have.
    pub(crate) fn stop(&self) {
        self.signal_stop();
        let threads = self.workers.table.with(|table| {
            let threads = table.entries.iter_mut().map(|entry| entry.thread.take());
            threads.flatten().collect::<Vec<_>>()
        });
        for thread in threads {
            join_last(thread);
        }
    }

    /// Tells all workers to leave.
    pub(crate) fn signal_stop(&self) {
        // Release, partner: the Acquire load in `is_stopping`.
        self.workers.stopping.store(1, Ordering::Release);
        self.idle.bump();
        self.slow.idle.bump();
        for slot in self
            .threads
            .iter()
            .filter(|slot| slot.kind != ThreadKind::Guest)
        {
            slot.parker.unpark();
        }
    }
}
