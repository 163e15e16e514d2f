//! What a machine knows: its threads, who is runnable, what has happened so far.
//!
//! Plain data and the changes that keep it consistent; nothing here suspends.
//!
//! Invariants:
//! - `runnable` holds exactly the threads whose phase is `Runnable`, and `slot` is the place in it.
//! - Threads are visited in the order of their numbers, so that a run is a function of its seed.

use std::ptr;
use std::sync::Arc;

use event::Nanos;
use platform::ThreadSpec;

use super::fiber::{Fiber, Suspender};
use super::order::Chooser;
use super::report::On;
use super::tag::Tag;
use super::thread::Joint;
use super::{Shared, SimConfig};

pub(super) struct State {
    pub(super) threads: Vec<Control>,
    /// By thread; `None` while it runs and after its end.
    pub(super) fibers: Vec<Option<Fiber>>,
    pub(super) runnable: Vec<u32>,
    pub(super) current: u32,
    pub(super) alive: usize,
    pub(super) chooser: Chooser,
    pub(super) steps: u64,
    pub(super) steps_panicking: u64,
    pub(super) hash: u64,
    pub(super) ids: u32,
    pub(super) first_panic: Option<(usize, String)>,
    pub(super) stop: Option<Stop>,
}

/// Why nobody is resumed any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    AllEnded,
    Deadlock,
    StepLimit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Runnable,
    Waiting(On),
    Ended,
}

/// What the machine knows of a thread.
pub(super) struct Control {
    pub(super) name: String,
    pub(super) phase: Phase,
    /// When it goes on by itself, while it waits.
    pub(super) until: Nanos,
    pub(super) slot: usize,
    pub(super) suspender: *const Suspender,
    pub(super) local: Option<Local>,
    pub(super) charged: Nanos,
    pub(super) steps: u64,
    pub(super) panic: Option<String>,
    pub(super) joint: Arc<Joint>,
}

/// A thread's word, which is not null, and its destructor.
pub(super) struct Local {
    pub(super) word: *const (),
    pub(super) at_exit: unsafe fn(*const ()),
}

impl State {
    pub(super) fn new(config: &SimConfig) -> State {
        State {
            threads: Vec::new(),
            fibers: Vec::new(),
            runnable: Vec::new(),
            current: 0,
            alive: 0,
            chooser: Chooser::new(config.order, config.seed, config.steps_max),
            steps: 0,
            steps_panicking: 0,
            hash: 0,
            ids: 0,
            first_panic: None,
            stop: None,
        }
    }

    /// Adds a runnable thread.
    pub(super) fn add_thread(&mut self, spec: ThreadSpec, fiber: Fiber, joint: Arc<Joint>) {
        self.threads.push(Control {
            name: spec.name,
            phase: Phase::Runnable,
            until: Nanos::MAX,
            slot: 0,
            suspender: ptr::null(),
            local: None,
            charged: Nanos::ZERO,
            steps: 0,
            panic: None,
            joint,
        });
        self.fibers.push(Some(fiber));
        self.chooser.thread_added();
        self.alive += 1;
        self.add_runnable(self.threads.len() as u32 - 1);
    }

    pub(super) fn me(&mut self) -> &mut Control {
        &mut self.threads[self.current as usize]
    }

    /// Counts a step of the current thread; false at the limit.
    #[inline]
    pub(super) fn count_step(&mut self, steps_max: u64) -> bool {
        if self.steps >= steps_max {
            self.stop = Some(Stop::StepLimit);
            return false;
        }
        self.steps += 1;
        self.threads[self.current as usize].steps += 1;
        true
    }

    /// Adds a step of the current thread to the schedule's hash.
    #[inline]
    pub(super) fn record(&mut self, op: Op, id: u32) {
        const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
        let step = u64::from(self.current) << 40 | (op as u64) << 32 | u64::from(id);
        self.hash = (self.hash.rotate_left(23) ^ step).wrapping_mul(MULTIPLIER);
    }

    #[inline]
    pub(super) fn id(&mut self, run: u32, tag: Option<&Tag>) -> u32 {
        let ids = &mut self.ids;
        tag.map_or(0, |tag| {
            tag.id(run, || {
                *ids += 1;
                *ids
            })
        })
    }

    pub(super) fn add_runnable(&mut self, thread: u32) {
        let control = &mut self.threads[thread as usize];
        control.phase = Phase::Runnable;
        control.slot = self.runnable.len();
        self.runnable.push(thread);
    }

    pub(super) fn remove_runnable(&mut self, thread: u32, phase: Phase) {
        let control = &mut self.threads[thread as usize];
        debug_assert!(
            control.phase == Phase::Runnable,
            "thread {thread} leaves twice"
        );
        control.phase = phase;
        let slot = control.slot;
        self.runnable.swap_remove(slot);
        if let Some(&moved) = self.runnable.get(slot) {
            self.threads[moved as usize].slot = slot;
        }
    }

    /// Who goes next. If nobody is runnable time jumps; `None` if that does not help.
    pub(super) fn next(&mut self, shared: &Shared) -> Option<u32> {
        if self.runnable.is_empty() {
            self.jump(shared)?;
        }
        Some(self.chooser.pick(&self.runnable, self.steps))
    }

    pub(super) fn jump(&mut self, shared: &Shared) -> Option<()> {
        let waiting = |control: &&Control| matches!(control.phase, Phase::Waiting(_));
        let until = self
            .threads
            .iter()
            .filter(waiting)
            .map(|control| control.until)
            .min();
        let until = until.filter(|&until| until < Nanos::MAX)?;
        debug_assert!(until >= shared.now(), "time would run backwards");
        shared.set_now(until);
        self.wake_all(|control| control.until == until);
        Some(())
    }

    /// Makes those waiting threads runnable, in the order of their numbers.
    pub(super) fn wake_all(&mut self, which: impl Fn(&Control) -> bool) {
        for thread in 0..self.threads.len() {
            let control = &self.threads[thread];
            if matches!(control.phase, Phase::Waiting(_)) && which(control) {
                self.add_runnable(thread as u32);
            }
        }
    }
}

/// What a step does; part of the schedule's hash.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Load,
    Store,
    Rmw,
    Fence,
    Spin,
    Lock,
    Park,
    Unpark,
    Spawn,
    Join,
    Now,
    Charge,
    Wake,
    End,
}
