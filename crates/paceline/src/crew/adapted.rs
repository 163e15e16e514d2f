//! The workers as adaptation to the machine sees them.

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Lock, Ordering, Platform, SpawnError};

use crate::adapt::{Caller, Local, PlacedThread, WorkerWords, Workers};
use crate::context::Context;
use crate::job::Ticket;
use crate::seat::Role;
use crate::shared::Shared;
use crate::stats::Counters;

impl<P: Platform> Workers<P> for Shared<P> {
    fn platform(&self) -> &P {
        &self.platform
    }

    fn threads(&self) -> usize {
        self.seats.len()
    }

    fn worker(&self, index: usize) -> Option<&WorkerWords<P>> {
        let seat = self.seats.get(index);
        (seat.role != Role::Guest).then_some(&seat.words)
    }

    fn signalled(&self, index: usize) -> Option<Nanos> {
        self.seats.get(index).signalled()
    }

    fn counters(&self, index: usize) -> &Counters<P> {
        &self.seats.get(index).counters
    }

    fn frames(&self) -> u64 {
        // Relaxed: a number.
        self.frames.load(Ordering::Relaxed)
    }

    fn active(&self) -> usize {
        self.crew.active()
    }

    fn target(&self) -> usize {
        self.crew.target()
    }

    fn set_target(&self, workers: usize) {
        self.crew.set_target(workers);
    }

    fn fill(&self) -> Result<(), SpawnError> {
        self.man_posts()
    }

    fn has_many_caches(&self) -> bool {
        Shared::has_many_caches(self)
    }

    fn cache_of(&self, cpu: u32) -> u32 {
        Shared::cache_of(self, cpu)
    }

    fn slice(&self) -> Option<Nanos> {
        self.crew.slice
    }

    fn is_at_rest(&self, index: usize) -> bool {
        // Relaxed: a hint.
        self.seats.get(index).waits_for.load(Ordering::Relaxed) != 0
            || self.idle.is_asleep(index)
            || self.slow.idle.is_asleep(index)
    }

    fn while_they_live<R>(&self, f: impl FnOnce() -> R) -> R {
        self.crew.roster.with(|_| f())
    }

    fn with_given_mask(&self, index: usize, with: impl FnOnce(&CpuSet)) {
        self.crew.roster.with(|roster| {
            let post = roster.posts.iter().find(|post| post.seat as usize == index);
            if let Some(cpus) = post.and_then(|post| post.given.as_ref()) {
                with(cpus);
            }
        });
    }

    fn placed(&self) -> Vec<PlacedThread> {
        self.crew.roster.with(|roster| {
            let placed = roster.posts.iter().map(|post| {
                let seat = self.seats.get(post.seat as usize);
                seat.words.placed(&post.given)
            });
            placed.flatten().collect()
        })
    }
}

impl<P: Platform> Caller<P> for Context<'_, P> {
    type Workers = Shared<P>;

    fn workers(&self) -> &Shared<P> {
        self.shared
    }

    fn index(&self) -> usize {
        self.seat.index as usize
    }

    #[inline(always)]
    fn local<R>(&self, f: impl FnOnce(&mut Local) -> R) -> R {
        self.own(|own| f(&mut own.adapt))
    }

    fn counters(&self) -> &Counters<P> {
        &self.seat.counters
    }

    fn note(&self, kind: EventKind, job: u64, arg: u64) {
        self.record(kind, Ticket(job), arg);
    }

    fn wake_one(&self) {
        let sleeper = self.shared.slow.idle.wake_one();
        if let Some(seat) = sleeper.or_else(|| self.shared.idle.wake_one()) {
            self.wake_worker(seat);
        }
    }
}
