//! Rare events: all but switches and wake-ups.

use event::{KernelEventKind, Nanos, Task};

use super::{Futex, KernelBuilder, Reason};
use crate::Name;
use crate::timeline::cpus::{IDLE, UNKNOWN};
use crate::timeline::dense::NOBODY;
use crate::timeline::states::State;

impl KernelBuilder<'_> {
    /// A rare event.
    #[inline(never)]
    pub(super) fn take_rare(&mut self, time: Nanos, lane: usize, what: KernelEventKind) {
        match what {
            KernelEventKind::Migrate { task, to, .. } => {
                let (thread, to) = (self.thread(task), self.lane(to));
                self.has_migrations = true;
                self.moves.push((thread, (time, to as u32)));
                self.moved(time, thread, lane, to);
            }
            KernelEventKind::Lost { .. } => {
                let who = self.lanes[lane].now().who;
                if who < UNKNOWN {
                    self.states.set(who, time, State::Unknown);
                }
                // Even if it was unknown before: no guess goes back beyond this.
                self.lanes[lane].set(time, IDLE);
                self.lanes[lane].set(time, UNKNOWN);
                self.lanes[lane].end_interrupts(time);
            }
            KernelEventKind::Frequency(khz) => self.lanes[lane].frequencies.push((time, khz)),
            KernelEventKind::FrequencyLimit(khz) => self.lanes[lane].limits.push((time, khz)),
            KernelEventKind::Idle(Some(_)) if self.lanes[lane].now().who == UNKNOWN => {
                self.lanes[lane].set(time, IDLE);
            }
            KernelEventKind::Online(online) => self.lanes[lane].online.push((time, online)),
            KernelEventKind::Throttle { task, begins } => {
                self.throttle(time, lane, task, begins);
            }
            KernelEventKind::Interrupt { begins, .. } => self.lanes[lane].interrupt(time, begins),
            _ => self.note(time, what),
        }
    }

    /// A thread is put aside, or may go on. Otherwise its state continues: a running thread is put aside when
    /// it leaves its CPU, a sleeping one when it is woken.
    fn throttle(&mut self, time: Nanos, lane: usize, task: Task, begins: bool) {
        let thread = self.thread(task);
        self.rationed.insert(thread);
        self.let_go(time, thread);
        if begins {
            self.aside.insert(thread, lane);
            self.lanes[lane].put_aside(time);
        }
        let now = self.states.now(thread).map(|now| now.state);
        match (now, begins) {
            (Some(State::Runnable(since)), true) => {
                self.states.set(thread, time, State::Throttled(since));
            }
            (Some(State::Throttled(since)), false) => {
                self.states.set(thread, time, State::Runnable(since));
            }
            _ => {}
        }
    }

    /// A thread is no longer put aside, if it was.
    pub(super) fn let_go(&mut self, time: Nanos, thread: u32) {
        if let Some(lane) = self.aside.remove(&thread) {
            self.lanes[lane].let_go(time);
        }
    }

    /// An event that changes no state.
    fn note(&mut self, time: Nanos, what: KernelEventKind) {
        match what {
            KernelEventKind::Inherit { task, from } => {
                let thread = self.thread(task);
                let own = self.priorities.now(thread).map_or(0, |step| step.own);
                match from.map(|from| self.thread(from)) {
                    None => self.priorities.own(thread, time, own),
                    Some(from) => {
                        let lent = self.priorities.now(from).map_or(own, |step| step.now);
                        self.priorities.lend(thread, time, lent.min(own), from);
                    }
                }
            }
            KernelEventKind::Priority {
                task,
                priority,
                lent,
            } => {
                let thread = self.thread(task);
                if lent {
                    self.priorities.lend(thread, time, priority, NOBODY);
                } else {
                    self.priorities.own(thread, time, priority);
                }
            }
            KernelEventKind::FutexCall {
                task,
                address,
                call,
            } => {
                let thread = self.thread(task);
                self.calls.insert(thread, self.futexes.len());
                let (begin, end, address) = (time, self.span.1, address.get());
                let futex = Futex {
                    begin,
                    end,
                    address,
                    call,
                };
                self.futexes.push((thread, futex));
            }
            KernelEventKind::FutexReturn { task, .. } => {
                let thread = self.thread(task);
                if let Some(call) = self.calls.remove(&thread) {
                    self.futexes[call].1.end = time;
                }
            }
            KernelEventKind::Blocked { task, io, function } => {
                let thread = self.thread(task);
                let function = function.map(Name);
                self.reasons.push((thread, Reason { time, io, function }));
            }
            _ => {}
        }
    }
}
