//! The objects that a scenario's threads share: mutexes, queues, semaphores, flags, conditions, barriers,
//! timers.
//!
//! Mutexes, queues and semaphores are the simulated kernel's. The others are words and parkers, as programs
//! make them. Their lists are locked by std's mutex, which is never contended: simulated threads share one OS
//! thread and are not switched out while they hold it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform, Poll, Polling};

use super::enders::Enders;
use super::file::{Phase, Scenario, WaitKind};
use super::signals::Signals;
use super::waits::NamedWaits;
use crate::sync::{Mutex, Queue, Semaphore};
use crate::{Sim, SimParker};

type Word = <Sim as Memory>::AtomicU64;

/// A stretch of time between `begin` and `end` of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The thread's number in the report.
    pub thread: usize,
    /// The name of the stretch.
    pub name: String,
    /// From when.
    pub begin: Nanos,
    /// To when.
    pub end: Nanos,
}

/// The shared objects, by name.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) mutexes: BTreeMap<String, Mutex>,
    pub(super) queues: BTreeMap<String, Queue>,
    pub(super) semaphores: BTreeMap<String, Semaphore>,
    pub(super) flags: BTreeMap<String, Flag>,
    pub(super) conditions: BTreeMap<String, Condition>,
    pub(super) barriers: BTreeMap<String, Barrier>,
    /// The last ring of each timer that threads share.
    timers: StdMutex<BTreeMap<String, Nanos>>,
    enders: Enders,
    pub(super) signals: Signals,
    log: Arc<StdMutex<Vec<Measured>>>,
    pub(super) waits: Arc<NamedWaits>,
}

impl Objects {
    /// All objects that the scenario's phases name; measured stretches go to `log`, and names of waits to
    /// `waits`.
    pub(super) fn new(
        sim: &Sim,
        scenario: &Scenario,
        log: Arc<StdMutex<Vec<Measured>>>,
        waits: Arc<NamedWaits>,
    ) -> Objects {
        let mut objects = Objects {
            log,
            waits,
            enders: Enders::of(scenario),
            signals: Signals::new(sim, scenario),
            ..Objects::default()
        };
        for thread in &scenario.threads {
            objects.add(sim, scenario, &thread.phases);
            let mut barriers = Vec::new();
            find_barriers(&thread.phases, &mut barriers);
            for name in barriers {
                let barrier = objects.barriers.entry(name.to_owned()).or_default();
                barrier.threads += thread.count;
            }
        }
        objects
    }

    fn add(&mut self, sim: &Sim, scenario: &Scenario, phases: &[Phase]) {
        for phase in phases {
            match phase {
                Phase::Lock(name) | Phase::Unlock(name) => self.add_mutex(sim, scenario, name),
                Phase::Send(name) | Phase::Receive(name) => {
                    let capacity = scenario.queues.get(name).copied().unwrap_or(16);
                    let new = || Queue::new(sim, capacity);
                    self.queues.entry(name.clone()).or_insert_with(new);
                }
                Phase::Post(name) | Phase::Take(name) => {
                    let count = scenario.semaphores.get(name).copied().unwrap_or(0);
                    let new = || Semaphore::new(sim, count);
                    self.semaphores.entry(name.clone()).or_insert_with(new);
                }
                Phase::Set(name) | Phase::Wait { flag: name, .. } => {
                    self.flags.entry(name.clone()).or_insert_with(Flag::new);
                }
                Phase::Await { condition, mutex } => {
                    self.conditions.entry(condition.clone()).or_default();
                    if let Some(name) = mutex {
                        self.add_mutex(sim, scenario, name);
                    }
                }
                Phase::Signal(name) | Phase::Broadcast(name) => {
                    self.conditions.entry(name.clone()).or_default();
                }
                Phase::Repeat { phases, .. } => self.add(sim, scenario, phases),
                _ => {}
            }
        }
    }

    fn add_mutex(&mut self, sim: &Sim, scenario: &Scenario, name: &str) {
        let inherits = scenario.inheriting_mutexes.iter().any(|with| with == name);
        let new = || Mutex::new(sim, inherits);
        self.mutexes.entry(name.to_owned()).or_insert_with(new);
    }

    /// The threads that can end the wait of this phase, by their numbers; none if they are not known.
    pub(super) fn enders(&self, phase: &Phase) -> &[usize] {
        self.enders.of_wait(phase)
    }

    /// Looks at the shared timers.
    pub(super) fn with_timers<R>(&self, f: impl FnOnce(&mut BTreeMap<String, Nanos>) -> R) -> R {
        f(&mut held(&self.timers))
    }

    /// Keeps a measured stretch.
    pub(super) fn note(&self, measured: Measured) {
        held(&self.log).push(measured);
    }
}

/// The barriers of these phases, each once.
fn find_barriers<'a>(phases: &'a [Phase], found: &mut Vec<&'a str>) {
    for phase in phases {
        match phase {
            Phase::Barrier(name) if !found.contains(&name.as_str()) => found.push(name),
            Phase::Repeat { phases, .. } => find_barriers(phases, found),
            _ => {}
        }
    }
}

pub(super) fn held<T>(list: &StdMutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A word that is counted up, and the parkers of the threads to wake then.
pub(super) struct Flag {
    word: Word,
    parked: StdMutex<Vec<Arc<SimParker>>>,
}

impl Flag {
    fn new() -> Flag {
        Flag {
            word: Word::new(0),
            parked: StdMutex::new(Vec::new()),
        }
    }

    pub(super) fn set(&self) {
        // SeqCst, partner: the load in `wait`.
        self.word.fetch_add(1, Ordering::SeqCst);
        let parked = std::mem::take(&mut *held(&self.parked));
        for parker in parked {
            parker.unpark();
        }
    }

    /// Waits until the flag has been counted up to `wanted`. A spin is [`Memory::spin_until`], since it looks
    /// at nothing but the word; each turn of a naive loop is [`Polling::poll`]. Real programs call the same
    /// functions, so a simulated wait has the costs and wake-ups of theirs.
    pub(super) fn wait(&self, sim: &Sim, wanted: u64, by: WaitKind) {
        // SeqCst, partner: the count in `set`.
        let is_set = || self.word.load(Ordering::SeqCst) >= wanted;
        match by {
            WaitKind::Spin => {
                while !is_set() {
                    Sim::spin_until(&self.word, |value| value >= wanted, Nanos::MAX);
                }
            }
            WaitKind::Yield => {
                while !is_set() {
                    sim.poll(Poll::Yield, &self.word);
                }
            }
            WaitKind::Park => {
                let parker = Arc::new(sim.parker());
                loop {
                    // No other thread runs between this and the look: that is the next step.
                    held(&self.parked).push(parker.clone());
                    if is_set() {
                        return;
                    }
                    parker.park(Nanos::MAX);
                }
            }
        }
    }
}

/// POSIX calls it a condition variable: the waiting threads, the first one first.
#[derive(Default)]
pub(super) struct Condition {
    waiting: StdMutex<VecDeque<Arc<SimParker>>>,
}

impl Condition {
    /// Waits for a later signal; the mutex, which the caller holds, is free meanwhile.
    pub(super) fn wait(&self, sim: &Sim, mutex: Option<&Mutex>) {
        let parker = Arc::new(sim.parker());
        held(&self.waiting).push_back(parker.clone());
        if let Some(mutex) = mutex {
            mutex.unlock();
        }
        while has(held(&self.waiting).iter(), &parker) {
            parker.park(Nanos::MAX);
        }
        if let Some(mutex) = mutex {
            mutex.lock();
        }
    }

    /// Wakes up to `most` of the waiting threads.
    pub(super) fn signal(&self, most: usize) {
        let woken: Vec<_> = {
            let mut waiting = held(&self.waiting);
            let count = most.min(waiting.len());
            waiting.drain(..count).collect()
        };
        for parker in woken {
            parker.unpark();
        }
    }
}

/// A barrier, at which threads wait for each other.
#[derive(Default)]
pub(super) struct Barrier {
    /// The number of threads that the barrier waits for.
    threads: usize,
    waiting: StdMutex<Vec<Arc<SimParker>>>,
}

impl Barrier {
    /// Waits until all threads have come.
    pub(super) fn pass(&self, sim: &Sim) {
        let parker = Arc::new(sim.parker());
        let mut waiting = held(&self.waiting);
        if waiting.len() + 1 < self.threads {
            waiting.push(parker.clone());
            drop(waiting);
            while has(held(&self.waiting).iter(), &parker) {
                parker.park(Nanos::MAX);
            }
            return;
        }
        let all = std::mem::take(&mut *waiting);
        drop(waiting);
        for parker in all {
            parker.unpark();
        }
    }
}

fn has<'a>(mut list: impl Iterator<Item = &'a Arc<SimParker>>, parker: &Arc<SimParker>) -> bool {
    list.any(|other| Arc::ptr_eq(other, parker))
}
