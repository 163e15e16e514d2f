//! Threads with unequal work that wait for each other at the end of each round.
//!
//! The setting of source 002: "multiple threads, but more threads than there are logical CPUs", at a barrier.
//! With unequal work some thread always waits, and its way of waiting decides how soon the slowest one gets a
//! CPU. The barrier is the plain central one: a counter, and a flag with the round.

use std::sync::Arc;

use event::Nanos;
use platform::{
    Atomic, CpuSet, Lock, Machine, Ordering, Padded, Platform, Polling, SpawnError, Usage,
};

use super::beside::used;
use super::{Flag, NaiveWait};
use crate::busy::Busy;
use crate::gang::run_together;
use crate::words::Words64;

/// The program to run.
#[derive(Clone, Debug)]
pub struct BarrierLoop {
    /// How threads wait.
    pub wait: NaiveWait,
    /// By thread: its work in each round.
    pub work: Vec<Nanos>,
    /// How many rounds come first and do not count.
    pub warm_up: u32,
    /// How many rounds count.
    pub rounds: u32,
    /// Where the threads may run, in turn: with two masks the first, the third, the fifth thread have the
    /// first one. Everywhere if there is none.
    pub masks: Vec<CpuSet>,
}

/// The results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierReport {
    /// From the first thread's beginning to the last one's end, of the rounds that count.
    pub elapsed: Nanos,
    /// By thread.
    pub threads: Vec<Waiter>,
    /// How often a thread passed the barrier before another had reached it: 0, or the barrier is broken.
    pub early: u64,
}

/// The results of one thread of the loop, of the rounds that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// How many rounds it was the last in, and did not wait.
    pub last: u64,
    /// How often it looked in vain.
    pub in_vain: u64,
    /// The CPU time and switches it used.
    pub used: Usage,
    begin: Nanos,
    end: Nanos,
    early: u64,
}

impl BarrierLoop {
    /// Runs it, with bodies that compute by `busy`, on a new thread each, and waits for them.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn run<P: Polling>(&self, platform: &P, busy: Busy) -> Result<BarrierReport, SpawnError> {
        let threads = self.work.len();
        let all = Arc::new(All::<P> {
            platform: platform.clone(),
            what: self.clone(),
            busy,
            arrived: Padded(P::on_own_lines(|| P::AtomicU64::new(0))),
            round: Flag::new(0),
            rounds_done: Words64::zeros(threads),
            waiters: P::Lock::new(vec![Waiter::default(); threads]),
        });
        let theirs = Arc::clone(&all);
        let names: Vec<String> = (0..threads)
            .map(|number| format!("thread {number}"))
            .collect();
        run_together(platform, &names, &self.masks, move |number| {
            theirs.thread(number);
        })?;
        let threads = all.waiters.with(std::mem::take);
        let begin = threads.iter().map(|thread| thread.begin).min();
        let end = threads.iter().map(|thread| thread.end).max();
        Ok(BarrierReport {
            elapsed: end.unwrap_or_default() - begin.unwrap_or_default(),
            early: threads.iter().map(|thread| thread.early).sum(),
            threads,
        })
    }
}

/// The state that the threads share.
struct All<P: Platform> {
    platform: P,
    what: BarrierLoop,
    busy: Busy,
    /// How many have reached the barrier in this round.
    arrived: Padded<P::AtomicU64>,
    /// The round.
    round: Flag<P>,
    /// By thread; to see whether the barrier holds.
    rounds_done: Words64,
    waiters: P::Lock<Vec<Waiter>>,
}

impl<P: Polling> All<P> {
    fn thread(&self, number: usize) {
        let work = self.what.work[number];
        let start = || Waiter {
            begin: self.platform.now(),
            ..Waiter::default()
        };
        let (mut waiter, mut before) = (start(), self.platform.machine().usage());
        let warm_up = u64::from(self.what.warm_up);
        for round in 1..=warm_up + u64::from(self.what.rounds) {
            if round == warm_up + 1 {
                let early = waiter.early;
                (waiter, before) = (start(), self.platform.machine().usage());
                waiter.early = early;
            }
            self.platform.charge(work);
            self.busy.spin_for(work, round);
            self.rounds_done.set(number, round);
            match self.pass() {
                None => waiter.last += 1,
                Some(in_vain) => waiter.in_vain += in_vain,
            }
            let reached = |other: usize| self.rounds_done.get(other) >= round;
            waiter.early += (0..self.what.work.len())
                .filter(|&other| !reached(other))
                .count() as u64;
        }
        waiter.used = used(before, self.platform.machine().usage());
        waiter.end = self.platform.now();
        self.waiters.with(|waiters| waiters[number] = waiter);
    }

    /// Waits for the others; how often it looked in vain. `None` if all others were there.
    fn pass(&self) -> Option<u64> {
        let round = self.round.get();
        // AcqRel, partner: itself. The last one sees what all others did before; they see it by the flag.
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        if before + 1 < self.what.work.len() as u64 {
            return Some(
                self.what
                    .wait
                    .until(&self.platform, &self.round, |now| now != round),
            );
        }
        // Relaxed: published by the flag.
        self.arrived.store(0, Ordering::Relaxed);
        self.round.set(round + 1);
        None
    }
}
